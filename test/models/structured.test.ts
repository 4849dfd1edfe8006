import assert from "node:assert/strict";
import type { JSONSchema7 } from "@ai-sdk/provider";
import { afterAll, test } from "vitest";
import type { ModelEntry } from "../../src/config/config.ts";
import { createFetch } from "../../src/models/fetch.ts";
import { inlineSchema, SCHEMA_PLACEHOLDER } from "../../src/models/inline-schema.ts";
import { createVendorModel } from "../../src/models/vendor.ts";
import { type ScriptedVendor, startVendor, type VendorKind } from "../helpers/vendors.ts";
import { type Call, call, collect, textOf } from "./fake-model.ts";

const { fetch, close } = createFetch({ connectMs: 1_000 });
afterAll(close);

/** As a caller wrote it: integer-like and odd names, numbers with a spelling of their own. */
const SCHEMA =
  '{"type":"object","properties":{"9":{"type":"number","enum":[1.0,123456789012345678901234567890]},' +
  '"1":{"type":"string"},"__proto__":{"type":"string"}},"required":["9","1","__proto__"],"additionalProperties":false}';
const ANSWER = '{"9":1.0,"1":"x","__proto__":"y"}';

function structured(text = SCHEMA, more: Partial<Call> = {}): Call {
  const schema = JSON.parse(text) as JSONSchema7;
  return call({
    responseFormat: { type: "json", name: "answer", schema },
    providerOptions: { chorus: { schema: text } },
    ...more,
  });
}

async function withVendor(kind: VendorKind, use: (vendor: ScriptedVendor) => Promise<void>): Promise<void> {
  const vendor = await startVendor(kind, { text: ANSWER });
  try {
    await use(vendor);
  } finally {
    await vendor.close();
  }
}

const textAnswer = async (entry: ModelEntry, options: Call) => {
  const { content } = await createVendorModel(entry, fetch).doGenerate(options);
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
};

const PLACES: { kind: VendorKind; overrides: Partial<ModelEntry>; around: [before: string, after: string] }[] = [
  { kind: "openai", overrides: {}, around: ['"json_schema":{"schema":', ',"strict":true,"name":"answer"}'] },
  {
    kind: "openai",
    overrides: { vendor: "openai-compatible" },
    around: ['"json_schema":{"schema":', ',"strict":true,"name":"answer"}'],
  },
  { kind: "anthropic", overrides: {}, around: ['"output_config":{"format":{"type":"json_schema","schema":', "}}"] },
  { kind: "anthropic", overrides: { model: "claude-opus-5-5" }, around: ['{"type":"json_schema","schema":', "}}"] },
  { kind: "google", overrides: {}, around: ['"responseMimeType":"application/json","responseJsonSchema":', "}"] },
];

for (const { kind, overrides, around } of PLACES) {
  const name = `${overrides.vendor ?? kind} ${overrides.model ?? ""}`;

  test(`${name}: the schema reaches the vendor as written, and the answer comes back as text`, () =>
    withVendor(kind, async (vendor) => {
      assert.equal(await textAnswer(vendor.entry(overrides), structured()), ANSWER);
      const { body, json } = vendor.calls[0] ?? assert.fail();
      assert.ok(body.includes(around.join(SCHEMA)), body);
      assert.ok(!body.includes(String(SCHEMA_PLACEHOLDER.description)));
      assert.equal(json.tools, undefined);

      const { stream } = await createVendorModel(vendor.entry(overrides), fetch).doStream(structured());
      assert.equal(textOf(await collect(stream)), ANSWER);
      assert.ok(vendor.calls[1]?.body.includes(around.join(SCHEMA)));
    }));

  test(`${name}: nothing that a caller writes is taken for the schema's place`, () =>
    withVendor(kind, async (vendor) => {
      // Even a caller who knew the mark.
      const placeholder = JSON.stringify(SCHEMA_PLACEHOLDER);
      const hostile = [
        placeholder,
        placeholder.slice(1, -1),
        `"},${placeholder},{"`,
        `\\",${placeholder}`,
        String(SCHEMA_PLACEHOLDER.description),
      ];
      const prompt: Call["prompt"] = [
        { role: "system", content: hostile.join("\n") },
        { role: "user", content: hostile.map((text) => ({ type: "text", text })) },
      ];
      const text = `{"type":"object","properties":{"a":{"type":"string","description":${JSON.stringify(hostile[1])}}},"required":["a"],"additionalProperties":false}`;
      await textAnswer(vendor.entry(overrides), structured(text, { prompt }));
      const { body } = vendor.calls[0] ?? assert.fail();
      assert.ok(body.includes(around.join(text)), "the one real place");
      for (const piece of hostile)
        assert.ok(body.includes(JSON.stringify(piece).slice(1, -1)), "the caller's text is untouched");
    }));

  test(`${name}: a model without JSON Schema gets it in the prompt`, () =>
    withVendor(kind, async (vendor) => {
      assert.equal(await textAnswer(vendor.entry({ ...overrides, jsonSchema: false }), structured()), ANSWER);
      const { body } = vendor.calls[0] ?? assert.fail();
      assert.ok(body.includes(JSON.stringify(SCHEMA).slice(1, -1)), "in words, as written");
      assert.ok(!around[0] || !body.includes(around[0]));
      if (kind === "openai") assert.ok(body.includes('"response_format":{"type":"json_object"}'));
      if (kind === "google") assert.ok(body.includes('"responseMimeType":"application/json"'));
    }));

  test(`${name}: a schema that the vendor refuses is asked for in the prompt`, () =>
    withVendor(kind, async (vendor) => {
      vendor.reply({ status: 400, error: { message: "Invalid schema for response_format", param: "response_format" } });
      assert.equal(await textAnswer(vendor.entry(overrides), structured()), ANSWER);
      assert.equal(vendor.calls.length, 2);
      assert.ok(vendor.calls[1]?.body.includes(JSON.stringify(SCHEMA).slice(1, -1)));
    }));
}

test("anthropic: a schema beyond its grammar goes into the prompt at once", () =>
  withVendor("anthropic", async (vendor) => {
    await textAnswer(vendor.entry(), structured('{"type":"object","properties":{},"additionalProperties":true}'));
    const { json } = vendor.calls[0] ?? assert.fail();
    assert.equal(json.output_config, undefined);
    assert.match(JSON.stringify(json.system), /JSON Schema/);
    assert.equal(vendor.calls.length, 1);
  }));

test("openai: a schema beyond its strict mode is sent as a hint", () =>
  withVendor("openai", async (vendor) => {
    const text =
      '{"type":"object","properties":{"10":{"type":"string","default":1.0},"1":{"type":"null"}},"additionalProperties":true}';
    await textAnswer(vendor.entry(), structured(text));
    assert.ok(vendor.calls[0]?.body.includes(`{"schema":${text},"strict":false,`));
  }));

test("a server that knows no JSON mode either is asked in words alone, and that is remembered", () =>
  withVendor("openai", async (vendor) => {
    vendor.always(({ body }) =>
      body.includes("response_format")
        ? { status: 400, error: { message: "unknown field response_format" } }
        : { text: ANSWER },
    );
    const model = createVendorModel(vendor.entry({ vendor: "openai-compatible", jsonSchema: false }), fetch);
    await model.doGenerate(structured());
    assert.equal(vendor.calls.length, 2);
    await model.doGenerate(structured());
    assert.equal(vendor.calls.length, 3);
  }));

test("the schema's text is optional: without it the object is used", () =>
  withVendor("openai", async (vendor) => {
    const { providerOptions: _, ...options } = structured();
    await textAnswer(vendor.entry(), options);
    assert.match(vendor.calls[0]?.body ?? "", /"1":\{"type":"string"\},"9":/);
  }));

test("a body without a place for the schema is an error", () => {
  assert.throws(() => inlineSchema(fetch, "{}")("http://127.0.0.1:1", { body: "{}" }), /no place/);
});
