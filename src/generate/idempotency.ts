import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type GenerateResponse, GenerateResponseSchema } from "../../gen/chorus/v1/generation_pb.js";
import { invalid } from "../contract/failure.ts";
import type { RequestContext } from "./request-context.ts";

/** Identifies a repeated request and encrypts its stored answer. */
export interface Idempotency {
  /** SHA-256 of the workspace and the key, in hex. */
  readonly key: string;
  /** SHA-256 of the request, with the headers that are a part of it, in hex. */
  readonly body: string;
  /** Encrypts a response for the store. */
  seal(response: GenerateResponse): Uint8Array;
  /** Decrypts a stored response. @throws Error when it was stored under another idempotency key */
  open(sealed: Uint8Array): GenerateResponse;
}

/** Longest idempotency key, in characters. */
const MAX_KEY = 255;
const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Reads the idempotency key of a unary request: 1 to 255 visible ASCII characters. The stored answer is encrypted with
 * AES-256-GCM under a key that HKDF (RFC 5869) derives from the idempotency key. The store has only a hash of that key,
 * so the answer cannot be read without the caller.
 * @param digest SHA-256 of the request, in hex
 * @returns undefined when the request has no key
 * @throws Failure `invalid_request` naming the header.
 */
export function readIdempotencyKey(digest: string | undefined, context: RequestContext): Idempotency | undefined {
  const { idempotencyKey: key } = context;
  if (key === undefined || digest === undefined) return undefined;
  if (key.length > MAX_KEY || !/^[\x21-\x7e]+$/.test(key)) {
    throw invalid(
      "Idempotency-Key",
      `Idempotency-Key must be 1 to ${MAX_KEY} visible ASCII characters, such as a UUID.`,
    );
  }
  const { workspaceId } = context.caller;
  const { user, tags } = context.subjects;
  const secret = new Uint8Array(hkdfSync("sha256", key, workspaceId, "chorus answer", 32));
  return {
    key: sha256(`${workspaceId}\n${key}`),
    body: user === undefined && tags === undefined ? digest : sha256(JSON.stringify([digest, user, tags])),
    seal(response) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, secret, nonce);
      return Buffer.concat([
        nonce,
        cipher.update(toBinary(GenerateResponseSchema, response)),
        cipher.final(),
        cipher.getAuthTag(),
      ]);
    },
    open(sealed) {
      const decipher = createDecipheriv(CIPHER, secret, sealed.subarray(0, NONCE_BYTES));
      decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
      const decrypted = Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
      return fromBinary(GenerateResponseSchema, decrypted);
    },
  };
}

function sha256(data: string): string {
  return createHash("sha256").update(data).digest("hex");
}
