import { type GenerateRequest, GenerateRequestSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { Failure } from "../../contract/failure.ts";
import { parseMessage } from "../connect/decode.ts";
import { type ChatTerms, decodeChat } from "../openai/decode.ts";
import { decode } from "../rest/decode.ts";
import { invalidJson } from "./invalid-json.ts";
import type { UnknownMembers } from "./unknown-members.ts";

/** How a request is written: as JSON of the public contract, as OpenAI's JSON, as protobuf JSON, or as protobuf. */
export type Format = "rest" | "openai" | "json" | "proto";

/** The unknown members are those of the formats `rest` and `json`. */
export interface DecodedRequest extends Readonly<UnknownMembers> {
  readonly request: GenerateRequest;
  /** Set for the format `openai`. */
  readonly chat?: ChatTerms;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Decodes a request.
 * @throws Failure invalid_json; invalid_request naming the field
 */
export function decodeRequest(bytes: Uint8Array, format: Format): DecodedRequest {
  if (format === "rest" || format === "openai") {
    const text = decodeText(bytes);
    const value = parseBody(text);
    if (format === "openai") return { ...decodeChat(text, value), unknown: [], more: 0 };
    const { message, unknown, more } = decode(GenerateRequestSchema, text, value);
    return { request: message, unknown, more };
  }
  const found: UnknownMembers = { unknown: [], more: 0 };
  return { request: parseMessage(GenerateRequestSchema, bytes, format === "json", found), ...found };
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
    throw invalidJson(cause);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Failure("invalid_json");
  return value;
}
