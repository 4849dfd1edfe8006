import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type GenerateRequest,
  GenerateRequestSchema,
  type GenerateResponse,
  GenerateResponseSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import { invalid } from "../failure.ts";

/** A request that its caller may send again, and the safe in which its answer is kept. */
export interface Idempotency {
  /** SHA-256 of the workspace and the key, in hex. */
  readonly key: string;
  /** SHA-256 of the request, in hex. */
  readonly body: string;
  seal(response: GenerateResponse): Uint8Array;
  open(sealed: Uint8Array): GenerateResponse;
}

const MAX_KEY = 255;
const CIPHER = "aes-256-gcm";
const NONCE = 12;
const TAG = 16;

/**
 * Makes sense of an idempotency key: 1 to 255 visible ASCII characters. The answer is encrypted with a key that is derived from the caller's
 * (HKDF, RFC 5869; AES-256-GCM), and the store has only a hash of that, so what the store keeps cannot be read without the caller.
 * @throws Failure invalid_request naming the header.
 */
export function idempotency(workspaceId: string, key: string, request: GenerateRequest): Idempotency {
  if (key.length > MAX_KEY || !/^[\x21-\x7e]+$/.test(key)) {
    throw invalid(
      "Idempotency-Key",
      `Idempotency-Key must be 1 to ${MAX_KEY} visible ASCII characters. A UUID is a good one.`,
    );
  }
  const secret = new Uint8Array(hkdfSync("sha256", key, workspaceId, "chorus answer", 32));
  return {
    key: sha256(`${workspaceId}\n${key}`),
    body: sha256(toBinary(GenerateRequestSchema, request)),
    seal(response) {
      const nonce = randomBytes(NONCE);
      const cipher = createCipheriv(CIPHER, secret, nonce);
      return Buffer.concat([
        nonce,
        cipher.update(toBinary(GenerateResponseSchema, response)),
        cipher.final(),
        cipher.getAuthTag(),
      ]);
    },
    open(sealed) {
      const decipher = createDecipheriv(CIPHER, secret, sealed.subarray(0, NONCE));
      decipher.setAuthTag(sealed.subarray(-TAG));
      const plain = Buffer.concat([decipher.update(sealed.subarray(NONCE, -TAG)), decipher.final()]);
      return fromBinary(GenerateResponseSchema, plain);
    },
  };
}

function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}
