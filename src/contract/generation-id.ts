import { idAt, timeOfId } from "./time-id.ts";

/**
 * Makes the identifier of a generation: `gen_`, the time and 80 random bits. The time is in it because the table of
 * generations is ordered by time, so that a row is found without an index of identifiers.
 * @param now milliseconds since 1970
 */
export function newGenerationId(now = Date.now()): string {
  return idAt("gen", now);
}

/** The time in an identifier, in milliseconds since 1970; undefined for any other text. */
export function timeOfGeneration(id: string): number | undefined {
  return timeOfId("gen", id);
}
