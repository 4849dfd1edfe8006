import { readFileSync } from "node:fs";
import { type DescField, type DescMethod, type DescService, type FileRegistry, getOption } from "@bufbuild/protobuf";
import { memberName } from "../../src/contract/json-names.ts";
import { eventTypes } from "./events.ts";
import { REQUEST_EXAMPLES, RESPONSE_EXAMPLES } from "./examples.ts";
import {
  FAILURE_CODE_SCHEMA,
  FAILURE_SCHEMA,
  failureList,
  failureResponses,
  foreignFailureComponents,
  foreignFailureResponses,
  headersOf,
  PROMPTS,
  REPEATABLE,
} from "./failures.ts";
import { FOREIGN_FORMATS, foreignFormat } from "./foreign.ts";
import { commentOf, createSchemas, type Schema, type Schemas, withParts } from "./schema.ts";

const { version, license } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));

/** The part of `google.api.HttpRule` that is used here. */
interface HttpRule {
  pattern: { case: "get" | "post"; value: string };
}

interface Operation extends Schema {
  parameters?: Schema[];
  responses: { 200: Schema & { content: Schema } };
}

/** The services that it describes. */
const SERVICES = [
  "chorus.v1.GenerationService",
  "chorus.v1.ChatService",
  "chorus.v1.ResponsesService",
  "chorus.v1.MessagesService",
];

/**
 * Describes the REST API of the services as OpenAPI 3.1. Paths and methods come from the `google.api.http` annotations,
 * schemas and descriptions from the messages and their comments, failures from `src/contract/failure.ts`.
 * @param registry descriptors with source information
 */
export function createDocument(registry: FileRegistry): Schema {
  const services = SERVICES.map((name) => registry.getService(name)).filter((found) => found !== undefined);
  const [service] = services;
  const json = registry.getExtension("chorus.v1.json");
  const jsonTag = registry.getExtension("chorus.v1.json_tag");
  const http = registry.getExtension("google.api.http");
  if (!service || services.length < SERVICES.length || !json || !jsonTag || !http)
    throw new TypeError("The descriptors lack a service of chorus.v1 or its options.");
  const methods = services.flatMap(({ methods }) => methods);
  const requests = new Set(methods.flatMap(({ input }) => [...withParts(input)]));
  const schemas = createSchemas(json, jsonTag, requests);
  const paths: Record<string, Record<string, Operation>> = {};
  for (const method of methods) {
    const { pattern } = getOption(method, http) as unknown as HttpRule;
    const path = paths[pattern.value] ?? {};
    const found = path[pattern.case];
    // A method with the path of an earlier one is its other kind of answer.
    if (found) addAnswer(found, method, pattern, schemas);
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
      ...services.flatMap((each) => {
        const format = foreignFormat(each);
        return format ? [{ name: `${format.owner} format`, description: commentOf(each) }] : [];
      }),
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
      responses: foreignFailureComponents(),
      schemas: {
        ...schemas.named,
        FailureCode: FAILURE_CODE_SCHEMA,
        Failure: FAILURE_SCHEMA,
        ...Object.fromEntries(FOREIGN_FORMATS.map(({ failure, failureSchema }) => [failure, failureSchema])),
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
    description:
      "The code and the sentence of each notice that is known before the answer, such as one about another name in " +
      "`model`. They are among `notices` too.",
    schema: { type: "string" },
  },
  "request-id": {
    description: "The same as `X-Request-Id`.",
    schema: { type: "string" },
  },
  "X-Should-Retry": {
    description: "`false` when the same request would fail again. Clients of these APIs then do not retry it.",
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
      "Every failure has the same flat body, `Failure`; in the formats of other APIs it is `ChatFailure` or",
      "`MessageFailure`.",
      "A failed request is not charged.",
      "Before you send the same request again, wait for `Retry-After`. Without it, back off exponentially with jitter.",
    ].join(" "),
    failureList(),
  ].join("\n\n");
}

function operation(method: DescMethod, { case: verb, value: path }: HttpRule["pattern"], schemas: Schemas): Operation {
  const comment = commentOf(method);
  const call = method.localName;
  const format = foreignFormat(method.parent);
  const names = [...(format?.headers ?? []), ...(format && verb === "post" ? ["X-Chorus-Notice"] : [])];
  return {
    operationId: call,
    tags: [format ? `${format.owner} format` : verb === "post" ? "Answers" : "Usage"],
    summary: firstSentence(comment).replace(/\.$/, ""),
    description: comment,
    ...parameters(method, verb, path, schemas),
    ...(verb === "post" ? { requestBody: body(method, schemas) } : {}),
    responses: {
      200: {
        description: method.methodKind === "server_streaming" ? streamText(method) : commentOf(method.output),
        headers: headersOf(["X-Request-Id", ...names]),
        content: { ...content(method, schemas) },
      },
      ...(format ? foreignFailureResponses(call, format, false) : failureResponses(call)),
    },
  };
}

function parameters(
  method: DescMethod,
  verb: "get" | "post",
  path: string,
  schemas: Schemas,
): { parameters?: Schema[] } {
  const isInPath = (field: DescField) => path.includes(`{${memberName(field)}}`);
  const found = method.input.fields
    .filter((field) => verb === "get" || isInPath(field))
    .map((field) => {
      const { description, ...schema } = schemas.field(field);
      const place = isInPath(field) ? { in: "path", required: true } : { in: "query" };
      return { name: memberName(field), ...place, description, schema };
    });
  if (found.length > 0) return { parameters: found };
  if (!REPEATABLE.includes(method.localName)) return {};
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
  const format = foreignFormat(method.parent);
  const parts = method.output.fields.flatMap((field) => (field.message ? [schemas.message(field.message)] : []));
  const anyOf = format ? [schemas.message(method.output)] : parts;
  const failure = { $ref: `#/components/schemas/${format?.failure ?? "Failure"}` };
  return {
    "text/event-stream": {
      schema: {
        type: "string",
        description:
          "Server-sent events. The data of each event is one JSON object" +
          (format?.streamText ?? "; the event name determines its type."),
        contentMediaType: "application/json",
        contentSchema: { anyOf: [...anyOf, failure] },
      },
      examples,
      ...eventTypes(method, schemas),
    },
  };
}

/** Adds another kind of answer to an operation: a stream, or the same in another format, which a header asks for. */
function addAnswer(to: Operation, method: DescMethod, { case: verb, value: path }: HttpRule["pattern"], all: Schemas) {
  addContent(to.responses[200].content, content(method, all));
  const format = foreignFormat(method.parent);
  if (verb !== "get" || !format) return;
  Object.assign(to.responses, foreignFailureResponses(method.localName, format, true));
  const { parameters: own = [] } = to;
  const { parameters: more = [] } = parameters(method, verb, path, all);
  to.parameters = [...own, ...format.asked, ...more.filter(({ name }) => !own.some((one) => one.name === name))];
}

function addContent(content: Schema, more: Schema): void {
  for (const [type, media] of Object.entries(more) as [string, Schema][]) {
    const first = content[type] as Schema | undefined;
    if (!first) content[type] = media;
    else {
      const examples = { ...(first.examples as Schema), ...(media.examples as Schema) };
      content[type] = { schema: { anyOf: [first.schema, media.schema] }, examples };
    }
  }
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
