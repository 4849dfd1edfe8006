import { randomHex } from "./random-hex.ts";

/** Hexadecimal digits of the time, in milliseconds. They last for 8,900 years. */
const TIME_DIGITS = 12;

const DIGITS = /^[0-9a-f]{32}$/;

type Kind = "req" | "gen";

/** Makes an identifier: its kind, a time in milliseconds since 1970, and 80 random bits, all in 32 digits. */
export function idAt(kind: Kind, at: number): string {
  return `${kind}_${at.toString(16).padStart(TIME_DIGITS, "0")}${randomHex().slice(TIME_DIGITS)}`;
}

/** The time in an identifier of this kind, in milliseconds since 1970; undefined for any other text. */
export function timeOfId(kind: Kind, id: string): number | undefined {
  const digits = id.slice(kind.length + 1);
  if (!id.startsWith(`${kind}_`) || !DIGITS.test(digits)) return undefined;
  return Number.parseInt(digits.slice(0, TIME_DIGITS), 16);
}
