import { fromBinary, fromJsonString } from "@bufbuild/protobuf";
import { type GenerateRequest, GenerateRequestSchema } from "../../gen/chorus/v1/generation_pb.js";
import { Failure, invalid } from "../failure.ts";
import { decode } from "./rest/decode.ts";

/** How a request is written: as JSON of the public contract, as protobuf JSON, or as protobuf. */
export type Format = "rest" | "json" | "proto";

export interface DecodedRequest {
  readonly request: GenerateRequest;
  /** Paths of the first unknown members, and the number of the others. Empty for the formats of RPC. */
  readonly unknown: readonly string[];
  readonly more: number;
}

/** Bytes before a message of gRPC, gRPC-Web or a Connect stream. */
const PREFIX = 5;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Takes the message out of a body of gRPC, gRPC-Web or a Connect stream: one flag, four bytes of length, the message.
 * @throws Failure invalid_request
 */
export function unwrap(body: Uint8Array): Uint8Array {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  const isOne = body.length >= PREFIX && view.getUint8(0) === 0 && view.getUint32(1) === body.length - PREFIX;
  if (!isOne) throw invalid("", "The body must be one message without compression.");
  return body.subarray(PREFIX);
}

/**
 * Decodes a request.
 * @throws Failure invalid_json; invalid_request naming the field
 */
export function decodeRequest(bytes: Uint8Array, format: Format): DecodedRequest {
  if (format === "rest") {
    const text = decodeText(bytes);
    const { message, unknown, more } = decode(GenerateRequestSchema, text, parseBody(text));
    return { request: message, unknown, more };
  }
  return { request: format === "json" ? fromJson(bytes) : fromProto(bytes), unknown: [], more: 0 };
}

/** Decodes UTF-8 without its byte order mark. @throws Failure invalid_json */
export function decodeText(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Failure("invalid_json", { message: "The body is not valid UTF-8. Encode it as UTF-8." });
  }
}

/**
 * Parses a body that must be one JSON object.
 * @throws Failure invalid_json
 */
export function parseBody(text: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Failure("invalid_json", { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Failure("invalid_json");
  return value;
}

function fromJson(bytes: Uint8Array): GenerateRequest {
  const text = decodeText(bytes);
  try {
    return fromJsonString(GenerateRequestSchema, text, { ignoreUnknownFields: true });
  } catch (cause) {
    throw new Failure("invalid_json", { message: "The body is not a valid message of this method as JSON.", cause });
  }
}

function fromProto(bytes: Uint8Array): GenerateRequest {
  try {
    return fromBinary(GenerateRequestSchema, bytes);
  } catch {
    throw invalid("", "The body is not a valid protobuf message of this method.");
  }
}
