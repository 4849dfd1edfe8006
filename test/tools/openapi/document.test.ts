import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { describe } from "vitest";
import { Scope } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { adminOf } from "../../helpers/admin.ts";
import { test as base, OFFLINE } from "../../helpers/fixtures.ts";
import { setLimits } from "../../helpers/limits.ts";
import { readEvents, type TestService } from "../../helpers/service.ts";

interface Schema {
  type?: string | string[];
  properties?: Record<string, Schema>;
  items?: Schema & { $ref?: string };
  $ref?: string;
  additionalProperties?: boolean;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
}

interface Answer {
  $ref?: string;
  headers: Record<string, unknown>;
  content: Record<string, { schema: Schema; examples: Record<string, { value: { code?: string } }> }>;
}

interface Operation {
  operationId: string;
  requestBody?: {
    content: Record<string, { schema: Schema; examples: Record<string, { value: Record<string, unknown> }> }>;
  };
  tags: string[];
  parameters?: { name: string }[];
  responses: Record<string, Answer>;
}

interface OpenApi {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; responses: Record<string, Answer> };
}

const FILE = new URL("../../../gen/openapi/openapi.json", import.meta.url);
const document: OpenApi = JSON.parse(readFileSync(FILE, "utf8"));
const { schemas } = document.components;
const operations = Object.entries(document.paths).flatMap(([template, verbs]) =>
  Object.entries(verbs).map(([verb, operation]) => {
    const path = template.replace("{model}", "chorus-low");
    return { template, path, verb, operation, isChat: operation.tags.includes("OpenAI's format") };
  }),
);
const validators = closed(document);

const test = base.extend("env", { scope: "file" }, OFFLINE);

test("words may be added to responses, and not to requests", () => {
  const responses = operations.map(({ operation }) => operation.responses);
  const requests = operations.map(({ operation: { responses: _, ...request } }) => request);
  assert.deepEqual(listsOfWords(responses), {
    closed: [],
    open: [
      ..."CapAction CapFigure CapPeriod Effort FailureCode FinishReason GenerationStatus MessageRole".split(" "),
      ..."MessageStopReason MetricsInterval Role SpendPeriod".split(" "),
      ..."StepKind StepOutcome StepRole".split(" "),
    ],
  });
  const chat = "ChatMessageCallType ChatPartType ChatResponseFormatType ChatRole ChatToolType Verbosity";
  const messages = "MessageBlockType MessageRole MessageSourceType MessageToolChoiceType OutputEffort OutputFormatType";
  const given = "ResponseInputItemType ResponseInputPartType ResponseTextFormatType ResponseToolType ThinkingType";
  const others = "Effort MetricsGroupBy MetricsInterval OutputShape ReasoningEffort ResponseFormatType Role ToolMode";
  const custom = "ChatCustomFormatType ResponseCustomFormatType";
  const closed = `${chat} ${messages} ${given} ${others} ${custom}`.split(" ").toSorted();
  assert.deepEqual(listsOfWords(requests), { closed, open: [] });
});

test("an object of any members says so, because generators take it for an empty one otherwise", () => {
  const { ToolCall, Tool, ResponseFormat, GenerateResponse, StreamGenerateResponseToolCall } = schemas;
  assert.deepEqual(
    [
      ToolCall?.properties?.arguments,
      Tool?.properties?.parameters,
      ResponseFormat?.properties?.schema,
      GenerateResponse?.properties?.structured,
      StreamGenerateResponseToolCall?.properties?.arguments,
    ].map((schema) => [schema?.type, schema?.additionalProperties]),
    [
      ["object", true],
      ["object", true],
      ["object", true],
      [["object", "null"], true],
      ["object", true],
    ],
  );
});

test("an item of the Responses API can leave its type out", () => {
  accepted(validators.schema("CreateResponseRequest"), { input: [{ role: "user", content: "Hello" }] });
});

describe("the running service matches the OpenAPI document", () => {
  for (const { path, operation } of operations) {
    const { schema, examples = {} } = operation.requestBody?.content["application/json"] ?? {};
    for (const [name, { value }] of Object.entries(examples)) {
      test(`${operation.operationId}: example ${name}`, async ({ service }) => {
        accepted(validators.schema(schema?.$ref?.split("/").at(-1) ?? ""), value);
        const response = await service.post(await withAnswer(path, service), value);
        assert.equal(response.status, 200);
        await checkAnswer(operation, response);
      });
    }
    if (operation.requestBody) continue;
    test(operation.operationId, async ({ service }) => {
      for (const query of ["", "?interval=hour&group_by=key&from=2026-01-31&to=2026-02-01T00:00:00Z"]) {
        await checkAnswer(operation, await service.get(path + query));
      }
    });
  }

  test("calls of tools and streams of other formats have the documented members", async ({ service }) => {
    const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const look = { name: "look", description: "The weather of a city.", parameters };
    const prompt = "The weather of the city Oslo";
    const messages = [{ role: "user", content: prompt }];
    const ofChat = (type: string, definition: object) => ({
      ...{ messages, tools: [{ type, [type]: definition }], tool_choice: "required" },
    });
    const space = { type: "namespace", name: "space", tools: [{ type: "function", ...look }] };
    const tools = [{ type: "function", ...look }, { type: "custom", name: "code" }, space];
    const ofResponses = (tool_choice: unknown) => ({ input: prompt, tools, tool_choice, metadata: { a: "b" } });
    const ofMessages = (type: string) => ({
      ...{ max_tokens: 100, messages, tools: [{ name: "look", input_schema: parameters }], tool_choice: { type } },
    });
    const formats: [path: string, answer: string, event: string, bodies: object[]][] = [
      [
        ...(["/v1/chat/completions", "ChatCompletion", "ChatCompletionChunk"] as const),
        [ofChat("function", look), ofChat("custom", { name: "code" })],
      ],
      [
        ...(["/v1/responses", "Response", "ResponseEvent"] as const),
        [
          ofResponses({ type: "function", name: "look" }),
          ofResponses({ type: "custom", name: "code" }),
          ofResponses("none"),
        ],
      ],
      [...(["/v1/messages", "MessageAnswer", "MessageEvent"] as const), [ofMessages("any"), ofMessages("none")]],
    ];
    for (const [path, answer, event, bodies] of formats)
      for (const body of bodies) {
        accepted(validators.schema(answer), await (await service.post(path, body)).json());
        const text = await (await service.post(path, { ...body, stream: true })).text();
        const events = text.match(/(?<=^data: )\{.*$/gm) ?? [];
        assert.ok(events.length > 1, text);
        for (const each of events) accepted(validators.schema(event), JSON.parse(each));
      }
  });

  test("failures have the documented bodies and headers", async ({ service, database: { pool } }) => {
    const { keys, workspaces } = adminOf(pool);
    await workspaces.createWorkspace({ name: "poor" });
    const { secret: poor } = await keys.createKey({ workspace: "poor", scopes: [Scope.GENERATE] });
    for (const { path: template, verb, operation, isChat } of operations) {
      // The failures of the other formats are tested with their doors.
      if (/^\/v1\/(messages|responses)/.test(template)) continue;
      const path = await withAnswer(template, service);
      const prompt = isChat ? '{"messages":[{"role":"user","content":"a"}]}' : '{"prompt":"a"}';
      const invalid = isChat ? 400 : 422;
      const send = (body: string, headers: Record<string, string> = {}) =>
        verb === "post" ? service.post(path, body, headers) : service.get(path, headers);
      const expect = async (response: Response, status: number) => {
        assert.equal(response.status, status, path);
        await checkAnswer(operation, response);
      };
      await expect(await send("{}", { "x-api-key": "ck_unknown" }), 401);
      await expect(await fetch(service.url + path, { method: "DELETE" }), 405);
      if (verb === "get") {
        await expect(await send("", { "x-api-key": poor }), isChat ? 200 : 403);
        continue;
      }
      const schema = '"schema":{"type":"object","unevaluatedProperties":false}';
      const strict = `{"type":"json_schema",${isChat ? `"json_schema":{"strict":true,${schema}}` : schema}}`;
      await expect(await send("{"), 400);
      const takesPrompt = path === template;
      if (takesPrompt) await expect(await send(prompt, { "x-api-key": poor }), 402);
      else await expect(await send('{"score":1}', { "x-api-key": poor }), 404);
      await expect(await send(`{"stop_sequences":[${'"a",'.repeat(100_000)}"a"]}`), 413);
      await expect(await send("{}", { "content-type": "text/plain" }), 415);
      await expect(await send("{}"), invalid);
      if (!takesPrompt) continue;
      await expect(await send(prompt.replace("{", `{"response_format":${strict},`)), invalid);
      await setLimits(pool, "default", [{ name: "concurrent_requests", to: 0n }]);
      await expect(await send(prompt), 429);
      await setLimits(pool, "default", [{ name: "concurrent_requests", to: "default" }]);
    }
  });

  test("what is refused before its path is known has the documented body", async ({ service }) => {
    for (const { path, verb, operation } of operations) {
      const response = await fetch(service.url + path, {
        method: verb,
        headers: { "x-long": "x".repeat(20_000) },
      });
      assert.equal(response.status, 431, path);
      accepted(validators.body(operation, "431"), await response.json());
    }
  });

  test("queries that are refused have the documented answers", async ({ service }) => {
    for (const [path, headers] of [
      [`/v1/quotas?user=${"x".repeat(129)}`, {}],
      ["/v1/models?limit=0", { "anthropic-version": "2023-06-01" }],
      ["/v1/models/best", { "anthropic-version": "2023-06-01" }],
      ["/v1/models/best", {}],
    ] as const) {
      const response = await service.get(path, headers);
      const [template = ""] = path.replace("best", "{model}").split("?");
      const operation = document.paths[template]?.get ?? assert.fail(path);
      assert.ok(operation.responses[response.status], `${response.status} ${path}`);
      accepted(validators.body(operation, String(response.status)), await response.json());
    }
    const names = document.paths["/v1/models"]?.get?.parameters?.map(({ name }) => name);
    assert.deepEqual(names, ["anthropic-version", "limit", "after_id", "before_id"]);
  });

  test("accepts each bound and refuses the next value", async ({ service }) => {
    const refusal = async (member: string, value: unknown) => {
      const input = member === "prompt" || member === "messages" ? {} : { prompt: "a" };
      const response = await service.post("/v1/generate", { ...input, [member]: value });
      const { field } = (await response.json()) as { field?: string };
      return response.status === 422 ? field : undefined;
    };
    let bounds = 0;
    for (const [name, schema] of Object.entries(schemas.GenerateRequest?.properties ?? {})) {
      for (const { good, bad, at } of edges(schema)) {
        bounds++;
        assert.equal(await refusal(name, good), undefined, `${name} at its bound`);
        assert.equal(await refusal(name, bad), name + at, `${name} beyond its bound`);
      }
    }
    assert.equal(bounds, 14);
  });
});

/** The path with the identifier of an answer to `17 * 23 + 4` in place of `{id}`. */
async function withAnswer(path: string, service: TestService): Promise<string> {
  if (!path.includes("{id}")) return path;
  const { id } = (await (await service.post("/v1/generate", { prompt: "What is 17 * 23 + 4?" })).json()) as {
    id: string;
  };
  return path.replace("{id}", id);
}

/**
 * The names of the lists of words that a part of the document leads to, also by references. A list is open if any other
 * string is valid beside it.
 */
function listsOfWords(root: unknown): { closed: string[]; open: string[] } {
  const found = { closed: new Set<string>(), open: new Set<string>() };
  const followed = new Set<string>();
  const visit = (node: unknown, name: string, kind: "closed" | "open"): void => {
    if (typeof node !== "object" || node === null) return;
    const { $ref, anyOf, examples: _, ...members } = node as Schema & { anyOf?: Schema[]; examples?: unknown };
    const { enum: list, const: one } = members as { enum?: unknown; const?: unknown };
    if (Array.isArray(list) || typeof one === "string") found[kind].add(name);
    if ($ref && !followed.has(kind + $ref)) {
      followed.add(kind + $ref);
      const [, ...path] = $ref.split("/");
      const target = path.reduce<unknown>((whole, key) => (whole as Record<string, unknown>)[key], document);
      visit(target, path.at(-1) ?? "", kind);
    }
    const isOpen = kind === "open" || anyOf?.some(isAnyString);
    for (const branch of anyOf ?? []) visit(branch, name, isOpen ? "open" : "closed");
    for (const [key, value] of Object.entries(members)) visit(value, key, "closed");
  };
  visit(root, "", "closed");
  return { closed: [...found.closed].toSorted(), open: [...found.open].toSorted() };
}

function isAnyString(schema: Schema): boolean {
  return isDeepStrictEqual(schema, { type: "string" });
}

/** Pairs of a value at a bound and one beyond it. */
function edges(schema: Schema): { good: unknown; bad: unknown; at: string }[] {
  const { minimum, maximum, minLength, maxLength, maxItems, type } = schema;
  const step = type === "integer" ? 1 : 0.001;
  const found: { good: unknown; bad: unknown; at: string }[] = [];
  const add = (good: unknown, bad: unknown) => found.push({ good, bad, at: "" });
  if (minimum !== undefined) add(minimum, minimum - step);
  if (maximum !== undefined) add(maximum, maximum + step);
  if (minLength !== undefined) add("a".repeat(minLength), "a".repeat(minLength - 1));
  // A code point of two UTF-16 units counts as one character.
  if (maxLength !== undefined) add(`${"a".repeat(maxLength - 1)}😀`, "a".repeat(maxLength + 1));
  const { items } = schema;
  if (!items) return found;
  const whole = sample(items);
  // Each tool has a name of its own.
  const several = (length: number) =>
    Array.from({ length }, (_, i) => (named(items) === schemas.Tool ? { name: `tool_${i}` } : whole));
  if (maxItems !== undefined) add(several(maxItems), several(maxItems + 1));
  for (const { good, bad } of edges(items)) found.push({ good: [good], bad: [bad], at: "[0]" });
  for (const [name, member] of Object.entries(named(items)?.properties ?? {})) {
    // Only messages of other roles than the sample's have them.
    if (name.startsWith("tool_call")) continue;
    // `data` is base64: a text of minimum length is not valid, so a valid one replaces it.
    for (const { good, bad } of name === "data" ? [{ good: "YQ==", bad: "" }] : edges(member)) {
      const item = (value: unknown) => [{ ...(whole as object), [name]: value }];
      found.push({ good: item(good), bad: item(bad), at: `[0].${name}` });
    }
  }
  return found;
}

function named({ $ref = "" }: Schema): Schema | undefined {
  return schemas[$ref.slice($ref.lastIndexOf("/") + 1)];
}

/** A list item that the service accepts. */
function sample(items: Schema): unknown {
  if (items === schemas.GenerateRequest?.properties?.stop_sequences?.items) return "a";
  const samples: Record<string, unknown> = {
    name: "a",
    role: "user",
    content: "a",
    media_type: "text/plain",
    data: "YQ==",
  };
  const names = Object.keys(named(items)?.properties ?? {}).filter((name) => name in samples);
  return Object.fromEntries(names.map((name) => [name, samples[name]]));
}

/** Checks the status, type, body and headers of a response against the document. */
async function checkAnswer(operation: Operation, response: Response): Promise<void> {
  const status = operation.responses[response.status] ? String(response.status) : "default";
  const stated = operation.responses[status];
  const answer = stated?.$ref ? document.components.responses[stated.$ref.split("/").at(-1) ?? ""] : stated;
  const type = response.headers.get("content-type")?.split(";")[0] ?? "";
  assert.ok(answer?.content[type], `${response.status} ${type}`);
  assert.match(response.headers.get("x-request-id") ?? "", /^req_/);
  if (type === "text/event-stream" && operation.tags.includes("OpenAI's format")) {
    const data = (await response.text()).split("\n\n").filter((event) => event.startsWith("data: "));
    assert.equal(data.pop(), "data: [DONE]");
    for (const event of data) accepted(validators.schema("ChatCompletionChunk"), JSON.parse(event.slice(6)));
    return;
  }
  if (type === "text/event-stream" && operation.tags.some((tag) => tag.endsWith("format"))) {
    assert.match(await response.text(), /^event: (message_stop|response\.completed)$/m);
    return;
  }
  if (type === "text/event-stream") {
    const events = await readEvents(response);
    assert.ok(events.some(({ event }) => event === "delta") && events.at(-1)?.event === "done");
    for (const { event, data } of events) {
      accepted(validators.schema(`StreamGenerateResponse${event.charAt(0).toUpperCase()}${event.slice(1)}`), data);
    }
    return;
  }
  const body = (await response.json()) as { code?: string; retry_after_ms?: number; error?: object };
  if (!response.ok && !body.error) {
    const codes = Object.values(answer.content[type]?.examples ?? {}).map(({ value }) => value.code);
    assert.ok(codes.includes(body.code), `${response.status} ${body.code}`);
  }
  accepted(validators.body(operation, status), body);
  if (!body.error) assert.equal(response.headers.has("retry-after"), body.retry_after_ms !== undefined);
  if (response.headers.has("retry-after")) assert.ok(answer.headers["Retry-After"]);
}

function accepted(validate: ValidateFunction, value: unknown): void {
  assert.ok(validate(value), JSON.stringify({ errors: validate.errors, value }));
}

/** Validators of the document's schemas that reject members and words the document does not name. */
function closed(open: OpenApi) {
  const whole: OpenApi = JSON.parse(JSON.stringify(open), (_, value: { anyOf?: Schema[] } | null) => {
    if (!value?.anyOf?.some(({ $ref }) => $ref)) return value;
    return { ...value, anyOf: value.anyOf.filter((branch) => !isAnyString(branch)) };
  });
  for (const schema of Object.values(whole.components.schemas)) {
    if (schema.properties) schema.additionalProperties = false;
  }
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  for (const format of ["int32", "int64", "double"]) ajv.addFormat(format, true);
  ajv.addFormat("date-time", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
  ajv.addSchema(whole, "document");
  const at = (...path: string[]) => {
    const pointer = path.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/");
    return ajv.getSchema(`document#/${pointer}`) ?? assert.fail(`the document has no ${pointer}`);
  };
  return {
    schema: (name: string) => at("components", "schemas", name),
    body(operation: Operation, status: string) {
      const found = operations.find((other) => other.operation === operation) ?? assert.fail();
      const { $ref } = operation.responses[status] ?? {};
      const response = $ref?.split("/").slice(1) ?? ["paths", found.template, found.verb, "responses", status];
      return at(...response, "content", "application/json", "schema");
    },
  };
}
