import { FAILURES, Failure, type FailureInit, type FailureKind } from "../../src/failure.ts";
import { type FailureResponse, ownFailure } from "../../src/transport/failure-body.ts";
import { openaiCode, openaiFailure } from "../../src/transport/openai/failure.ts";
import type { Schema } from "./schema.ts";

/** The methods that take a prompt, and all methods, by the local name of the RPC. */
const PROMPTS = ["generate", "streamGenerate"];
const REPEATABLE = ["generate"];
const ALL = [...PROMPTS, "quotas", "metrics", "listModels", "getModel"];

/** The methods that can fail with each kind. Empty for failures of other APIs. */
const CALLS: Readonly<Record<FailureKind, readonly string[]>> = {
  invalid_json: PROMPTS,
  malformed_request: ALL,
  request_incomplete: PROMPTS,
  headers_too_large: ALL,
  unauthenticated: ALL,
  insufficient_credit: PROMPTS,
  missing_scope: ALL,
  // Only the console checks the origin.
  foreign_origin: [],
  unsupported_compression: [],
  not_found: [],
  // The other entities are named in requests of owners and operators.
  unknown_entity: ["getModel"],
  method_not_allowed: [],
  idempotency_key_in_use: REPEATABLE,
  request_too_large: PROMPTS,
  unsupported_media_type: PROMPTS,
  invalid_request: [...PROMPTS, "metrics"],
  content_refused: PROMPTS,
  request_too_long: PROMPTS,
  idempotency_key_reused: REPEATABLE,
  invalid_response_schema: REPEATABLE,
  structured_output_streaming_not_supported: ["streamGenerate"],
  rate_limited: PROMPTS,
  spend_limit_reached: PROMPTS,
  structured_output_failed: REPEATABLE,
  upstream_failed: PROMPTS,
  overloaded: ALL,
  timed_out: PROMPTS,
  internal: ALL,
};

/** Failures of unknown paths and methods. */
const NO_CALL: readonly FailureKind[] = ["not_found", "method_not_allowed"];

/** Every failure of the REST API. */
const KINDS = (Object.keys(FAILURES) as FailureKind[]).filter(
  (kind) => CALLS[kind].length > 0 || NO_CALL.includes(kind),
);

/** What an example has besides the code and the default message. */
const DETAILS: Readonly<Partial<Record<FailureKind, FailureInit>>> = {
  idempotency_key_in_use: { retryAfterMs: 1_000 },
  invalid_request: { message: "temperature must be a number from 0.0 to 2.0.", field: "temperature" },
  invalid_response_schema: {
    message: 'The keyword "pattern" is not supported. Leave it out, or say in "description" what is wanted.',
    field: "response_format.schema.properties.email",
  },
  structured_output_streaming_not_supported: { field: "response_format" },
  request_too_long: { field: "messages" },
  rate_limited: { limit: "requests_per_minute", retryAfterMs: 22_417 },
  spend_limit_reached: { retryAfterMs: 41_027_904 },
  overloaded: { retryAfterMs: 1_000 },
};

/** How an API writes failures. */
export interface FailureFormat {
  respond(failure: Failure): FailureResponse;
  /** The code in the body of a failure that has this code of ours. */
  code(own: string | undefined): string | undefined;
  /** The schema of the body, narrowed to failures with these codes. */
  schema(codes: readonly (string | undefined)[]): Schema;
  /** Whether each response has an example of each of its failures. */
  readonly hasExamples: boolean;
}

const EXAMPLE_ID = "req_2f1c7a54b0d94f0e8a3c5d7e9b1f2a36";

export const OWN_FORMAT: FailureFormat = {
  respond: (failure) => ownFailure(failure, EXAMPLE_ID),
  hasExamples: true,
  code: (own) => own,
  schema: (codes) => ({
    $ref: "#/components/schemas/Failure",
    ...(codes.includes(undefined) ? {} : { required: ["code"] }),
    properties: { code: { enum: codes.filter((code) => code !== undefined) } },
  }),
};

export const OPENAI_FORMAT: FailureFormat = {
  respond: openaiFailure,
  // The failures are those of the other paths.
  hasExamples: false,
  code: openaiCode,
  schema: () => ({ $ref: "#/components/schemas/ChatFailure" }),
};

export const FAILURE_SCHEMA: Schema = {
  type: "object",
  description: "The body of every failure. Members that do not apply are omitted.",
  required: ["message", "request_id"],
  properties: {
    code: {
      type: "string",
      enum: [...new Set(KINDS.map(codeOf))].filter((code) => code !== undefined),
      description: "Stable, machine-readable code. Omitted for a rate limit.",
    },
    message: { type: "string", description: "What happened and what to do. The wording may change." },
    request_id: { type: "string", description: "Identifier of the request, prefix `req_`; also in `X-Request-Id`." },
    field: { type: "string", description: "Path of the invalid field, such as `messages[3].role`." },
    limit: { type: "string", description: "Name of the exceeded limit, such as `requests_per_minute`." },
    retry_after_ms: {
      type: "integer",
      format: "int64",
      minimum: 0,
      description:
        "Milliseconds after which the same request may succeed; `Retry-After` has whole seconds, rounded up.",
    },
  },
};

export const CHAT_FAILURE_SCHEMA: Schema = {
  type: "object",
  description: "The body of every failure in OpenAI's format.",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      description: "The failure.",
      required: ["message", "type", "param", "code"],
      properties: {
        message: { type: "string", description: "What happened and what to do. The wording may change." },
        type: { type: "string", description: "Class of the failure, such as `invalid_request_error`." },
        param: {
          type: ["string", "null"],
          description: "The parameter that is not valid or not supported, such as `messages[3].role`.",
        },
        code: { type: "string", description: "Stable, machine-readable code." },
      },
    },
  },
};

/** The failure responses of a method by status, with an example of every failure. */
export function failureResponses(call: string, format: FailureFormat): Schema {
  const byStatus = new Map<number, FailureKind[]>();
  for (const kind of KINDS.filter((kind) => CALLS[kind].includes(call))) {
    const { status } = format.respond(new Failure(kind));
    byStatus.set(status, [...(byStatus.get(status) ?? []), kind]);
  }
  const responses = [...byStatus].map(([status, kinds]) => [String(status), response(kinds, format)]);
  return {
    ...Object.fromEntries(responses),
    default: {
      ...response(NO_CALL, format),
      description:
        "Unknown path or method; `Allow` lists the methods of a known path. Any other failure has the same body.",
    },
  };
}

/** The failures as a Markdown list, which fits into narrow columns better than a table. */
export function failureList(): string {
  return KINDS.filter((kind) => kind !== "unknown_entity")
    .map((kind) => `- ${FAILURES[kind].http} \`${codeOf(kind) ?? "(no code)"}\`: ${FAILURES[kind].message}`)
    .join("\n");
}

function response(kinds: readonly FailureKind[], { respond, code, schema, hasExamples }: FailureFormat): Schema {
  const codes = [...new Set(kinds.map((kind) => code(codeOf(kind))))];
  const list = kinds.map((kind) => `- \`${code(codeOf(kind)) ?? "(no code)"}\`: ${FAILURES[kind].message}`);
  const waits = kinds.some((kind) => DETAILS[kind]?.retryAfterMs !== undefined);
  const example = (kind: FailureKind) => ({ value: JSON.parse(respond(new Failure(kind, DETAILS[kind])).text) });
  return {
    description: list.join("\n"),
    headers: {
      "X-Request-Id": { $ref: "#/components/headers/X-Request-Id" },
      ...(waits ? { "Retry-After": { $ref: "#/components/headers/Retry-After" } } : {}),
    },
    content: {
      "application/json": {
        schema: schema(codes),
        ...(hasExamples ? { examples: Object.fromEntries(kinds.map((kind) => [kind, example(kind)])) } : {}),
      },
    },
  };
}

function codeOf(kind: FailureKind): string | undefined {
  const row = FAILURES[kind];
  return "code" in row ? row.code : undefined;
}
