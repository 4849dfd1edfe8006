import { readFileSync } from "node:fs";
import { type DescMethod, type DescService, type FileRegistry, getOption } from "@bufbuild/protobuf";
import { memberName } from "../../src/json-names.ts";
import { REQUEST_EXAMPLES, RESPONSE_EXAMPLES } from "./examples.ts";
import { FAILURE_SCHEMA, failureList, failureResponses } from "./failures.ts";
import { commentOf, createSchemas, type Schema, type Schemas } from "./schema.ts";

const { version, license } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));

/** A method of `google.api.HttpRule`. */
interface HttpRule {
  pattern: { case: "get" | "post"; value: string };
}

/**
 * Describes the public facade of `chorus.v1.GenerationService` as OpenAPI 3.1: paths and methods from the `google.api.http` annotations,
 * schemas and words from the messages and their comments, failures from the one table.
 * @param registry descriptors with source information
 */
export function createDocument(registry: FileRegistry): Schema {
  const service = registry.getService("chorus.v1.GenerationService");
  const json = registry.getExtension("chorus.v1.json");
  const jsonTag = registry.getExtension("chorus.v1.json_tag");
  const http = registry.getExtension("google.api.http");
  if (!service || !json || !jsonTag || !http)
    throw new TypeError("The descriptors lack chorus.v1.GenerationService or its options.");
  const schemas = createSchemas(json, jsonTag);
  const paths: Record<string, Schema> = {};
  for (const method of service.methods) {
    const { pattern } = getOption(method, http) as unknown as HttpRule;
    paths[pattern.value] = { ...paths[pattern.value], [pattern.case]: operation(method, pattern.case, schemas) };
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
    servers: [{ url: "/", description: "Where this document comes from" }],
    security: [{ apiKey: [] }],
    tags: [
      { name: "Answers", description: "One request, one answer: whole, or piece by piece." },
      { name: "Usage", description: "What a workspace may use and has used." },
    ],
    paths,
    components: {
      securitySchemes: {
        apiKey: {
          type: "apiKey",
          in: "header",
          name: "X-API-Key",
          description: "The key's secret. Keep it on a server; never put it into browser or mobile code.",
        },
      },
      headers: HEADERS,
      schemas: { ...schemas.named, Failure: FAILURE_SCHEMA },
    },
  };
}

const HEADERS: Schema = {
  "X-Request-Id": {
    description: "Identifier of the request, prefix `req_`; name it when you report a problem.",
    schema: { type: "string" },
  },
  "Retry-After": {
    description: "Whole seconds after which the same request may pass, rounded up; `retry_after_ms` is exact.",
    schema: { type: "integer", minimum: 1 },
  },
};

function introduction(service: DescService): string {
  return [
    commentOf(service).replace(/ Every call .*/, ""),
    "Names are in snake_case, integers are JSON numbers, a null member of a request counts as not given. Members of a request that the service does not know are ignored, each with a notice `unknown_field`. Skip members of a response, and event types, that you do not know: new ones may come.",
    "## Failures",
    "Every failure has one flat body, `Failure`, and nothing that fails is charged. Wait for `Retry-After` before you send the same request again; without it, wait longer each time, by a random part.",
    failureList(),
  ].join("\n\n");
}

function operation(method: DescMethod, verb: "get" | "post", schemas: Schemas): Schema {
  const comment = commentOf(method);
  const call = method.localName;
  return {
    operationId: call,
    tags: [verb === "post" ? "Answers" : "Usage"],
    summary: firstSentence(comment).replace(/\.$/, ""),
    description: comment,
    ...parameters(method, verb, schemas),
    ...(verb === "post" ? { requestBody: body(method, schemas) } : {}),
    responses: {
      200: {
        description: method.methodKind === "server_streaming" ? streamText(method) : commentOf(method.output),
        headers: { "X-Request-Id": { $ref: "#/components/headers/X-Request-Id" } },
        content: { ...content(method, schemas) },
      },
      ...failureResponses(call),
    },
  };
}

function parameters(method: DescMethod, verb: "get" | "post", schemas: Schemas): Schema {
  if (verb === "get") {
    const found = method.input.fields.map((field) => {
      const { description, ...schema } = schemas.field(field);
      return { name: memberName(field), in: "query", description, schema };
    });
    return found.length > 0 ? { parameters: found } : {};
  }
  if (method.methodKind === "server_streaming") return {};
  const description =
    "Makes the request safe to send again: for 24 hours the same key with the same body gives the answer that was made the first time, and is charged once. A UUID is a good one.";
  const schema = { type: "string", minLength: 1, maxLength: 255, pattern: "^[!-~]+$" };
  return { parameters: [{ name: "Idempotency-Key", in: "header", description, schema }] };
}

function body(method: DescMethod, schemas: Schemas): Schema {
  return {
    required: true,
    description: "At most 64 MB (67,108,864 bytes) of UTF-8, without a content encoding.",
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
  const anyOf = method.output.fields.flatMap((field) => (field.message ? [schemas.message(field.message)] : []));
  return {
    "text/event-stream": {
      schema: {
        type: "string",
        description:
          "Server-sent events. The data of each is one JSON object, of the type that the name of the event says.",
        contentMediaType: "application/json",
        contentSchema: { anyOf: [...anyOf, { $ref: "#/components/schemas/Failure" }] },
      },
      examples,
    },
  };
}

/** The events of a stream by their names, with the comments of the oneof's fields' messages. */
function streamText(method: DescMethod): string {
  const events = method.output.fields.map(
    ({ name, message }) =>
      `- \`${name}\`: ${message ? `${commentOf(message)} (\`${message.typeName.split(".").slice(2).join("")}\`)` : ""}`,
  );
  return [
    "Server-sent events:",
    [
      ...events,
      "- `error`: The failure, when it came after the stream had begun; the last event then. (`Failure`)",
    ].join("\n"),
    "Headers go out at the first event or two seconds after admission: a failure before that has a status of its own. A comment line every 15 seconds of silence keeps proxies awake.",
  ].join("\n\n");
}

function firstSentence(text: string): string {
  return /^.*?[.:](?=\s|$)/.exec(text)?.[0].replace(/:$/, ".") ?? text;
}
