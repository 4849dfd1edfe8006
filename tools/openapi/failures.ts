import { FAILURES, type FailureKind } from "../../src/failure.ts";
import type { Schema } from "./schema.ts";

/** The methods that can fail with each kind, by the local name of the RPC. Empty for failures of other APIs. */
const CALLS: Readonly<Record<FailureKind, readonly string[]>> = {
  invalid_json: ["generate", "streamGenerate"],
  malformed_request: ["generate", "streamGenerate", "quotas", "metrics"],
  request_incomplete: ["generate", "streamGenerate"],
  headers_too_large: ["generate", "streamGenerate", "quotas", "metrics"],
  unauthenticated: ["generate", "streamGenerate", "quotas", "metrics"],
  insufficient_credit: ["generate", "streamGenerate"],
  missing_scope: ["generate", "streamGenerate", "quotas", "metrics"],
  // Only the console checks the origin.
  foreign_origin: [],
  unsupported_compression: [],
  not_found: [],
  // Only requests of owners and operators name entities.
  unknown_entity: [],
  method_not_allowed: [],
  idempotency_key_in_use: ["generate"],
  request_too_large: ["generate", "streamGenerate"],
  unsupported_media_type: ["generate", "streamGenerate"],
  invalid_request: ["generate", "streamGenerate", "metrics"],
  content_refused: ["generate", "streamGenerate"],
  request_too_long: ["generate", "streamGenerate"],
  idempotency_key_reused: ["generate"],
  invalid_response_schema: ["generate"],
  structured_output_streaming_not_supported: ["streamGenerate"],
  rate_limited: ["generate", "streamGenerate"],
  spend_limit_reached: ["generate", "streamGenerate"],
  structured_output_failed: ["generate"],
  upstream_failed: ["generate", "streamGenerate"],
  overloaded: ["generate", "streamGenerate", "quotas", "metrics"],
  timed_out: ["generate", "streamGenerate"],
  internal: ["generate", "streamGenerate", "quotas", "metrics"],
};

/** Failures of unknown paths and methods. */
const NO_CALL: readonly FailureKind[] = ["not_found", "method_not_allowed"];

/** Every failure of the REST API. */
const KINDS = (Object.keys(FAILURES) as FailureKind[]).filter(
  (kind) => CALLS[kind].length > 0 || NO_CALL.includes(kind),
);

/** Members of an example besides the code and the default message. */
const DETAILS: Readonly<Partial<Record<FailureKind, Schema>>> = {
  idempotency_key_in_use: { retry_after_ms: 1_000 },
  invalid_request: { message: "temperature must be a number from 0.0 to 2.0.", field: "temperature" },
  invalid_response_schema: {
    message: 'The keyword "pattern" is not supported. Leave it out, or say in "description" what is wanted.',
    field: "response_format.schema.properties.email",
  },
  structured_output_streaming_not_supported: { field: "response_format" },
  request_too_long: { field: "prompt" },
  rate_limited: { limit: "requests_per_minute", retry_after_ms: 22_417 },
  spend_limit_reached: { retry_after_ms: 41_027_904 },
  overloaded: { retry_after_ms: 1_000 },
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

const EXAMPLE_ID = "req_2f1c7a54b0d94f0e8a3c5d7e9b1f2a36";

/** The failure responses of a method by status, with an example of every failure. */
export function failureResponses(call: string): Schema {
  const kinds = KINDS.filter((kind) => CALLS[kind].includes(call));
  const statuses = [...new Set(kinds.map((kind) => FAILURES[kind].http))].sort((a, b) => a - b);
  const responses = statuses.map((status) => [
    String(status),
    response(kinds.filter((kind) => FAILURES[kind].http === status)),
  ]);
  return {
    ...Object.fromEntries(responses),
    default: {
      ...response(NO_CALL),
      description:
        "Unknown path or method; `Allow` lists the methods of a known path. Any other failure has the same body.",
    },
  };
}

/** The failures as a Markdown list, which fits into narrow columns better than a table. */
export function failureList(): string {
  return KINDS.map(
    (kind) => `- ${FAILURES[kind].http} \`${codeOf(kind) ?? "(no code)"}\`: ${FAILURES[kind].message}`,
  ).join("\n");
}

function response(kinds: readonly FailureKind[]): Schema {
  const codes = kinds.map(codeOf);
  const waits = kinds.some((kind) => DETAILS[kind]?.retry_after_ms !== undefined);
  return {
    description: kinds.map((kind) => `- \`${codeOf(kind) ?? "(no code)"}\`: ${FAILURES[kind].message}`).join("\n"),
    headers: {
      "X-Request-Id": { $ref: "#/components/headers/X-Request-Id" },
      ...(waits ? { "Retry-After": { $ref: "#/components/headers/Retry-After" } } : {}),
    },
    content: {
      "application/json": {
        schema: {
          $ref: "#/components/schemas/Failure",
          ...(codes.includes(undefined) ? {} : { required: ["code"] }),
          properties: { code: { enum: codes.filter((code) => code !== undefined) } },
        },
        examples: Object.fromEntries(kinds.map((kind) => [kind, { value: example(kind) }])),
      },
    },
  };
}

function example(kind: FailureKind): Schema {
  const code = codeOf(kind);
  const { message = FAILURES[kind].message, ...rest } = DETAILS[kind] ?? {};
  return { ...(code === undefined ? {} : { code }), message, request_id: EXAMPLE_ID, ...rest };
}

function codeOf(kind: FailureKind): string | undefined {
  const row = FAILURES[kind];
  return "code" in row ? row.code : undefined;
}
