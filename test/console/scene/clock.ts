import { timestampFromMs } from "@bufbuild/protobuf/wkt";

/** The time that every scene shows. */
export const NOW = Date.parse("2026-03-14T09:26:53Z");

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

/** A time before now. @param ms milliseconds */
export const ago = (ms: number) => timestampFromMs(NOW - ms);

/** A time after now. @param ms milliseconds */
export const later = (ms: number) => timestampFromMs(NOW + ms);

/** A number from 0 to 1 that depends on `n` only. */
export function noise(n: number): number {
  const x = Math.sin(n * 12.9898) * 43_758.5453;
  return x - Math.floor(x);
}
