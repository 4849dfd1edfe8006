import { randomHex } from "./random-hex.ts";

/** Hexadecimal digits of the time, in milliseconds. They last for 8,900 years. */
const TIME_DIGITS = 12;

const ID = /^gen_[0-9a-f]{32}$/;

/**
 * Makes the identifier of a generation: `gen_`, the time and 80 random bits. The time is in it because the table of
 * generations is ordered by time, so that a row is found without an index of identifiers.
 * @param now milliseconds since 1970
 */
export function newGenerationId(now = Date.now()): string {
  return `gen_${now.toString(16).padStart(TIME_DIGITS, "0")}${randomHex().slice(TIME_DIGITS)}`;
}

/** The time in an identifier, in milliseconds since 1970; undefined for any other text. */
export function timeOfGeneration(id: string): number | undefined {
  return ID.test(id) ? Number.parseInt(id.slice(4, 4 + TIME_DIGITS), 16) : undefined;
}
