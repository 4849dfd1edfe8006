import assert from "node:assert/strict";
import { afterAll, describe, test } from "vitest";
import type { ModelEntry } from "../../src/config/config.ts";
import { createHttpClient } from "../../src/models/http.ts";
import { complete, type Model, type ModelCall } from "../../src/models/model.ts";
import { createVendorModel } from "../../src/models/vendor.ts";
import { type Reply, type ScriptedVendor, startVendor, type VendorKind } from "../helpers/vendors.ts";
import { call } from "./fake-model.ts";

const http = createHttpClient({ connectMs: 1_000 });
afterAll(() => http.close());

/** Text that a parser would change: integer-like and odd names, numbers in unusual spelling. */
const SCHEMA =
  '{"type":"object","properties":{"9":{"type":"number","enum":[1.0,123456789012345678901234567890]},' +
  '"1":{"type":"string"},"__proto__":{"type":"string"}},"required":["9","1","__proto__"],"additionalProperties":false}';
const ANSWER = '{"9":1.0,"1":"x","__proto__":"y"}';

async function withVendor(kind: VendorKind, use: (vendor: ScriptedVendor) => Promise<void>): Promise<void> {
  const vendor = await startVendor(kind, { text: ANSWER });
  try {
    await use(vendor);
  } finally {
    await vendor.close();
  }
}

const ask = async (model: Model, schema = SCHEMA, more: Partial<ModelCall> = {}): Promise<string> =>
  (await complete(model, call({ streamed: false, format: { type: "schema", schema }, ...more }))).text;
const open = (entry: ModelEntry): Model => createVendorModel(entry, http);

interface Place {
  name: string;
  kind: VendorKind;
  overrides: Partial<ModelEntry>;
  /** What stands around the schema in the body. */
  around: [before: string, after: string];
  /** The request for any JSON; undefined where the format has none. */
  anyJson: string | undefined;
}

const OPENAI: Pick<Place, "kind" | "around" | "anyJson"> = {
  kind: "openai",
  around: [',"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":', "}}}"],
  anyJson: '"response_format":{"type":"json_object"}',
};
const PLACES: Place[] = [
  { ...OPENAI, name: "openai", overrides: {} },
  { ...OPENAI, name: "openai-compatible", overrides: { vendor: "openai-compatible" } },
  {
    name: "anthropic",
    kind: "anthropic",
    overrides: {},
    around: [',"output_config":{"format":{"type":"json_schema","schema":', "}}}"],
    anyJson: undefined,
  },
  {
    name: "google",
    kind: "google",
    overrides: {},
    around: ['"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":', "}}"],
    anyJson: '"responseMimeType":"application/json"',
  },
];
/** The text as a part of a JSON string. */
const quoted = (text: string): string => JSON.stringify(text).slice(1, -1);

for (const { name, kind, overrides, around, anyJson } of PLACES) {
  describe(name, () => {
    test("sends the schema as the caller's own text, and returns the answer as the model's own text", () =>
      withVendor(kind, async (vendor) => {
        for (const streamed of [false, true]) {
          assert.equal(await ask(open(vendor.entry(overrides)), SCHEMA, { streamed }), ANSWER);
          const { body, json } = vendor.calls.at(-1) ?? assert.fail();
          assert.ok(body.includes(around.join(SCHEMA)), body);
          assert.equal(json.tools, undefined);
        }
      }));

    test("takes no text of the caller for the schema", () =>
      withVendor(kind, async (vendor) => {
        const hostile = [SCHEMA, around.join("{}"), `"}${around.join("{}")}`, `\\"${around[0]}`, '"schema":'];
        const prompt: ModelCall["prompt"] = {
          system: hostile.join("\n"),
          turns: [{ role: "user", text: hostile.join("\n") }],
        };
        const property = `{"type":"string","description":${JSON.stringify(hostile[1])}}`;
        const schema = `{"type":"object","properties":{"a":${property}},"required":["a"],"additionalProperties":false}`;
        await ask(open(vendor.entry(overrides)), schema, { prompt });
        const { body } = vendor.calls[0] ?? assert.fail();
        assert.ok(body.endsWith(around.join(schema)), body);
        assert.ok(body.includes(quoted(hostile.join("\n"))), "the caller's text is unchanged");
      }));

    test("asks for the schema in words when the model takes no JSON Schema", () =>
      withVendor(kind, async (vendor) => {
        assert.equal(await ask(open(vendor.entry({ ...overrides, jsonSchema: false }))), ANSWER);
        const { body } = vendor.calls[0] ?? assert.fail();
        assert.ok(body.includes(quoted(SCHEMA)), "in words, as written");
        assert.ok(!body.includes(around[0]));
        if (anyJson) assert.ok(body.includes(anyJson), body);
      }));

    test("asks for the schema in words when the vendor refuses it", () =>
      withVendor(kind, async (vendor) => {
        const replies: Reply[] = [
          { status: 400, error: { message: "Invalid schema for response_format", param: "response_format" } },
          { status: 422, error: { message: "Request contains an invalid argument.", type: "INVALID_ARGUMENT" } },
        ];
        for (const reply of replies) {
          vendor.reply(reply);
          const count = vendor.calls.length;
          assert.equal(await ask(open(vendor.entry(overrides))), ANSWER);
          assert.equal(vendor.calls.length - count, 2);
          assert.ok(vendor.calls.at(-1)?.body.includes(quoted(SCHEMA)));
        }
      }));

    test("asks for the schema in words at once after the vendor has said that it supports none", () =>
      withVendor(kind, async (vendor) => {
        const message = "This model does not support json_schema for response_format: unsupported schema.";
        vendor.reply({ status: 400, error: { message, type: "invalid_request_error" } });
        const model = open(vendor.entry(overrides));
        await ask(model);
        await ask(model);
        assert.equal(vendor.calls.length, 3);
        assert.ok(vendor.calls[2]?.body.includes(quoted(SCHEMA)));
      }));

    test("asks for JSON without a schema", () =>
      withVendor(kind, async (vendor) => {
        await ask(open(vendor.entry(overrides)), "", { format: { type: "json" } });
        const { body } = vendor.calls[0] ?? assert.fail();
        assert.ok(!body.includes("schema"), body);
        assert.equal(body.includes(anyJson ?? "no such words"), anyJson !== undefined);
      }));
  });
}

test("anthropic: asks in words at once for a schema that its grammar cannot express", () =>
  withVendor("anthropic", async (vendor) => {
    await ask(open(vendor.entry()), '{"type":"object","properties":{},"additionalProperties":true}');
    const { json } = vendor.calls[0] ?? assert.fail();
    assert.equal(json.output_config, undefined);
    assert.match(JSON.stringify(json.system), /JSON Schema/);
    assert.equal(vendor.calls.length, 1);
  }));

test("anthropic: sends the effort and the schema in one object", () =>
  withVendor("anthropic", async (vendor) => {
    await ask(open(vendor.entry()), SCHEMA, { reasoning: "low" });
    const { body } = vendor.calls[0] ?? assert.fail();
    assert.ok(body.endsWith(`,"output_config":{"effort":"low","format":{"type":"json_schema","schema":${SCHEMA}}}}`));
  }));

test("openai: sends a schema that strict mode cannot express as a hint", () =>
  withVendor("openai", async (vendor) => {
    const text =
      '{"type":"object","properties":{"10":{"type":"string","default":1.0},"1":{"type":"null"}},' +
      '"additionalProperties":true}';
    await ask(open(vendor.entry()), text);
    assert.ok(vendor.calls[0]?.body.includes(`"strict":false,"schema":${text}}`));
  }));

test("asks in words alone when a server knows no JSON mode either, and remembers that", () =>
  withVendor("openai", async (vendor) => {
    vendor.always(({ body }) =>
      body.includes("response_format")
        ? { status: 400, error: { message: "unknown field response_format" } }
        : { text: ANSWER },
    );
    for (const [jsonSchema, calls] of [
      [false, 2],
      [true, 3],
    ] as const) {
      const model = open(vendor.entry({ vendor: "openai-compatible", jsonSchema }));
      const count = vendor.calls.length;
      assert.equal(await ask(model), ANSWER);
      assert.equal(vendor.calls.length - count, calls);
      assert.equal(await ask(model), ANSWER);
      assert.equal(vendor.calls.length - count, calls + 1);
    }
  }));
