import { hash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_BYTES = 20;
/** 62^27 > 2^160 and 62^6 > 2^32. */
const RANDOM_WIDTH = 27;
const CHECK_WIDTH = 6;

/** A longer text is no secret, and is refused without a look-up. */
export const MAX_SECRET_LENGTH = 512;

/**
 * `ck_` for API keys, `op_` for operator tokens, `ow_` for owner tokens, `cs_` for sessions of owners in the console,
 * `os_` for those of operators, `ps_` for those of people, `li_` for links that open a session of an owner, `in_` for
 * invitations.
 */
export type SecretPrefix = "ck_" | "op_" | "ow_" | "cs_" | "os_" | "ps_" | "li_" | "in_";

/** Creates a secret of 36 characters: the prefix, 160 random bits and their CRC-32, in base 62. */
export function createSecret(prefix: SecretPrefix): string {
  const body = prefix + base62(BigInt(`0x${randomBytes(RANDOM_BYTES).toString("hex")}`), RANDOM_WIDTH);
  return body + checksum(body);
}

/**
 * Whether a text has the format and checksum of a generated secret, so that a client can report a typing error. The
 * server accepts other secrets too: one that an operator chose has no checksum.
 */
export function isWellFormed(secret: string, prefix: SecretPrefix): boolean {
  const body = secret.slice(0, -CHECK_WIDTH);
  return (
    secret.startsWith(prefix) &&
    body.length === prefix.length + RANDOM_WIDTH &&
    secret.slice(-CHECK_WIDTH) === checksum(body)
  );
}

/**
 * SHA-256 of a secret, which is stored instead of it. No slow hash is needed, because 160 random bits cannot be
 * guessed.
 */
export function hashSecret(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}

/** First characters of a secret, shown in lists. At most a quarter, so that a short chosen secret stays strong. */
export function prefixOf(secret: string): string {
  return secret.slice(0, Math.min(9, Math.floor(secret.length / 4)));
}

function checksum(body: string): string {
  return base62(BigInt(crc32(body)), CHECK_WIDTH);
}

function base62(value: bigint, width: number): string {
  let text = "";
  for (let rest = value; rest > 0n; rest /= 62n) text = ALPHABET.charAt(Number(rest % 62n)) + text;
  return text.padStart(width, "0");
}
