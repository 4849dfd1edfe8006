import { FAILURES, Failure, type FailureInit, type FailureKind } from "../../src/contract/failure.ts";
import { failureJson } from "../../src/contract/failure-json.ts";
import { FOREIGN_FORMATS, type ForeignFormat } from "./foreign.ts";
import { openWord, type Schema } from "./schema.ts";

/** The methods that take a prompt, by the local name of the RPC. */
const GENERATING = ["generate", "streamGenerate", "createChatCompletion", "createResponse", "createMessage"];
export const PROMPTS = [...GENERATING, "countMessageTokens"];
/** The methods whose requests may have an idempotency key. */
export const REPEATABLE = ["generate", "createChatCompletion", "createResponse", "createMessage"];
/** The methods with a body. */
const BODIES = [...PROMPTS, "recordOutcome"];
const LOOK_UPS = ["getModel", "getMessageModel", "getGeneration"];
const ALL = [...BODIES, ...LOOK_UPS, "quotas", "metrics", "listModels", "listMessageModels"];

/** The methods that can fail with each kind. Empty for failures of other APIs. */
const CALLS: Readonly<Record<FailureKind, readonly string[]>> = {
  invalid_json: BODIES,
  malformed_request: ALL,
  request_incomplete: BODIES,
  // Only the query of these can be long.
  target_too_long: ["metrics"],
  headers_too_large: ALL,
  unauthenticated: ALL,
  insufficient_credit: PROMPTS,
  missing_scope: ALL,
  // Only the console checks the origin.
  foreign_origin: [],
  unsupported_compression: BODIES,
  not_found: [],
  // The other entities are named in requests of owners and operators.
  unknown_entity: [...LOOK_UPS, "recordOutcome"],
  method_not_allowed: [],
  idempotency_key_in_use: REPEATABLE,
  request_too_large: BODIES,
  unsupported_media_type: BODIES,
  invalid_request: [...BODIES, "metrics", "quotas", "listMessageModels"],
  content_refused: GENERATING,
  request_too_long: PROMPTS,
  idempotency_key_reused: REPEATABLE,
  invalid_response_schema: REPEATABLE,
  structured_output_streaming_not_supported: ["streamGenerate"],
  rate_limited: PROMPTS,
  spend_limit_reached: PROMPTS,
  structured_output_failed: REPEATABLE,
  upstream_failed: GENERATING,
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
};

const EXAMPLE_ID = "req_2f1c7a54b0d94f0e8a3c5d7e9b1f2a36";

export const FAILURE_CODE_SCHEMA: Schema = {
  type: "string",
  enum: [...new Set(KINDS.map(codeOf))].filter((code) => code !== undefined),
  description: "Why a request failed. Each response of a failure lists its codes.",
};

export const FAILURE_SCHEMA: Schema = {
  type: "object",
  description: "The body of every failure. Members that do not apply are omitted.",
  required: ["message", "request_id"],
  properties: {
    code: { ...openWord("FailureCode"), description: "Stable, machine-readable code. Omitted for a rate limit." },
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

/** Name of the response of a failure whose format a header of the request chooses. */
const ASKED = "AskedFailure";

/**
 * The failure responses of a method in the format of another API by status. All share one response, except of headers
 * that are too large: they are refused before the path is known, with the flat body.
 * @param isAsked whether a header of the request asks for the format
 */
export function foreignFailureResponses(call: string, { statusOf, failure }: ForeignFormat, isAsked: boolean): Schema {
  const shared = { $ref: `#/components/responses/${isAsked ? ASKED : failure}` };
  const kinds = KINDS.filter((kind) => CALLS[kind].includes(call));
  const responses = kinds.map((kind) => [statusOf(kind), kind === "headers_too_large" ? response([kind]) : shared]);
  return { ...Object.fromEntries(responses), default: shared };
}

/** The responses of failures in the formats of other APIs, by name. */
export function foreignFailureComponents(): Schema {
  const headers = [...new Set(FOREIGN_FORMATS.flatMap((format) => format.headers))];
  const anyOf = FOREIGN_FORMATS.map(({ failure }) => ({ $ref: `#/components/schemas/${failure}` }));
  return {
    ...Object.fromEntries(
      FOREIGN_FORMATS.map(({ failure, failureText, headers }) => {
        return [failure, foreignResponse(failureText, headers, { $ref: `#/components/schemas/${failure}` })];
      }),
    ),
    [ASKED]: foreignResponse("A failure in the format that the request asks for.", headers, { anyOf }),
  };
}

function foreignResponse(description: string, headers: readonly string[], schema: Schema): Schema {
  return {
    description,
    headers: headersOf(["X-Request-Id", ...headers, "Retry-After", "X-Should-Retry"]),
    content: { "application/json": { schema } },
  };
}

/** The failures as a Markdown list, which fits into narrow columns better than a table. */
export function failureList(): string {
  return KINDS.filter((kind) => kind !== "unknown_entity")
    .map((kind) => `- ${FAILURES[kind].http} \`${codeOf(kind) ?? "(no code)"}\`: ${FAILURES[kind].message}`)
    .join("\n");
}

function response(kinds: readonly FailureKind[]): Schema {
  const codes = [...new Set(kinds.map(codeOf))];
  const waits = kinds.some((kind) => new Failure(kind, DETAILS[kind]).retryAfterMs !== undefined);
  return {
    description: kinds.map((kind) => `- \`${codeOf(kind) ?? "(no code)"}\`: ${FAILURES[kind].message}`).join("\n"),
    headers: headersOf(waits ? ["X-Request-Id", "Retry-After"] : ["X-Request-Id"]),
    content: {
      "application/json": {
        schema: {
          $ref: "#/components/schemas/Failure",
          ...(codes.includes(undefined) ? {} : { required: ["code"] }),
        },
        examples: Object.fromEntries(kinds.map((kind) => [kind, { value: example(kind) }])),
      },
    },
  };
}

/** The body as the service writes it. */
function example(kind: FailureKind): unknown {
  return JSON.parse(failureJson(new Failure(kind, DETAILS[kind]), EXAMPLE_ID));
}

/** References to headers of the document. */
export function headersOf(names: readonly string[]): Schema {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function codeOf(kind: FailureKind): string | undefined {
  const row = FAILURES[kind];
  return "code" in row ? row.code : undefined;
}
