import assert from "node:assert/strict";
import {
  create,
  type DescField,
  type DescMethod,
  equals,
  fromJson,
  type JsonValue,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import fc from "fast-check";
import { SetSpendLimitRequestSchema } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { CreateKeyRequestSchema, KeyService, Scope } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { FailureDetailSchema } from "../../../gen/chorus/v1/failure_pb.js";
import {
  Effort,
  type GenerateRequest,
  GenerateRequestSchema,
  GenerateResponseSchema,
  GenerationService,
  GetGenerationResponseSchema,
  MetricsInterval,
  type MetricsRequest,
  MetricsResponseSchema,
  OutputShape,
  QuotasResponseSchema,
  RecordOutcomeResponseSchema,
  Role,
} from "../../../gen/chorus/v1/generation_pb.js";
import { words } from "../../../src/contract/json-names.ts";
import { CHORUS_SERVICES } from "../../../src/transport/call/methods.ts";
import { type EnumSite, enumSites, messagePlaces } from "../../helpers/enum-sites.ts";
import { test as base, OFFLINE } from "../../helpers/fixtures.ts";
import { envelope, grpcCall } from "../../helpers/grpc.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";
import { serveRpc, statusDetail } from "../../helpers/rpc.ts";

const METHODS: DescMethod[] = CHORUS_SERVICES.flatMap(({ methods }) => [...methods]);
const UNARY = METHODS.filter(({ methodKind }) => methodKind === "unary");
/** The only unary method whose response has notices about its request. */
const NOTICED: DescMethod = GenerationService.method.generate;
const SPELLINGS: ((field: DescField) => string)[] = [({ name }) => name, ({ jsonName }) => jsonName];

const test = base.extend("env", { scope: "file" }, OFFLINE).extend("echo", async ({ t }) => serveEcho(t));

/** A listener whose methods keep the last request, and whether it was noticed to have unknown members. */
async function serveEcho(t: Lifetime) {
  const seen: { request: Message | undefined; noticed: (string | undefined)[] } = { request: undefined, noticed: [] };
  const echo = async ({ output }: DescMethod, request: Message) => {
    seen.request = request;
    return create(output);
  };
  const admin = Object.fromEntries(
    METHODS.map((method) => [method.localName, (request: Message) => echo(method, request)]),
  );
  const { url } = await serveRpc(t, {
    ...{ workspaces: admin, credits: admin, keys: admin, usage: admin },
    ...{ activity: admin, operations: admin, alerts: admin, caps: admin, members: admin },
    generation: {
      async generateWhole(request, { notices }) {
        seen.request = request as GenerateRequest;
        seen.noticed = notices.map(({ field }) => field);
        return create(GenerateResponseSchema);
      },
    },
    metrics: async (request) => {
      seen.request = request;
      return create(MetricsResponseSchema);
    },
    recordOutcome: async () => create(RecordOutcomeResponseSchema),
    getGeneration: async () => create(GetGenerationResponseSchema),
    quotas: async () => create(QuotasResponseSchema),
  });
  return { url, seen };
}

interface Answer {
  status: number;
  code?: string;
  field?: string;
  message?: string;
}

const pathOf = (method: DescMethod) => `/${method.parent.typeName}/${method.name}`;

/** Calls a unary method of Connect. */
async function call(url: string, method: DescMethod, body: string): Promise<Answer> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url + pathOf(method), { method: "POST", headers, body });
  return answerOf(response);
}

async function answerOf(response: Response): Promise<Answer> {
  const { message, details } = (await response.json()) as Answer & { details?: { debug: Answer }[] };
  const { code, field } = details?.[0]?.debug ?? {};
  return { status: response.status, ...(code && { code, field, message }) } as Answer;
}

const json = (value: JsonValue) => JSON.stringify(value);

test("reads the words of the contract and those of protobuf", async ({ echo: { url, seen } }) => {
  const { createKey } = KeyService.method;
  for (const word of ["metrics", "SCOPE_METRICS", Scope.METRICS]) {
    assert.deepEqual(await call(url, createKey, json({ workspace: "w", scopes: [word] })), { status: 200 });
    const expected = create(CreateKeyRequestSchema, { workspace: "w", scopes: [Scope.METRICS] });
    assert.ok(equals(CreateKeyRequestSchema, seen.request as typeof expected, expected));
  }
  const { generate, metrics } = GenerationService.method;
  const body = { messages: [{ role: "user", content: "a" }], effort: "high", output_shape: "extract" };
  assert.deepEqual(await call(url, generate, json(body)), { status: 200 });
  const { effort, outputShape, messages } = seen.request as GenerateRequest;
  assert.deepEqual([effort, outputShape, messages[0]?.role], [Effort.HIGH, OutputShape.EXTRACT, Role.USER]);
  assert.deepEqual(seen.noticed, []);
  const query = new URLSearchParams({ encoding: "json", message: '{"interval":"hour","group_by":"key"}' });
  assert.equal((await fetch(`${url}${pathOf(metrics)}?${query}`)).status, 200);
  assert.equal((seen.request as MetricsRequest).interval, MetricsInterval.HOUR);
  query.set("message", '{"interval":"hours"}');
  const refused = await answerOf(await fetch(`${url}${pathOf(metrics)}?${query}`));
  assert.deepEqual([refused.code, refused.field], ["invalid_request", "interval"]);
});

test("replaces lone surrogates in texts, as /v1 does", async ({ echo: { url, seen } }) => {
  const body =
    '{"messages":[{"role":"user","content":"a\\ud83d \\ude00\\ud83d\\ude00"}],' +
    '"stopSequences":["\\ud83d","b"],"tags":{"team":"\\ude00"}}';
  assert.deepEqual(await call(url, NOTICED, body), { status: 200 });
  const { messages, stopSequences, tags } = seen.request as GenerateRequest;
  assert.equal(messages[0]?.content, "a\ufffd \ufffd😀");
  assert.deepEqual(stopSequences, ["\ufffd", "b"]);
  assert.deepEqual(tags, { team: "\ufffd" });
});

test("refuses what could grant more than was asked", async ({ t, echo: { url, seen } }) => {
  const rows: [body: string, field: string][] = [
    ['{"scopes":["SCOPE_METRICZ"]}', "scopes[0]"],
    ['{"scopes":["metrics","Metrics"]}', "scopes[1]"],
    ['{"scopes":[99]}', "scopes[0]"],
    ['{"scopes":[1.5]}', "scopes[0]"],
    ['{"scopes":["2"]}', "scopes[0]"],
    ['{"scopes":[""]}', "scopes[0]"],
    ['{"scopes":[null]}', "scopes[0]"],
    ['{"scopes":[[]]}', "scopes[0]"],
    ['{"scopes":[0]}', "scopes[0]"],
    ['{"scopes":["SCOPE_UNSPECIFIED"]}', "scopes[0]"],
    ['{"scopes":"metrics"}', "scopes"],
    ['{"scopes":{"0":"metrics"}}', "scopes"],
    ['{"scope":["metrics"]}', "scope"],
    ['{"expires":"2030-01-01T00:00:00Z"}', "expires"],
    ['{"expires":null}', "expires"],
    ['{"__proto__":{"scopes":["metrics"]}}', "__proto__"],
    ['{"expires_at":"2030-01-01T00:00:00Z","expiresAt":null}', "expires_at"],
    ['{"expiresAt":"","expires_at":"2030-01-01T00:00:00Z"}', "expires_at"],
    ['{"scopes":["SCOPE_METRICS"],"scopes":[]}', "scopes"],
    ['{"scopes":["metrics"],"\\u0073copes":["generate","metrics"]}', "scopes"],
    ['{"expires_at":"tomorrow"}', "expires_at"],
    ['{"expires_at":"2027-02-30T00:00:00Z"}', "expires_at"],
    ['{"expiresAt":"2027-04-31T23:00:00+02:00"}', "expires_at"],
    ['{"workspace":1}', "workspace"],
  ];
  for (const [body, field] of rows) {
    const { code, field: named } = await call(url, KeyService.method.createKey, body);
    assert.deepEqual([code, named], ["invalid_request", field], body);
  }
  assert.equal(seen.request, undefined);
  const { message } = await call(url, KeyService.method.createKey, '{"scopes":["all"]}');
  assert.equal(message, 'scopes[0] must be one of "generate", "metrics".');
  const grpc = { "content-type": "application/grpc+json" };
  const { trailers } = await grpcCall(t, url, pathOf(KeyService.method.createKey), grpc, envelope('{"scope":[]}'));
  assert.equal(statusDetail(statusOf(trailers), FailureDetailSchema).field, "scope");
});

test("names the field of a value with the wrong type by its path, and what it must be", async ({ echo: { url } }) => {
  const together = "response_format.text and response_format.json_schema exclude each other. Send one of them.";
  const rows: [body: string, field: string, message?: string][] = [
    ['{"messages":[{"role":"user","content":"a"},{"role":"users"}]}', "messages[1].role"],
    ['{"messages":[{"role":"user","content":7}]}', "messages[0].content", "must be a string."],
    ['{"messages":["a"]}', "messages[0]", "must be an object."],
    ['{"messages":"a"}', "messages", "must be a list."],
    ['{"response_format":{"json_schema":"a"}}', "response_format.json_schema", "must be an object."],
    ['{"response_format":{"json_schema":{"schema":{}}}}', "response_format.json_schema.schema", "must be a string."],
    ['{"response_format":{"text":{},"jsonSchema":{}}}', "response_format", together],
    ['{"maxTokens":1,"max_tokens":2}', "max_tokens"],
    ['{"maxTokens":1.5}', "max_tokens", "must be a whole number of at most 32 bits."],
    ['{"temperature":"hot"}', "temperature", "must be a number."],
    ['{"continue":true,"continue_last_message":true}', "continue"],
    ['{"continue":1}', "continue", "must be true or false."],
    ['{"attachments":[{"data":"?"}]}', "attachments[0].data", "must be a base64 string."],
    ['{"stop_sequences":"a"}', "stop_sequences", "must be a list."],
    ['{"stop_sequences":["a",1]}', "stop_sequences[1]", "must be a string."],
    ['{"tags":{"a":1}}', "tags", "must be an object whose values are strings."],
  ];
  for (const [body, field, expected] of rows) {
    const { code, field: named, message } = await call(url, NOTICED, body);
    assert.deepEqual([code, named], ["invalid_request", field], body);
    if (expected) assert.equal(message, expected === together ? together : `${field} ${expected}`);
  }
  const times = '{"id":"key_1","expiresAt":"2030-01-01T00:00:00Z","neverExpires":{}}';
  const both = await call(url, KeyService.method.updateKey, times);
  assert.deepEqual(
    [both.field, both.message],
    ["expires_at", "expires_at and never_expires exclude each other. Send one of them."],
  );
  const { message } = await call(url, KeyService.method.createKey, '{"expires_at":"tomorrow"}');
  assert.equal(message, 'expires_at must be a time such as "2026-01-31T00:00:00Z".');
});

test("reads each word of every enum field, and takes no other for an absent field", async ({ echo: { url, seen } }) => {
  for (const method of UNARY)
    for (const spell of SPELLINGS)
      for (const site of enumSites(method.input, spell)) {
        for (const { number, name } of site.desc.values) {
          if (number === 0 && site.isItem) continue;
          for (const word of [name, number, words(site.desc).get(number) ?? name]) {
            const body = json(site.with(word));
            assert.deepEqual(await call(url, method, body), { status: 200 }, `${pathOf(method)} ${body}`);
            const expected = fromJson(method.input, site.with(number));
            assert.ok(equals(method.input, seen.request as Message, expected), body);
          }
        }
        await refusesAnyOther(url, method, site);
      }
});

async function refusesAnyOther(url: string, method: DescMethod, { desc, path, with: body }: EnumSite): Promise<void> {
  const known = new Set<unknown>(desc.values.flatMap(({ name, number }) => [name, number]));
  for (const word of words(desc).values()) known.add(word);
  const near = [...known].flatMap((word) => [`${word} `, `X${word}`, `${word}`.slice(0, -1), `${word}`.toLowerCase()]);
  const value = fc.oneof(
    fc.string(),
    fc.constantFrom(...near, "__proto__", "toString", true, {}),
    fc.integer(),
    fc.double(),
  );
  await fc.assert(
    fc.asyncProperty(value, async (word) => {
      fc.pre(
        !known.has(word) && word !== "" && !Number.isNaN(word) && Math.abs(Number(word)) !== Infinity && word !== 0,
      );
      const { code, field, message } = await call(url, method, json(body(word as JsonValue)));
      assert.deepEqual([code, field], ["invalid_request", path]);
      for (const expected of words(desc).values()) assert.ok(message?.includes(`"${expected}"`), message);
    }),
    { numRuns: 8 },
  );
}

test("refuses an unknown member of every message, or notices it", async ({ echo: { url, seen } }) => {
  for (const method of UNARY)
    for (const { path, message, with: within } of messagePlaces(method.input)) {
      const known = new Set(message.fields.flatMap(({ name, jsonName }) => [name, jsonName]));
      await fc.assert(
        fc.asyncProperty(fc.string({ maxLength: 20 }), fc.jsonValue({ maxDepth: 1 }), async (name, value) => {
          fc.pre(!known.has(name));
          const member = Object.fromEntries([[name, value as JsonValue]]);
          const { status, code, field } = await call(url, method, json(within(member)));
          const at = path === "" ? name : `${path}.${name}`;
          if (method === NOTICED) assert.deepEqual([status, seen.noticed], [200, [at]]);
          else assert.deepEqual([code, field ?? ""], ["invalid_request", at], pathOf(method));
        }),
        { numRuns: 8 },
      );
    }
});

test("ignores an unknown field of the binary format, as protobuf requires", async ({ t, echo: { url } }) => {
  // Field 1,000 with the number 1.
  const body = envelope(new Uint8Array([0xc0, 0x3e, 1]));
  for (const method of UNARY) {
    const { trailers } = await grpcCall(t, url, pathOf(method), {}, body);
    assert.equal(trailers["grpc-status"], "0", pathOf(method));
  }
});

test("refuses an unknown number of every enum field in the binary format", async ({ t, service }) => {
  const valid = { workspace: "default", prompt: "a", name: "a" };
  const others: Record<string, object> = {
    [GenerateRequestSchema.typeName]: { prompt: "a" },
    [SetSpendLimitRequestSchema.typeName]: { workspace: "default", amount: "1" },
  };
  let count = 0;
  for (const method of METHODS)
    for (const { path, isItem, with: within } of enumSites(method.input, ({ jsonName }) => jsonName)) {
      const { input } = method;
      const own = Object.entries(others[input.typeName] ?? valid).filter(([name]) => input.field[name]);
      if (path.startsWith("messages")) own.length = 0;
      const secret = method.parent === GenerationService ? service.apiKey : service.operatorToken;
      for (const number of isItem ? [99, -1, 0] : [99, -1]) {
        const body = toBinary(input, fromJson(input, { ...Object.fromEntries(own), ...within(number) }));
        const headers = { "x-api-key": secret, authorization: `Bearer ${secret}` };
        const { trailers } = await grpcCall(t, service.rpcUrl, pathOf(method), headers, envelope(body));
        assert.notEqual(trailers["grpc-status"], "0", `${pathOf(method)} ${path}`);
        const { code, field } = statusDetail(statusOf(trailers), FailureDetailSchema);
        // In public JSON, the mode stands in place of the whole choice.
        const named = path === "tool_choice.mode" ? "tool_choice" : path;
        assert.deepEqual([code, field], ["invalid_request", named], pathOf(method));
        count++;
      }
    }
  assert.ok(count > 20, `${count}`);
});

function statusOf(trailers: Record<string, unknown>): Buffer {
  return Buffer.from(String(trailers["grpc-status-details-bin"]), "base64");
}
