import type { DescService } from "@bufbuild/protobuf";
import { Failure, type FailureKind } from "../../src/contract/failure.ts";
import { anthropicFailure } from "../../src/transport/anthropic/failure.ts";
import { openaiFailure } from "../../src/transport/openai/failure.ts";
import type { Schema } from "./schema.ts";

/** A format of another API, which one service describes. */
export interface ForeignFormat {
  /** Whose format it is, with the genitive. */
  readonly owner: string;
  /** Name of the schema and of the response of its failures. */
  readonly failure: string;
  readonly failureSchema: Schema;
  /** How its failures differ from those of the other paths. */
  readonly failureText: string;
  statusOf(kind: FailureKind): number;
  /** The headers by which a request asks for the format, where a path has several: as parameters. */
  readonly asked: readonly Schema[];
  /** Further headers of each response. */
  readonly headers: readonly string[];
  /** What ends a stream. */
  readonly streamText: string;
}

const MESSAGE: Schema = { type: "string", description: "What happened and what to do. The wording may change." };
const TYPE: Schema = { type: "string", description: "Class of the failure, such as `invalid_request_error`." };

const OPENAI: ForeignFormat = {
  owner: "OpenAI's",
  failure: "ChatFailure",
  failureSchema: {
    type: "object",
    description: "The body of every failure in OpenAI's format.",
    required: ["error"],
    properties: {
      error: {
        type: "object",
        description: "The failure.",
        required: ["message", "type", "param", "code"],
        properties: {
          message: MESSAGE,
          type: TYPE,
          param: {
            type: ["string", "null"],
            description: "The parameter that is not valid or not supported, such as `messages[3].role`.",
          },
          code: { type: "string", description: "Stable, machine-readable code." },
        },
      },
    },
  },
  failureText:
    "A failure. It has the code of the same failure of the other paths; a rate limit has `rate_limit_exceeded`. " +
    "The status is the same too, with 400 in place of 422 for an invalid request.",
  statusOf: (kind) => openaiFailure(new Failure(kind)).status,
  asked: [],
  headers: [],
  streamText: ", of the last one `[DONE]`.",
};

const ANTHROPIC: ForeignFormat = {
  owner: "Anthropic's",
  failure: "MessageFailure",
  failureSchema: {
    type: "object",
    description: "The body of every failure in Anthropic's format.",
    required: ["type", "error", "request_id"],
    properties: {
      type: { type: "string", description: "Always `error`." },
      error: {
        type: "object",
        description: "The failure.",
        required: ["type", "message"],
        properties: { type: TYPE, message: MESSAGE },
      },
      request_id: { type: "string", description: "Identifier of the request, prefix `req_`; also in `request-id`." },
    },
  },
  failureText:
    "A failure. The status is that of the same failure of the other paths, with 400 in place of 422 for an invalid " +
    "request, and 529 in place of 503.",
  statusOf: (kind) => anthropicFailure(new Failure(kind), { requestId: "" }).status,
  asked: [
    {
      name: "anthropic-version",
      in: "header",
      description: "Any value asks for Anthropic's format. Parameters of the query count only there.",
      schema: { type: "string" },
    },
  ],
  headers: ["request-id"],
  streamText: ", whose `type` is the name of the event.",
};

/** The formats by the name of the service. */
const FORMATS: Readonly<Record<string, ForeignFormat>> = {
  ChatService: OPENAI,
  ResponsesService: { ...OPENAI, owner: "OpenAI's Responses", streamText: ", whose `type` is the name of the event." },
  MessagesService: ANTHROPIC,
};

/** One for each kind of failures. */
export const FOREIGN_FORMATS: readonly ForeignFormat[] = [OPENAI, ANTHROPIC];

/** The format of a service; undefined for the service's own. */
export function foreignFormat({ name }: DescService): ForeignFormat | undefined {
  return FORMATS[name];
}
