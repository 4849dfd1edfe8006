import { MAX_OUTPUT_TOKENS } from "../../src/contract/terms.ts";
import type { Schema } from "./schema.ts";

/**
 * Bounds of request fields, which the service checks in `src/generate/validate-request.ts`. A test sends a value at
 * each bound and one beyond it to a running service.
 */
export const BOUNDS: Readonly<Record<string, Schema>> = {
  "GenerateRequest.prompt": { minLength: 1, maxLength: 200_000 },
  "GenerateRequest.messages": { maxItems: 40 },
  "GenerateRequest.attachments": { maxItems: 5 },
  "GenerateRequest.temperature": { minimum: 0, maximum: 2 },
  "GenerateRequest.max_tokens": { minimum: 1, maximum: MAX_OUTPUT_TOKENS },
  "GenerateRequest.stop_sequences": { maxItems: 4, items: { type: "string", minLength: 1 } },
  "GenerateRequest.user": { maxLength: 128 },
  "GenerateRequest.tags": {
    maxProperties: 8,
    propertyNames: { pattern: "^[a-z0-9_.-]{1,32}$" },
    additionalProperties: { type: "string", minLength: 1, maxLength: 64 },
  },
  "GenerateRequest.tools": { maxItems: 128 },
  "Tool.name": { pattern: "^[A-Za-z0-9_-]{1,64}$" },
  "ToolCall.id": { minLength: 1, maxLength: 256 },
  "RecordOutcomeRequest.score": { minimum: 0, maximum: 1 },
  "RecordOutcomeRequest.expected": { maxLength: 20_000 },
  "Attachment.name": { maxLength: 255 },
  "Attachment.data": { minLength: 1 },
  "CreateMessageRequest.messages": { minItems: 1 },
  "CreateMessageRequest.max_tokens": { minimum: 1 },
  "CreateMessageRequest.temperature": { minimum: 0, maximum: 2 },
  "CreateMessageRequest.stop_sequences": { maxItems: 4, items: { type: "string", minLength: 1 } },
  "CreateChatCompletionRequest.messages": { minItems: 1 },
  "CreateChatCompletionRequest.max_completion_tokens": { minimum: 1, maximum: MAX_OUTPUT_TOKENS },
  "CreateChatCompletionRequest.max_tokens": { minimum: 1, maximum: MAX_OUTPUT_TOKENS },
  "CreateChatCompletionRequest.temperature": { minimum: 0, maximum: 2 },
  "CreateChatCompletionRequest.stop": {
    anyOf: [{ type: "string" }, { type: "array", maxItems: 4, items: { type: "string", minLength: 1 } }],
  },
  "CreateChatCompletionRequest.user": { maxLength: 128 },
  "CreateChatCompletionRequest.safety_identifier": { maxLength: 128 },
  "CreateChatCompletionRequest.n": { const: 1 },
  "CreateResponseRequest.input": { minItems: 1 },
  "CreateResponseRequest.max_output_tokens": { minimum: 1, maximum: MAX_OUTPUT_TOKENS },
  "CreateResponseRequest.temperature": { minimum: 0, maximum: 2 },
  "CreateResponseRequest.user": { maxLength: 128 },
  "CreateResponseRequest.safety_identifier": { maxLength: 128 },
};

/** Any object. Without `additionalProperties`, generators such as `openapi-typescript` take it for an empty one. */
const ANY_OBJECT: Schema = { type: "object", additionalProperties: true };

/** Schemas of members that hold JSON text in the proto files: in requests an object, in responses also null. */
export const INLINE = {
  request: ANY_OBJECT,
  response: { ...ANY_OBJECT, type: ["object", "null"] },
  /** Those that differ. */
  others: {
    "AnswerBlock.input": ANY_OBJECT,
    "StreamGenerateResponseToolCall.arguments": ANY_OBJECT,
    "Response.tools": { type: "array", items: ANY_OBJECT },
    "Response.tool_choice": { ...ANY_OBJECT, type: ["string", "object", "null"] },
  } as Readonly<Record<string, Schema>>,
} as const;

/**
 * Members that can be left out: of responses, lists, which cannot be `optional` in the proto files, and nullable ones;
 * of requests, the tag of a union.
 */
export const OPTIONAL: ReadonlySet<string> = new Set([
  "ChatCompletionChunk.notices",
  "ChatCompletionChunk.usage",
  "MessageDelta.stop_sequence",
  "MessageEvent.notices",
  "ResponseEvent.logprobs",
  "ResponseEvent.param",
  "ResponseInputItem.type",
  "ResponseOutputItem.content",
]);
