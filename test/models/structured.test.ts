import assert from "node:assert/strict";
import { afterAll, describe, test } from "vitest";
import { createHttpClient } from "../../src/models/http.ts";
import type { ModelEntry } from "../../src/models/port/entry.ts";
import { complete, type Model, type ModelCall } from "../../src/models/port/model.ts";
import { createVendorModel } from "../../src/models/vendor.ts";
import { type Reply, type ScriptedVendor, startVendor, type WireKind } from "../helpers/vendors.ts";
import { call } from "./fake-model.ts";

const http = createHttpClient({ connectMs: 1_000 });
afterAll(() => http.close());

/** Text that a parser would change: integer-like and odd names, numbers in unusual spelling. */
const SCHEMA =
  '{"type":"object","properties":{"9":{"type":"number","enum":[1.0,123456789012345678901234567890]},' +
  '"1":{"type":"string"},"__proto__":{"type":"string"}},"required":["9","1","__proto__"],"additionalProperties":false}';
/** No strict mode takes it, because an object is open and a property optional. */
const LAX =
  '{ "properties":{"9":{"type":"number","default":1e2},"1":{"type":"string","minLength":1.0},' +
  '"__proto__":{"type":"string"}},\n"type":"object","required":["9"] }';
const ANSWER = '{"9":1.0,"1":"x","__proto__":"y"}';

async function withVendor(kind: WireKind, use: (vendor: ScriptedVendor) => Promise<void>): Promise<void> {
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
  kind: WireKind;
  overrides: Partial<ModelEntry>;
  /** What stands around the schema in the body, in the vendor's strict mode and in the mode that takes any schema. */
  around: [before: string, after: string];
  lax: [before: string, after: string];
  /** The request for any JSON; undefined where the format has none. */
  anyJson: string | undefined;
}

const OPENAI: Pick<Place, "kind" | "around" | "lax" | "anyJson"> = {
  kind: "openai",
  around: [',"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":', "}}}"],
  lax: [',"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":false,"schema":', "}}}"],
  anyJson: '"response_format":{"type":"json_object"}',
};
const PLACES: Place[] = [
  { ...OPENAI, name: "openai", overrides: {} },
  { ...OPENAI, name: "openai-compatible", overrides: { vendor: "openai-compatible" } },
  {
    name: "responses",
    kind: "responses",
    overrides: {},
    around: [',"text":{"format":{"type":"json_schema","name":"answer","strict":true,"schema":', "}}}"],
    lax: [',"text":{"format":{"type":"json_schema","name":"answer","strict":false,"schema":', "}}}"],
    anyJson: '"text":{"format":{"type":"json_object"}}',
  },
  {
    name: "anthropic",
    kind: "anthropic",
    overrides: {},
    around: [',"output_config":{"format":{"type":"json_schema","schema":', "}}}"],
    lax: [',"input_schema":', "}]}"],
    anyJson: undefined,
  },
  {
    name: "google",
    kind: "google",
    overrides: {},
    around: ['"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":', "}}"],
    lax: ['"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":', "}}"],
    anyJson: '"responseMimeType":"application/json"',
  },
];
/** The text as a part of a JSON string. */
const quoted = (text: string): string => JSON.stringify(text).slice(1, -1);

for (const { name, kind, overrides, around, lax, anyJson } of PLACES) {
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

    test("sends a schema that no strict mode takes as the caller's own text", () =>
      withVendor(kind, async (vendor) => {
        for (const streamed of [false, true]) {
          assert.equal(await ask(open(vendor.entry(overrides)), LAX, { streamed }), ANSWER);
          const { body } = vendor.calls.at(-1) ?? assert.fail();
          assert.ok(body.endsWith(lax.join(LAX)), body);
        }
        assert.equal(vendor.calls.length, 2);
      }));

    test("takes no text of the caller for the schema", () =>
      withVendor(kind, async (vendor) => {
        const hostile = [SCHEMA, around.join("{}"), `"}${around.join("{}")}`, `\\"${around[0]}`, '"schema":'];
        const prompt: ModelCall["prompt"] = {
          system: hostile.join("\n"),
          messages: [{ role: "user", text: hostile.join("\n") }],
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

    test("sends the schema in the other mode, then in words, when the vendor refuses it", () =>
      withVendor(kind, async (vendor) => {
        const modes = around[0] === lax[0] ? [around] : [around, lax];
        const replies: Reply[] = [
          { status: 400, error: { message: "Invalid schema for response_format", param: "response_format" } },
          { status: 422, error: { message: "Request contains an invalid argument.", type: "INVALID_ARGUMENT" } },
        ];
        for (const reply of replies) {
          vendor.calls.length = 0;
          vendor.reply(...modes.map(() => reply));
          assert.equal(await ask(open(vendor.entry(overrides))), ANSWER);
          assert.equal(vendor.calls.length, modes.length + 1);
          for (const [i, mode] of modes.entries()) assert.ok(vendor.calls[i]?.body.endsWith(mode.join(SCHEMA)));
          assert.ok(vendor.calls.at(-1)?.body.includes(quoted(SCHEMA)));
        }
      }));

    test("asks for the schema in words at once after the vendor has said that it supports none", () =>
      withVendor(kind, async (vendor) => {
        const message = "This model does not support json_schema for response_format: unsupported schema.";
        const isIn = (body: string) => body.includes(around[0]) || body.includes(lax[0]);
        vendor.always(({ body }) =>
          isIn(body) ? { status: 400, error: { message, type: "invalid_request_error" } } : { text: ANSWER },
        );
        for (const schema of [SCHEMA, LAX]) {
          const model = open(vendor.entry(overrides));
          await ask(model, schema);
          const count = vendor.calls.length;
          await ask(model, schema);
          assert.equal(vendor.calls.length, count + 1);
          assert.ok(vendor.calls.at(-1)?.body.includes(quoted(schema)));
        }
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

describe("anthropic's tool", () => {
  test("must be called by a model that does not think, and may be by one that thinks", () =>
    withVendor("anthropic", async (vendor) => {
      for (const [reasoning, choice] of [
        [undefined, { type: "tool", name: "answer" }],
        ["none", { type: "tool", name: "answer" }],
        ["high", { type: "auto" }],
      ] as const) {
        assert.equal(await ask(open(vendor.entry()), LAX, reasoning ? { reasoning } : {}), ANSWER);
        const { json } = vendor.calls.at(-1) ?? assert.fail();
        assert.deepEqual(json.tool_choice, choice);
        assert.deepEqual(json.output_config, reasoning === "high" ? { effort: "high" } : undefined);
      }
    }));

  test("takes the answer as text as well", () =>
    withVendor("anthropic", async (vendor) => {
      const block = '{"type":"text","text":"Here it is: "},';
      const input = '{"type":"tool_use","id":"t","name":"answer","input":{"9":1.0,"1":"\\u0061"}}';
      const other = '{"type":"tool_use","id":"t","name":"other","input":{"no":1}}';
      vendor.reply({ raw: `{"type":"message","content":[${block}${other},${input}],"stop_reason":"tool_use"}` });
      assert.equal(await ask(open(vendor.entry()), LAX), 'Here it is: {"9":1.0,"1":"\\u0061"}');
      vendor.reply({ text: "I have no answer." });
      assert.equal(await ask(open(vendor.entry()), LAX), "I have no answer.");
    }));

  test("gives an empty object if the stream has no input", () =>
    withVendor("anthropic", async (vendor) => {
      vendor.reply({ text: ["{}"], split: 1 }, { raw: `${frames({ input: {} })}` });
      for (let i = 0; i < 2; i++) {
        const { text, end } = await complete(open(vendor.entry()), call({ format: { type: "schema", schema: LAX } }));
        assert.deepEqual([text, end.reason], ["{}", "stop"]);
      }
    }));

  /** A stream in which the model calls the tool without a delta that has text. */
  function frames(block: object): string {
    return [
      { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "t", name: "answer", ...block } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: "" } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 3 } },
      { type: "message_stop" },
    ]
      .map((event) => `data: ${JSON.stringify(event)}\n\n`)
      .join("");
  }
});

test("anthropic: sends the effort and the schema in one object", () =>
  withVendor("anthropic", async (vendor) => {
    await ask(open(vendor.entry()), SCHEMA, { reasoning: "low" });
    const { body } = vendor.calls[0] ?? assert.fail();
    assert.ok(body.endsWith(`,"output_config":{"effort":"low","format":{"type":"json_schema","schema":${SCHEMA}}}}`));
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
      [true, 4],
    ] as const) {
      const model = open(vendor.entry({ vendor: "openai-compatible", jsonSchema }));
      const count = vendor.calls.length;
      assert.equal(await ask(model), ANSWER);
      assert.equal(vendor.calls.length - count, calls);
      assert.equal(await ask(model), ANSWER);
      assert.equal(vendor.calls.length - count, calls + 1);
    }
  }));

/** A chain of objects, each of which may have a next one. */
const NODE = '{"type":"object","properties":{"9":{"type":"null"},"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}';
const CLOSED = `${NODE},"required":["9","next"],"additionalProperties":false}`;
const RECURSIVE = PLACES.map(({ name, around, lax }): [Place["name"], string[] | undefined] => [
  name,
  // Gemini refuses it, and Anthropic in the strict mode.
  name === "google" ? undefined : name === "anthropic" ? lax : around,
]);

test.for(RECURSIVE)("%s: gets a schema that contains itself in a mode that takes it, or in words", ([name, around]) => {
  const { kind, overrides, anyJson = "" } = PLACES.find((place) => place.name === name) ?? assert.fail();
  return withVendor(kind, async (vendor) => {
    assert.equal(await ask(open(vendor.entry(overrides)), CLOSED), ANSWER);
    assert.equal(vendor.calls.length, 1);
    const { body } = vendor.calls[0] ?? assert.fail();
    if (around) assert.ok(body.endsWith(around.join(CLOSED)), body);
    else assert.ok(body.includes(quoted(CLOSED)) && body.includes(anyJson), body);
  });
});
