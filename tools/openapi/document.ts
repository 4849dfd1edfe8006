import { readFileSync } from "node:fs";
import { type DescField, type DescMethod, type DescService, type FileRegistry, getOption } from "@bufbuild/protobuf";
import { memberName } from "../../src/contract/json-names.ts";
import { eventTypes } from "./events.ts";
import { REQUEST_EXAMPLES, RESPONSE_EXAMPLES } from "./examples.ts";
import {
  CHAT_FAILURE_RESPONSE,
  CHAT_FAILURE_SCHEMA,
  chatFailureResponses,
  FAILURE_CODE_SCHEMA,
  FAILURE_SCHEMA,
  failureList,
  failureResponses,
  headersOf,
  PROMPTS,
} from "./failures.ts";
import { commentOf, createSchemas, type Schema, type Schemas, withParts } from "./schema.ts";

const { version, license } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));

/** The part of `google.api.HttpRule` that is used here. */
interface HttpRule {
  pattern: { case: "get" | "post"; value: string };
}

interface Operation extends Schema {
  responses: { 200: Schema & { content: Schema } };
}

/**
 * Describes the REST API of `chorus.v1.GenerationService` and `chorus.v1.ChatService` as OpenAPI 3.1. Paths and methods
 * come from the `google.api.http` annotations, schemas and descriptions from the messages and their comments, failures
 * from `src/contract/failure.ts`.
 * @param registry descriptors with source information
 */
export function createDocument(registry: FileRegistry): Schema {
  const service = registry.getService("chorus.v1.GenerationService");
  const chat = registry.getService("chorus.v1.ChatService");
  const json = registry.getExtension("chorus.v1.json");
  const jsonTag = registry.getExtension("chorus.v1.json_tag");
  const http = registry.getExtension("google.api.http");
  if (!service || !chat || !json || !jsonTag || !http)
    throw new TypeError("The descriptors lack a service of chorus.v1 or its options.");
  const methods = [...service.methods, ...chat.methods];
  const requests = new Set(methods.flatMap(({ input }) => [...withParts(input)]));
  const schemas = createSchemas(json, jsonTag, requests);
  const paths: Record<string, Record<string, Operation>> = {};
  for (const method of methods) {
    const { pattern } = getOption(method, http) as unknown as HttpRule;
    const path = paths[pattern.value] ?? {};
    const found = path[pattern.case];
    // A method with the path of an earlier one is its other kind of answer.
    if (found) Object.assign(found.responses[200].content, content(method, schemas));
    else path[pattern.case] = operation(method, pattern, schemas);
    paths[pattern.value] = path;
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Chorus",
      version,
      summary: firstSentence(commentOf(service)),
      description: introduction(service),
      license: { name: license, identifier: license },
    },
    servers: [{ url: "/", description: "The server of this document" }],
    security: [{ apiKey: [] }, { bearer: [] }],
    tags: [
      { name: "Answers", description: "Generate an answer, complete or as a stream." },
      { name: "Usage", description: "Limits and usage of a workspace." },
      { name: "OpenAI's format", description: commentOf(chat) },
    ],
    paths,
    components: {
      securitySchemes: {
        apiKey: {
          type: "apiKey",
          in: "header",
          name: "X-API-Key",
          description: "Secret of an API key. Keep it on a server; never put it into browser or mobile code.",
        },
        bearer: {
          type: "http",
          scheme: "bearer",
          description: "The same secret as a bearer token, for requests without `X-API-Key`.",
        },
      },
      headers: HEADERS,
      responses: { ChatFailure: CHAT_FAILURE_RESPONSE },
      schemas: {
        ...schemas.named,
        FailureCode: FAILURE_CODE_SCHEMA,
        Failure: FAILURE_SCHEMA,
        ChatFailure: CHAT_FAILURE_SCHEMA,
      },
    },
  };
}

const HEADERS: Schema = {
  "X-Request-Id": {
    description: "Identifier of the request, prefix `req_`. Quote it when you report a problem.",
    schema: { type: "string" },
  },
  "Retry-After": {
    description: "Whole seconds after which the same request may succeed, rounded up; `retry_after_ms` is exact.",
    schema: { type: "integer", minimum: 1 },
  },
  "X-Chorus-Notice": {
    description: "The code and the sentence of a notice, when `model` has another name. It is among `notices` too.",
    schema: { type: "string" },
  },
  "X-Should-Retry": {
    description: "`false` when the same request would fail again. OpenAI's clients then do not retry it.",
    schema: { type: "string" },
  },
};

function introduction(service: DescService): string {
  return [
    commentOf(service).replace(/ Every call .*/, ""),
    [
      "Names are in snake_case, and integers are JSON numbers.",
      "A member of a request that is null, an empty string or an empty list counts as not given.",
      "The service ignores unknown members of a request and reports each with a notice `unknown_field`.",
      "Skip unknown members of responses and unknown event types, because new ones may be added.",
      "Accept unknown words in them too, such as a new `code` or `finish_reason`. Requests may have only listed words.",
    ].join(" "),
    "## Failures",
    [
      "Every failure has the same flat body, `Failure`; in OpenAI's format it is `ChatFailure`.",
      "A failed request is not charged.",
      "Before you send the same request again, wait for `Retry-After`. Without it, back off exponentially with jitter.",
    ].join(" "),
    failureList(),
  ].join("\n\n");
}

function operation(method: DescMethod, { case: verb, value: path }: HttpRule["pattern"], schemas: Schemas): Operation {
  const comment = commentOf(method);
  const call = method.localName;
  const isChat = method.parent.name === "ChatService";
  return {
    operationId: call,
    tags: [isChat ? "OpenAI's format" : verb === "post" ? "Answers" : "Usage"],
    summary: firstSentence(comment).replace(/\.$/, ""),
    description: comment,
    ...parameters(method, verb, path, schemas),
    ...(verb === "post" ? { requestBody: body(method, schemas) } : {}),
    responses: {
      200: {
        description: method.methodKind === "server_streaming" ? streamText(method) : commentOf(method.output),
        headers: headersOf(isChat && verb === "post" ? ["X-Request-Id", "X-Chorus-Notice"] : ["X-Request-Id"]),
        content: { ...content(method, schemas) },
      },
      ...(isChat ? chatFailureResponses(call) : failureResponses(call)),
    },
  };
}

function parameters(method: DescMethod, verb: "get" | "post", path: string, schemas: Schemas): Schema {
  const isInPath = (field: DescField) => path.includes(`{${memberName(field)}}`);
  const found = method.input.fields
    .filter((field) => verb === "get" || isInPath(field))
    .map((field) => {
      const { description, ...schema } = schemas.field(field);
      const place = isInPath(field) ? { in: "path", required: true } : { in: "query" };
      return { name: memberName(field), ...place, description, schema };
    });
  if (found.length > 0) return { parameters: found };
  if (verb === "get" || method.methodKind === "server_streaming") return {};
  const description =
    "Makes the request safe to retry: within 24 hours, the same key with the same body returns the first answer and " +
    "is charged once. Use a UUID.";
  const schema = { type: "string", minLength: 1, maxLength: 255, pattern: "^[!-~]+$" };
  return { parameters: [{ name: "Idempotency-Key", in: "header", description, schema }] };
}

function body(method: DescMethod, schemas: Schemas): Schema {
  const largest = PROMPTS.includes(method.localName) ? "64 MB (67,108,864 bytes)" : "64 KB (65,536 bytes)";
  return {
    required: true,
    description: `At most ${largest} of UTF-8, without a content encoding.`,
    content: {
      "application/json": { schema: schemas.message(method.input), examples: REQUEST_EXAMPLES[method.localName] },
    },
  };
}

function content(method: DescMethod, schemas: Schemas): Schema {
  const examples = RESPONSE_EXAMPLES[method.localName];
  if (method.methodKind !== "server_streaming") {
    return { "application/json": { schema: schemas.message(method.output), examples } };
  }
  const isChat = method.parent.name === "ChatService";
  const parts = method.output.fields.flatMap((field) => (field.message ? [schemas.message(field.message)] : []));
  const anyOf = isChat ? [schemas.message(method.output)] : parts;
  const failure = { $ref: `#/components/schemas/${isChat ? "ChatFailure" : "Failure"}` };
  return {
    "text/event-stream": {
      schema: {
        type: "string",
        description:
          "Server-sent events. The data of each event is one JSON object" +
          (isChat ? ", of the last one `[DONE]`." : "; the event name determines its type."),
        contentMediaType: "application/json",
        contentSchema: { anyOf: [...anyOf, failure] },
      },
      examples,
      ...eventTypes(method, schemas),
    },
  };
}

/** Lists the events of a stream with the comments of their messages. */
function streamText(method: DescMethod): string {
  const events = method.output.fields.map(
    ({ name, message }) =>
      `- \`${name}\`: ${message ? `${commentOf(message)} (\`${message.typeName.split(".").slice(2).join("")}\`)` : ""}`,
  );
  return [
    "Server-sent events:",
    [...events, "- `error`: A failure after the start of the stream; always the last event. (`Failure`)"].join("\n"),
    [
      "The headers are sent with the first event, or two seconds after admission.",
      "A failure before that has its HTTP status; a later one is an event.",
      "After every 15 seconds without an event, a comment line keeps the connection open.",
    ].join(" "),
  ].join("\n\n");
}

function firstSentence(text: string): string {
  return /^.*?[.:](?=\s|$)/.exec(text)?.[0].replace(/:$/, ".") ?? text;
}
