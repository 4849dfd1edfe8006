import { type GenerateRequest, GenerateRequestSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { decodeMessages } from "../anthropic/decode.ts";
import type { BodyForm, Decoded } from "../call/format.ts";
import { decodeMessage } from "../connect/decode.ts";
import { decodeChat } from "../openai/decode.ts";
import { decodeResponse } from "../responses/decode.ts";
import { decodeBody } from "../rest/decode.ts";

/** Decodes a prompt of any form. @throws Failure invalid_json; invalid_request naming the field */
export function decodePrompt(bytes: Uint8Array, form: BodyForm): Decoded<GenerateRequest> {
  switch (form.name) {
    case "rest":
      return decodeBody(GenerateRequestSchema, bytes);
    case "anthropic":
      return decodeMessages(bytes);
    case "openai":
      return decodeChat(bytes);
    case "responses":
      return decodeResponse(bytes);
    default:
      return decodeMessage(GenerateRequestSchema, bytes, form);
  }
}
