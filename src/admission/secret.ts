import { hash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_BYTES = 20;
/** 62^27 > 2^160 and 62^6 > 2^32. */
const RANDOM_WIDTH = 27;
const CHECK_WIDTH = 6;

/** `ck_` for API keys, `op_` for operator tokens, `ow_` for owner tokens, `cs_` for sessions of the console. */
export type SecretPrefix = "ck_" | "op_" | "ow_" | "cs_";

/** Makes a secret: the prefix, 160 random bits and their CRC-32, in base 62; always 36 characters. */
export function createSecret(prefix: SecretPrefix): string {
  const body = prefix + base62(BigInt(`0x${randomBytes(RANDOM_BYTES).toString("hex")}`), RANDOM_WIDTH);
  return body + checksum(body);
}

/**
 * Whether a text has the form and checksum of a secret that this service made, so that a typing error can be named without asking the
 * server. The server itself never refuses on it: a secret that an operator chose may begin with `ck_` too, and has no checksum.
 */
export function isWellFormed(secret: string, prefix: SecretPrefix): boolean {
  const body = secret.slice(0, -CHECK_WIDTH);
  return (
    secret.startsWith(prefix) &&
    body.length === prefix.length + RANDOM_WIDTH &&
    secret.slice(-CHECK_WIDTH) === checksum(body)
  );
}

/** SHA-256 of a secret: what is stored and looked up. A plain hash suffices, because 160 random bits cannot be guessed. */
export function hashSecret(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}

/** The first characters, for people to tell secrets apart: at most a quarter, so that a short chosen secret keeps its strength. */
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
