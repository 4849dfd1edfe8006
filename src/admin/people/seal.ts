import { hkdfSync } from "node:crypto";
import * as aes from "../../contract/seal.ts";

/**
 * Encrypts a text with AES-256-GCM under a key that HKDF (RFC 5869) derives from a secret. The database has only the
 * hash of the secret, so the text cannot be read without whoever has it.
 */
export function seal(secret: string, text: string): Buffer {
  return aes.seal(keyOf(secret), Buffer.from(text));
}

/** Decrypts what `seal` made. @throws Error when it was made with another secret */
export function unseal(secret: string, sealed: Buffer): string {
  return aes.unseal(keyOf(secret), sealed).toString();
}

function keyOf(secret: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, "", "chorus provider tokens", 32));
}
