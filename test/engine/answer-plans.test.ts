import assert from "node:assert/strict";
import { test } from "vitest";
import { answer, type EngineEvent, type Finish, type Question, type Step } from "../../src/engine/answer.ts";
import { createValidators } from "../../src/engine/structured/validate.ts";
import { createTokenizer } from "../../src/engine/tokens/tokens.ts";
import type { Catalogue } from "../../src/models/catalogue.ts";
import { collect, untilAborted } from "../models/fake-model.ts";
import {
  catalogueOf,
  completion,
  cutOff,
  dead,
  type Fake,
  held,
  type Says,
  saying,
  silent,
  stepWord,
} from "./plan/members.ts";

const tokenizer = createTokenizer();
const validators = createValidators();

const SCHEMA =
  '{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},' +
  '"required":["a","b","c"],"additionalProperties":false}';

/** A fast and a strong model of each of three vendors. */
function engineOf(fast: Says[], strong: Says[]) {
  const fakes: Fake[] = [];
  const member = (tier: "fast" | "strong") => (says: Says, i: number) => {
    const model = saying(says);
    fakes.push(model);
    return { tier, vendor: `v${i}`, model };
  };
  const catalogue = catalogueOf(...fast.map(member("fast")), ...strong.map(member("strong")));
  const models: Catalogue = {
    ...catalogue,
    fingerprintOf: () => undefined,
    load: () => [],
    isRefused: () => false,
    mayBeMended: () => false,
    reset: () => undefined,
    probe: async () => [],
    all: catalogue.members,
    test: async () => undefined,
    close: async () => {},
  };
  return {
    engine: { models, tokenizer, validators },
    models: fakes,
    calls: () => fakes.map(({ calls }) => calls.length),
  };
}

const QUESTION: Question = {
  conversation: { system: [], messages: [{ role: "user", text: "Hi" }], continues: false },
  shape: "text",
  schema: undefined,
  level: "low",
  kind: "prose",
  temperature: undefined,
  maxTokens: undefined,
  stops: [],
  streamed: true,
  deadlineMs: 60_000,
  generation: "gen_1",
};

type TestEngine = ReturnType<typeof engineOf>["engine"];

async function ask(
  engine: TestEngine,
  more: Partial<Question>,
  signal = new AbortController().signal,
): Promise<{ text: string; steps: string[]; finish: Finish; pieces: number }> {
  const question: Question = { ...QUESTION, ...more };
  let text = "";
  let pieces = 0;
  const steps: Step[] = [];
  for await (const event of answer(engine as Parameters<typeof answer>[0], question, signal)) {
    if (event.type === "text") {
      text += event.text;
      pieces++;
    } else if (event.type === "step") steps.push(event.step);
    else if (event.type === "finish") return { text, pieces, finish: event, steps: steps.map(stepWord) };
  }
  return assert.fail("no finish");
}

const strict = { shape: "json_schema", schema: SCHEMA, streamed: false } as const;
const agreeing = (text: string) => engineOf([text, text, text], [text, text, text]);

test("applies max_tokens and stop sequences to the answer on every plan, streamed or not", async () => {
  const text = "one two three four five six seven eight nine ten";
  for (const level of ["low", "medium", "high"] as const) {
    for (const kind of ["closed", "prose"] as const) {
      for (const streamed of [true, false]) {
        const asked = { level, kind, streamed };
        const { engine, models } = agreeing(text);
        const cut = await ask(engine, { ...asked, maxTokens: 3 });
        assert.equal(cut.text, "one two three", `${level} ${kind}`);
        assert.deepEqual([cut.finish.reason, cut.finish.outputTokens], ["length", 3]);
        const stopped = await ask(engine, { ...asked, stops: [" four"] });
        assert.equal(stopped.text, "one two three");
        assert.equal(stopped.finish.reason, "stop");
        const begun = stopped.steps.filter((step) => step.endsWith("…")).length;
        assert.equal(stopped.steps.length, 2 * begun, "every step has an end");
        assert.ok(models.some(({ calls }) => calls.length > 0));
      }
    }
  }
});

test("counts a long text in slices, and finds a stop sequence where they meet", async () => {
  // 16,384 UTF-16 units are counted at once. The first half of an emoji and of the sequence end such slices.
  const start = `${"x".repeat(16_383)}😀${"y".repeat(16_381)}`;
  const { engine } = engineOf([`${start}STOP${"z".repeat(20_000)}`], []);
  for (const streamed of [true, false]) {
    const { text, pieces, finish } = await ask(engine, { stops: ["STOP"], streamed });
    assert.deepEqual([text, finish.reason, finish.outputTokens], [start, "stop", tokenizer.count(start)]);
    assert.ok(pieces > 1);
  }
});

test("streams an agreed draft in pieces and finishes as the draft did", async () => {
  const text = `${"word ".repeat(400)}\nAnswer: 42`;
  const { text: got, pieces, finish, steps } = await ask(agreeing(text).engine, { level: "medium", kind: "maths" });
  assert.equal(got, text);
  assert.ok(pieces > 4);
  assert.equal(finish.reason, "stop");
  assert.equal(steps[0], "draft fast …");
});

test("escalates when a fast draft was cut off", async () => {
  const { engine } = engineOf([cutOff("Answer: A"), "Answer: A", "x"], ["Answer: S", "x", "x"]);
  assert.equal((await ask(engine, { level: "medium", kind: "closed" })).text, "Answer: S");
});

test("extract: reads the object of each draft and votes field by field", async () => {
  const objects = ['{"a":1,"b":2,"c":9}', 'Here:\n```json\n{"a":1,"b":9,"c":3}\n```', "{'a':9,'b':2,'c':3}"];
  const { engine } = engineOf(["x", "x", "x"], objects);
  const { text, finish } = await ask(engine, { level: "high", shape: "extract" });
  assert.equal(text, '{"a":1,"b":2,"c":3}');
  assert.equal(finish.structured, text);
  const none = await ask(agreeing("no object").engine, { level: "high", shape: "extract" });
  assert.equal(none.finish.structured, "null");
  assert.ok(none.finish.structuredError);
});

test("strict: gives a valid object on every plan, also when each draft has one mistake", async () => {
  for (const level of ["low", "medium", "high"] as const) {
    const { text, finish } = await ask(agreeing('{"a":1,"b":2,"c":3}').engine, { ...strict, level });
    assert.deepEqual([text, finish.structured, finish.reason], ['{"a":1,"b":2,"c":3}', '{"a":1,"b":2,"c":3}', "stop"]);
  }
  const { engine } = engineOf(["x", "x", "x"], ['{"a":1,"b":2,"c":9}', '{"a":1,"b":9,"c":3}', '{"a":9,"b":2,"c":3}']);
  const { text, steps } = await ask(engine, { ...strict, level: "high" });
  assert.equal(text, '{"a":1,"b":2,"c":3}');
  assert.deepEqual(steps.slice(-2), ["vote service …", "vote service ok"]);
});

test("strict: ignores invalid drafts, and asks again, then the other tier, then takes a valid draft", async () => {
  const valid = '{"a":1,"b":2,"c":3}';
  const voted = engineOf(["x", "x", "x"], [valid, '{"a":1}', valid]);
  assert.equal((await ask(voted.engine, { ...strict, level: "high" })).text, valid);

  const medium = engineOf(['{"a":1}', valid, "x"], ['{"a":"1","b":2,"c":3}', "x", "x"]);
  medium.models[3]?.calls.splice(0);
  const last = await ask(medium.engine, { ...strict, level: "medium" });
  // The strong model says the same again, and so does the fast one, but a draft is valid.
  assert.deepEqual([last.text, last.steps.at(-1)], [valid, "fallback service ok"]);
  assert.deepEqual(medium.calls(), [2, 1, 0, 2, 0, 0]);

  // Also where they would be too late.
  const once = (says: string): Says => {
    let asked = 0;
    return async (call) => (asked++ === 0 ? completion(says) : untilAborted(call));
  };
  const late = engineOf([once('{"a":1}'), once(valid), silent], [once("{}"), silent, silent]);
  const inTime = await ask(late.engine, { ...strict, level: "medium", deadlineMs: 2_000 }, AbortSignal.timeout(2_000));
  assert.deepEqual([inTime.text, late.calls()[3]], [valid, 2]);

  const repaired = await ask(engineOf([`{'a':1,'b':2,'c':3,}`, "x", "x"], ["x", "x", "x"]).engine, { ...strict });
  assert.equal(repaired.text, valid);
  assert.deepEqual(repaired.steps, ["answer fast …", "answer fast ok", "repair service …", "repair service ok"]);
});

test("strict: reports the end of a draft while the others still run", async () => {
  const valid = '{"a":1,"b":2,"c":3}';
  const slow = held(valid);
  const { engine } = engineOf([slow.says, valid], []);
  const steps: string[] = [];
  const question = { ...QUESTION, ...strict, level: "medium", kind: "closed", trace: true } as const;
  const events = answer(engine as Parameters<typeof answer>[0], question, new AbortController().signal);
  for (let next = await events.next(); !next.done; next = await events.next()) {
    if (next.value.type !== "step") continue;
    steps.push(stepWord(next.value.step));
    if (steps.length === 3) slow.release();
  }
  const begun = ["draft fast …", "draft fast …", "draft fast ok"];
  assert.deepEqual(steps, [...begun, "draft fast ok", "vote service …", "vote service ok"]);
});

test("strict: fails when no model gives a valid object or the cap is too small", async () => {
  for (const level of ["low", "medium", "high"] as const) {
    for (const nonsense of ["no JSON", "{}", '{"a":1,"b":2,"c":3,"d":4}', '{"a":1,"b":2'])
      await assert.rejects(ask(agreeing(nonsense).engine, { ...strict, level }), { kind: "structured_output_failed" });
    await assert.rejects(ask(agreeing('{"a":1,"b":2,"c":3}').engine, { ...strict, level, maxTokens: 5 }), {
      kind: "structured_output_failed",
    });
    await assert.rejects(ask(engineOf([dead, dead], [dead, dead]).engine, { ...strict, level }), {
      kind: "upstream_failed",
    });
  }
});

test("fails with upstream_failed when all models fail, and with the caller's reason after an abort", async () => {
  for (const level of ["low", "medium", "high"] as const) {
    for (const kind of ["closed", "prose"] as const) {
      await assert.rejects(ask(engineOf([dead, dead], [dead, dead]).engine, { level, kind }), {
        kind: "upstream_failed",
      });
      const waits = held("x");
      const says: Says = (asked) => collect(waits.model.ask(asked));
      const { engine } = engineOf([says, says], [says, says]);
      const caller = new AbortController();
      const abortReason = new Error("gone");
      const rejected = assert.rejects(ask(engine, { level, kind }, caller.signal), abortReason);
      while (waits.model.calls.length === 0) await new Promise(setImmediate);
      caller.abort(abortReason);
      await rejected;
      assert.ok(waits.isCancelled());
    }
  }
});

test("aborts every call when the reader leaves", async () => {
  const analysing = held("{}");
  const engines = [
    engineOf(["x"], ["one", "two", "three"]),
    engineOf(["x"], [(asked) => collect(analysing.model.ask(asked)), "two", "three"]),
  ];
  for (const { engine, models } of engines) {
    const events: EngineEvent[] = [];
    const question = { level: "high", kind: "prose" } as const;
    const caller = new AbortController();
    const run = answer(
      engine as Parameters<typeof answer>[0],
      {
        conversation: { system: [], messages: [{ role: "user", text: "Hi" }], continues: false },
        shape: "text",
        schema: undefined,
        temperature: undefined,
        maxTokens: undefined,
        stops: [],
        streamed: true,
        deadlineMs: 60_000,
        generation: "g",
        ...question,
      },
      caller.signal,
    );
    for await (const event of run) {
      events.push(event);
      if (models.some(({ calls }) => calls.length > 0)) break;
    }
    for (const { calls } of models) for (const { signal } of calls) assert.ok(signal.aborted);
  }
});
