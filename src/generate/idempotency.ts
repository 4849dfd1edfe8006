import { hash, hkdfSync } from "node:crypto";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type GenerateResponse, GenerateResponseSchema } from "../../gen/chorus/v1/generation_pb.js";
import { invalidField } from "../contract/failure.ts";
import { seal, unseal } from "../contract/seal.ts";
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
    throw invalidField("Idempotency-Key", `must be 1 to ${MAX_KEY} visible ASCII characters, such as a UUID.`);
  }
  const { workspaceId } = context.caller;
  const { user, tags } = context.subjects;
  const secret = new Uint8Array(hkdfSync("sha256", key, workspaceId, "chorus answer", 32));
  return {
    key: hash("sha256", `${workspaceId}\n${key}`),
    body: user === undefined && tags === undefined ? digest : hash("sha256", JSON.stringify([digest, user, tags])),
    seal: (response) => seal(secret, toBinary(GenerateResponseSchema, response)),
    open: (sealed) => fromBinary(GenerateResponseSchema, unseal(secret, sealed)),
  };
}
