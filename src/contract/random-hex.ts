import { randomFillSync } from "node:crypto";

const BYTES = 16;
/** Random bytes for the next identifiers, because a call for each takes several times as long. */
const pool = Buffer.allocUnsafeSlow(256 * BYTES);
let used = pool.length;

/** Makes 32 random hexadecimal digits, for an identifier. */
export function randomHex(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += BYTES;
  return pool.toString("hex", used - BYTES, used);
}
