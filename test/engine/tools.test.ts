import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, test } from "vitest";
import { Failure } from "../../src/contract/failure.ts";
import { answer, type EngineEvent, type Question } from "../../src/engine/answer.ts";
import { LooseEffort } from "../../src/engine/structured/effort.ts";
import { looseValidator } from "../../src/engine/structured/loose-schema.ts";
import { createValidators } from "../../src/engine/structured/validate.ts";
import { createTokenizer } from "../../src/engine/tokens/tokens.ts";
import { canonicalCalls, NO_CALL } from "../../src/engine/tools/canonical.ts";
import { checkCalls } from "../../src/engine/tools/check-calls.ts";
import type { Catalogue, Member } from "../../src/models/catalogue.ts";
import type { Piece, Tools, WrittenCall } from "../../src/models/port/model.ts";
import { ModelError } from "../../src/models/port/model-error.ts";
import { anthropic } from "../../src/models/wire/anthropic.ts";
import { Collector } from "../../src/models/wire/collector.ts";
import { google } from "../../src/models/wire/google.ts";
import { openai } from "../../src/models/wire/openai.ts";
import { responses } from "../../src/models/wire/responses.ts";
import { WIRES } from "../helpers/vendor-wire.ts";
import type { WireKind } from "../helpers/vendors.ts";
import { end, fakeModel, type Script, text, untilAborted } from "../models/fake-model.ts";

const tokenizer = createTokenizer();
const validators = createValidators();
const FORMATS = { openai, responses, anthropic, google };
const KINDS = ["openai", "responses", "anthropic", "google"] as const;

const WEATHER = {
  name: "get_weather",
  description: "",
  parameters:
    '{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","default":1}},' +
    '"required":["city"],"additionalProperties":false}',
};
const tools = (more: Partial<Tools> = {}): Tools => ({ list: [WEATHER], choice: "auto", parallel: true, ...more });
const weather = (given: string): WrittenCall => ({ name: "get_weather", arguments: given });

function member(tier: "fast" | "strong", vendor: string, ...scripts: Script[]) {
  const model = fakeModel(...scripts);
  const name = `${vendor}-${tier}`;
  return { model, member: { name, vendor, fingerprint: name, tier, model, images: false } satisfies Member };
}

async function ask(
  members: readonly Member[],
  more: Partial<Question> = {},
  signal = new AbortController().signal,
): Promise<EngineEvent[]> {
  const models = {
    ...{
      members,
      all: members,
      offline: false,
      fingerprintOf: () => undefined,
      load: () => [],
      isRefused: () => false,
    },
    ...{ mayBeMended: () => false, probe: async () => [], reset: () => undefined },
    ...{ test: async () => undefined, close: async () => {} },
  };
  const question: Question = {
    conversation: { system: [], messages: [{ role: "user", text: "Hi" }], continues: false },
    ...{ shape: "text", schema: undefined, level: "low", kind: "prose", temperature: undefined, maxTokens: undefined },
    ...{ stops: [], streamed: true, deadlineMs: 60_000, generation: "gen_1", tools: tools(), ...more },
  };
  const engine = { models: models satisfies Catalogue, tokenizer, validators };
  const events: EngineEvent[] = [];
  for await (const event of answer(engine, question, signal)) events.push(event);
  return events;
}

const calls = (...list: WrittenCall[]): Piece[] => [{ type: "calls", calls: list }, end()];
const callsOf = (events: readonly EngineEvent[]) =>
  events.flatMap((event) => (event.type === "call" ? [`${event.name} ${event.arguments}`] : []));

describe("calls of tools", () => {
  test("are corrected in their types where one meaning is left", () => {
    const checked = checkCalls([weather('{"city":5,"days":"3"}')], tools(), validators);
    assert.deepEqual(checked, { ok: true, calls: [weather('{"city":"5","days":3}')], repaired: true });
    assert.equal(checkCalls([weather('{"city":"a","days":"many"}')], tools(), validators).ok, false);
    assert.equal(checkCalls([{ name: "other", arguments: "{}" }], tools(), validators).ok, false);
  });

  test("are corrected in their types behind references and alternatives, as Pydantic writes them", () => {
    const parameters = JSON.stringify({
      $defs: { Line: { type: "object", properties: { count: { type: "integer" } } } },
      type: "object",
      properties: {
        days: { anyOf: [{ type: "integer" }, { type: "null" }], default: null },
        lines: { type: "array", items: { $ref: "#/$defs/Line" } },
        day: { type: "string", format: "date" },
      },
    });
    for (const list of [
      [{ ...WEATHER, parameters }],
      [{ ...WEATHER, parameters: parameters.replace("format", "title") }],
    ]) {
      const checked = checkCalls([weather('{"days":"3","lines":[{"count":"4"}]}')], tools({ list }), validators);
      const call = weather('{"days":3,"lines":[{"count":4}]}');
      assert.deepEqual(checked, { ok: true, calls: [call], repaired: true });
    }
  });

  test("have one object of arguments each", () => {
    const given = (text: string) => checkCalls([weather(text)], tools(), validators);
    const checked = { ok: true, calls: [weather('{"city":"a"}')], repaired: true };
    for (const text of ['{}{"city":"a"}', '{"city":"a"}{"city":"a"}', '{"city":"a"}\n{}'])
      assert.deepEqual(given(text), checked);
    assert.equal(given('{"city":"a"}{"city":"b"}').ok, false);
  });

  test("are checked against keywords beyond the table, within a time", () => {
    const schema = (properties: object) => JSON.stringify({ type: "object", properties });
    const isValid = (text: string, value: unknown) =>
      looseValidator(text, validators)(JSON.stringify(value), new LooseEffort(100_000)).ok;
    const choice = schema({
      a: {
        anyOf: [
          { type: "integer", minimum: 3 },
          { type: "object", required: ["b"] },
        ],
      },
    });
    assert.deepEqual(
      [{ a: 3 }, { a: 2 }, { a: {} }, { a: { b: 1 } }].map((value) => isValid(choice, value)),
      [...[true, false, false, true]],
    );
    const slow = schema({ a: { type: "string", pattern: "^(a+)+$" } });
    const startedAt = performance.now();
    assert.equal(isValid(slow, { a: `${"a".repeat(40)}b` }), false);
    assert.ok(performance.now() - startedAt < 5_000);
    const tree = '{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}';
    assert.deepEqual(
      [{ next: { next: {} } }, { next: { other: 1 } }].map((value) => isValid(tree, value)),
      [true, false],
    );
    for (const broken of ['{"type":5}', '{"$ref":"http://a/b"}', '{"type":"object","required":1}'])
      assert.equal(isValid(broken, {}), true);
  });

  test("are read with a large schema in a time that does not grow with its size for each call", () => {
    const properties = Array.from({ length: 100_000 }, (_, i) => `"p${i}":{}`).join();
    const large: Tools = { ...tools(), list: [{ ...WEATHER, parameters: `{"properties":{${properties}}}` }] };
    const members = Array.from({ length: 100 }, (_, i) => `"q${i}":1`).join();
    const before = process.threadCpuUsage();
    assert.ok(canonicalCalls(Array(128).fill(weather(`{${members}}`)), large, validators));
    assert.equal(checkCalls(Array(128).fill(weather("1")), large, validators).ok, false);
    const { user, system } = process.threadCpuUsage(before);
    assert.ok(user + system < 2_000_000, `${user + system} µs`);
  });

  test("are checked by names that V8 reads as others", () => {
    // After this text, JSON.parse reads the name `"` as a backslash (nodejs/node#63785).
    JSON.parse('{"h":[],"\\\\":0}');
    const check = looseValidator('{"type":"object","required":["\\""],"minProperties":2}', validators);
    assert.deepEqual(check('{"h":1,"\\"":2}', new LooseEffort(100_000)), { ok: true, text: '{"h":1,"\\"":2}' });
  });

  test("have a form that leaves order, defaults and the spelling of numbers out", () => {
    const form = (...list: WrittenCall[]) => canonicalCalls(list, tools(), validators);
    const [one, two] = [weather('{"city":"a","days":1.0}'), weather('{"city":"b","days":2}')];
    assert.equal(form(one, two), form(weather('{"days":2e0,"city":"b"}'), weather('{"city":"a"}')));
    assert.notEqual(form(one), form(two));
    assert.equal(form(), NO_CALL);
    assert.equal(form(weather('{"days":1}')), undefined);
    const huge = { ...tools(), list: [{ ...WEATHER, parameters: '{"type":"object"}' }] };
    assert.equal(canonicalCalls([weather('{"a":1e400}')], huge, validators), 'get_weather {"a":1e400}');
  });

  test("of two fast models that agree are the answer; else those of a stronger one", async () => {
    const [a, b] = [weather('{"city":"a"}'), weather('{"city":"b"}')];
    const crew = (one: Piece[], two: Piece[], strong: Piece[]) => [
      member("fast", "v1", () => one),
      member("fast", "v2", () => two),
      member("strong", "v3", () => strong),
    ];
    const run = async (crewOf: ReturnType<typeof member>[], level: "medium" | "high") => {
      const events = await ask(
        crewOf.map((each) => each.member),
        { level },
      );
      return { events, asked: crewOf.map(({ model }) => model.calls.length) };
    };
    const agreed = await run(crew(calls(a), calls(weather('{"days":1,"city":"a"}')), calls(b)), "medium");
    assert.equal(callsOf(agreed.events).length, 1);
    assert.deepEqual(agreed.asked, [1, 1, 0]);
    const escalated = await run(crew(calls(a), [text("No."), end()], calls(b)), "medium");
    assert.deepEqual(callsOf(escalated.events), ['get_weather {"city":"b"}']);
    assert.deepEqual(escalated.asked, [1, 1, 1]);
    const strong = (...said: Piece[][]) => said.map((pieces, i) => member("strong", `v${i}`, () => pieces));
    const voted = await run(strong(calls(b), calls(a), calls(a)), "high");
    assert.deepEqual(voted.asked, [1, 1, 1]);
    assert.deepEqual(callsOf(voted.events), ['get_weather {"city":"a"}']);
    // A draft that must not leave has no vote.
    const invalid = calls(weather("{}"));
    const last = await run(strong(invalid, invalid, calls(b)), "high");
    assert.deepEqual(callsOf(last.events), ['get_weather {"city":"b"}']);
    // The strong model alone would vote, so the fast ones answer as at medium.
    const high = await run(crew(calls(a), calls(a), calls(b)), "high");
    assert.deepEqual([callsOf(high.events), high.asked], [['get_weather {"city":"a"}'], [1, 1, 0]]);
    // Calls count as a whole: two models that call with different arguments do not outvote two that do not call.
    const no = [text("No."), end()];
    assert.deepEqual(callsOf((await run(strong(calls(a), calls(b), no, no), "high")).events), []);
  });

  test("of a draft are the answer if the models that are asked after it are too late", async () => {
    const valid = weather('{"city":"a"}');
    const once = (pieces: Piece[]): Script[] => [() => pieces, untilAborted];
    const crew = [
      member("fast", "v1", ...once(calls(valid))),
      member("fast", "v2", ...once(calls(weather("{}")))),
      member("strong", "v3", ...once(calls(weather("{}")))),
    ];
    const members = crew.map((each) => each.member);
    const events = await ask(members, { level: "medium", deadlineMs: 2_000 }, AbortSignal.timeout(2_000));
    assert.deepEqual(callsOf(events), ['get_weather {"city":"a"}']);
    assert.equal(crew[2]?.model.calls.length, 2);
  });

  test("of a vote have the arguments that most drafts with the same tools have", async () => {
    const vote = async (...given: string[]) => {
      const members = given.map((text, i) => member("strong", `v${i}`, () => calls(weather(text))).member);
      return callsOf(await ask(members, { level: "high" }));
    };
    const three = ['{"city":"a","days":2}', '{"city":"a","days":3}', '{"city":"b","days":3.0}'] as const;
    assert.deepEqual(await vote(...three), ['get_weather {"city":"a","days":3}']);
    // An argument that most drafts leave out is left out.
    assert.deepEqual(await vote('{"city":"a","days":2}', '{"city":"b"}', '{"city":"a"}'), ['get_weather {"city":"a"}']);
    const twice = ['{"city":"a"}', '{"city":"b"}', '{"city":"c"}'].map(
      (text, i) => member("strong", `v${i}`, () => calls(weather(text), weather('{"city":"d"}'))).member,
    );
    const both = callsOf(await ask(twice, { level: "high" }));
    assert.deepEqual(both, ['get_weather {"city":"a"}', 'get_weather {"city":"d"}']);
  });

  test("beside a JSON Schema: calls, or a valid object", async () => {
    const schema = '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}';
    const question = { shape: "json_schema", schema, streamed: false } as const;
    const run = (...scripts: Script[]) => ask([member("fast", "v1", ...scripts).member], question);
    assert.deepEqual(callsOf(await run(() => calls(weather('{"city":"a"}')))), ['get_weather {"city":"a"}']);
    const textOf = (events: EngineEvent[]) => events.flatMap((event) => (event.type === "text" ? event.text : []));
    assert.deepEqual(textOf(await run(() => [text('{"a":1}'), end()])), ['{"a":1}']);
    const second = await run(
      () => [text("no object"), end()],
      () => [text('{"a":2}'), end()],
    );
    assert.deepEqual(textOf(second), ['{"a":2}']);
  });
});

/** A schema of arguments, within the table or beyond it. */
const parameters = fc.oneof(
  { weight: 6, arbitrary: fc.constant(WEATHER.parameters) },
  fc.constantFrom(
    WEATHER.parameters,
    '{"type":"object","properties":{}}',
    '{"type":"object","properties":{"a":{"type":"array","items":{"type":"number","minimum":0}}},"required":["a"]}',
    '{"type":"object","properties":{"a":{"anyOf":[{"type":"string","pattern":"^x"},{"type":"null"}]}}}',
    '{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}',
    '{"type":"object","properties":{"when":{"type":"string","format":"date"}},"minProperties":1}',
    '{"type":"nonsense","required":7}',
  ),
  fc.json().map((json) => `{"type":"object","properties":{"a":{"const":${json}}}}`),
);
const given = fc.oneof(
  { weight: 6, arbitrary: fc.constant('{"city":"a","days":2}') },
  fc.constantFrom('{"city":"a"}', '{"city":"a","days":"2"}', '{"city":1', "", "null", "[]", '{"a":[1,"2"]}', "{}"),
  fc.constantFrom(
    '{"a":"xy"}',
    '{"a":null}',
    '{"next":{"next":{}}}',
    '{"__proto__":{"a":1}}',
    "\u0000{",
    '{"a":1}{"a":2}',
  ),
  fc.json(),
);
const written = fc.record({ name: fc.constantFrom("t0", "t0", "t0", "t1", "t1", "other", ""), arguments: given });
const reply = fc.record({
  kind: fc.constantFrom<WireKind>(...KINDS),
  text: fc.constantFrom("", "Let me see.", '{"a":1}'),
  calls: fc.array(written, { maxLength: 3 }),
  finish: fc.constantFrom("stop", "length", "content-filter", "odd"),
  /** How much of the frames arrives, in percent, and in which order. */
  arrived: fc.constantFrom(100, 100, 100, 60),
  isInterleaved: fc.boolean(),
});

/** What a vendor's frames become, read as in a stream. @throws ModelError */
function piecesOf({ kind, text: said, calls: list, finish, arrived, isInterleaved }: ReturnType<typeof sampleReply>) {
  const { before, text: middle, after } = WIRES[kind].frames(said === "" ? [] : [said], { calls: list, finish });
  const frames = isInterleaved
    ? [...before, ...after.slice(0, 2), ...middle, ...after.slice(2)]
    : [...before, ...middle, ...after];
  const into = new Collector(true);
  for (const frame of frames.slice(0, Math.ceil((frames.length * arrived) / 100))) {
    const data = /^data: (.*?)\r?$/m.exec(frame)?.[1] ?? "";
    if (!into.isWhole) FORMATS[kind].readEvent(data, into);
  }
  if (!into.isWhole) throw new ModelError("cut off", { retryable: true });
  const whole: Piece[] = [];
  const answered = into.take();
  if (answered !== "") whole.push(text(answered));
  if (into.calls.length > 0) whole.push({ type: "calls", calls: into.calls });
  if (whole.length === 0) throw new ModelError("nothing", { retryable: false });
  return [...whole, end(into.reason)];
}

declare function sampleReply(): { kind: WireKind; text: string; calls: WrittenCall[] } & {
  finish: string;
  arrived: number;
  isInterleaved: boolean;
};

test("no malformed call leaves, whatever the schemas and the vendors' replies", { timeout: 120_000 }, async () => {
  const choice = fc.constantFrom<Tools["choice"]>("auto", "auto", "required", { name: "t0" });
  let left = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(parameters, parameters),
      fc.array(reply, { minLength: 1, maxLength: 2 }),
      choice,
      fc.boolean(),
      async (schemas, replies, choice, parallel) => {
        const list = schemas.map((each, i) => ({ name: `t${i}`, description: "", parameters: each }));
        const asked = { list, choice, parallel };
        const { member: only } = member("fast", "v1", ...replies.map((each) => () => piecesOf(each)));
        let events: EngineEvent[];
        try {
          events = await ask([only], { tools: asked });
        } catch (error) {
          assert.ok(error instanceof Failure, String(error));
          assert.notEqual(error.kind, "internal");
          return;
        }
        const gone = events.flatMap((event) => (event.type === "call" ? [event] : []));
        left += gone.length;
        for (const { id, name, arguments: text } of gone) {
          assert.match(id, /^call_[0-9a-f]{32}$/);
          const tool = list.find((each) => each.name === name) ?? assert.fail(`${name} is not declared`);
          const value: unknown = JSON.parse(text);
          assert.ok(typeof value === "object" && value !== null && !Array.isArray(value));
          assert.deepEqual(looseValidator(tool.parameters, validators)(text, new LooseEffort(100_000)), {
            ok: true,
            text,
          });
        }
        if (typeof choice === "object") assert.ok(gone.every(({ name }) => name === choice.name));
        if (!parallel) assert.ok(gone.length <= 1);
        const finish = events.at(-1);
        assert.equal(finish?.type, "finish");
        if (finish?.type !== "finish") return;
        const count = (text: string) => tokenizer.count(text);
        const said = events.map((event) => (event.type === "text" ? event.text : "")).join("");
        const expected = gone.reduce((sum, { name, arguments: text }) => sum + count(name) + count(text), count(said));
        assert.equal(finish.outputTokens, expected);
        assert.equal(finish.reason === "calls", gone.length > 0);
        if (choice !== "auto" && finish.reason === "stop") assert.fail("the choice was not kept");
      },
    ),
    { numRuns: 2_000 },
  );
  assert.ok(left > 200, `${left} calls`);
});
