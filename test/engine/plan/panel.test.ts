import assert from "node:assert/strict";
import { test, vi } from "vitest";
import { compareAnswers, compareObjects } from "../../../src/engine/plan/compare.ts";
import { DRAFT_TOKENS, panel, UndecidedError } from "../../../src/engine/plan/panel.ts";
import { extractObject } from "../../../src/engine/structured/repair.ts";
import { call, collect, textOf } from "../../models/fake-model.ts";
import { asMembers, completion, cutOff, dead, type Fake, held, saying, silent, stepsOf } from "./members.ts";

const vote = compareAnswers("majority");
const read = (text: string) => extractObject(text).structured ?? undefined;

async function run(models: Fake[], more: Partial<Parameters<typeof panel>[0]> = {}, options = call()) {
  return collect(panel({ members: asMembers(...models), compare: vote, ...more }).ask(options));
}

const undecided = (drafts: number, causes: number) => (error: unknown) => {
  assert.ok(error instanceof UndecidedError, String(error));
  assert.deepEqual([error.drafts.length, error.causes.length], [drafts, causes]);
  return true;
};

test("answers with the majority, in the words of its first member", async () => {
  const all = await run([saying("Answer: B"), saying("It is (C).\n\nAnswer: C"), saying("Answer: C")]);
  assert.equal(textOf(all), "It is (C).\n\nAnswer: C");
  assert.equal(all.at(-1)?.type, "end");
  assert.deepEqual(stepsOf(all).slice(-2), ["vote service …", "vote service ok"]);
});

test("reports the start of every draft before it calls a model", async () => {
  const models = [saying("1"), saying("1")];
  const pieces = panel({ members: asMembers(...models), compare: vote }).ask(call());
  for (const _ of models) {
    assert.equal((await pieces.next()).value?.type, "step");
    assert.ok(models.every(({ calls }) => calls.length === 0));
  }
  await pieces.return?.();
});

test("ends once the outstanding drafts cannot change the answer, and cancels them", async () => {
  const late = held("Answer: B");
  const all = await run([saying("Answer: A"), late.model, saying("Answer: A")]);
  assert.equal(textOf(all), "Answer: A");
  assert.ok(late.isCancelled());
  assert.deepEqual(stepsOf(all), [
    "draft fast …",
    "draft fast …",
    "draft fast …",
    "draft fast ok",
    "draft fast ok",
    "draft fast dropped",
    "vote service …",
    "vote service ok",
  ]);
});

test("counts a draft that comes in the same turn of the event loop as the deciding one", async () => {
  let isCancelled = false;
  const third = saying(async ({ signal }) => {
    signal.addEventListener("abort", () => {
      isCancelled = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(isCancelled, false);
    return completion("Answer: A");
  });
  const onDrafts = vi.fn();
  const all = await run([saying("Answer: A"), saying("Answer: A"), third], {}, call({ onDrafts }));
  assert.equal(onDrafts.mock.lastCall?.[0].length, 3);
  assert.equal(stepsOf(all).filter((step) => step === "draft fast ok").length, 3);
});

test("answers despite members that fail, are wrong, malformed or cut off", async () => {
  const all = await run([
    saying(dead),
    saying("Answer: D"),
    saying("Answer: A"),
    saying(cutOff("Answer: D")),
    saying("Answer: A"),
  ]);
  assert.equal(textOf(all), "Answer: A");
  const objects = [saying("no JSON"), saying('{"a":1}'), saying('```json\n{"a": 1.0}\n```')];
  assert.equal(textOf(await run(objects, { compare: compareObjects("majority", read) })), '{"a":1}');
});

test("throws an UndecidedError with the drafts in the order of the members", async () => {
  await assert.rejects(run([saying("Answer: A"), saying("Answer: B"), saying("Answer: C")]), undecided(3, 0));
  await assert.rejects(run([saying("Answer: A"), saying(dead), saying(dead)]), undecided(1, 2));
  await assert.rejects(run([saying(dead), saying("")]), undecided(0, 2));
  const refuses = saying("I'm sorry, but I can't help with that.");
  await assert.rejects(run([refuses, refuses]), (error) => {
    assert.ok(error instanceof UndecidedError && error.drafts.every(({ canonical }) => canonical === undefined));
    return true;
  });
  const first = held("Answer: A");
  const pending = run([first.model, saying("Answer: B")]);
  first.release();
  await assert.rejects(pending, (error) => {
    assert.ok(error instanceof UndecidedError);
    assert.deepEqual(
      error.drafts.map(({ text }) => text),
      ["Answer: A", "Answer: B"],
    );
    return true;
  });
});

test("is undecided when the comparison throws", async () => {
  const compare = {
    canonicalise: (text: string) => text,
    settle() {
      throw new Error("broken");
    },
    agreement() {
      throw new Error("broken");
    },
  };
  await assert.rejects(run([saying("a"), saying("a")], { compare }), (error) => {
    assert.ok(error instanceof UndecidedError && error.drafts.length === 2);
    return true;
  });
});

test("needs all drafts to agree where the share is all", async () => {
  const compare = compareAnswers("all");
  assert.equal(textOf(await run([saying("Answer: A"), saying("**A**")], { compare })), "Answer: A");
  await assert.rejects(run([saying("Answer: A"), saying("Answer: B")], { compare }), undecided(2, 0));
  await assert.rejects(run([saying("Answer: A"), saying(dead)], { compare }), undecided(1, 1));
});

test("drops outstanding drafts at the deadline", async () => {
  const late = held("Answer: A");
  await assert.rejects(run([late.model, saying("Answer: A")], { deadlineMs: 30 }), undecided(1, 0));
  assert.ok(late.isCancelled());
  // Also when a draft ignores its signal.
  const deaf = saying(() => new Promise(() => {}));
  await assert.rejects(run([deaf], { deadlineMs: 10 }), undecided(0, 0));
});

test("drops outstanding drafts after the grace time that follows the quorum", { timeout: 20_000 }, async (t) => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  t.onTestFinished(() => void vi.useRealTimers());
  const late = held("Answer: A");
  const quorum = [saying("Answer: A"), saying("Answer: B"), late.model];
  const pending = assert.rejects(run(quorum, { deadlineMs: 600_000 }), undecided(2, 0));
  for (let i = 0; i < 50; i++) await new Promise(setImmediate);
  vi.advanceTimersByTime(1_400);
  for (let i = 0; i < 50; i++) await new Promise(setImmediate);
  assert.ok(!late.isCancelled());
  vi.advanceTimersByTime(200);
  await pending;
  assert.ok(late.isCancelled());
});

test("gives drafts no stop sequences, their own ceiling, and the member's temperature", async () => {
  const model = saying("Answer: A");
  const options = call({ stops: ["x"], maxTokens: 10, defaultTemperature: 0 });
  await run([model, model], {}, options);
  const members = [
    { role: "fast" as const, model, temperature: 0.7 },
    { role: "fast" as const, model },
  ];
  await collect(panel({ members, compare: vote }).ask(call({ maxTokens: 32_000 })));
  assert.deepEqual(
    model.calls.map(({ stops, maxTokens, defaultTemperature }) => [stops, maxTokens, defaultTemperature]),
    [
      [undefined, 10 + 1_024, 0],
      [undefined, 10 + 1_024, 0],
      [undefined, DRAFT_TOKENS, 0.7],
      [undefined, DRAFT_TOKENS, undefined],
    ],
  );
});

test("ends every draft when the caller aborts, and throws the caller's reason", async () => {
  const caller = new AbortController();
  const models = [held("a"), held("b")];
  const pending = run(
    models.map(({ model }) => model),
    {},
    call({ signal: caller.signal }),
  );
  const abortReason = new Error("gone");
  const rejected = assert.rejects(pending, abortReason);
  while (models.some(({ model }) => model.calls.length === 0)) await new Promise(setImmediate);
  caller.abort(abortReason);
  await rejected;
  assert.ok(models.every(({ isCancelled }) => isCancelled()));
});

test("ends every draft when the reader leaves", async () => {
  const late = held("Answer: B");
  const pieces = panel({ members: asMembers(saying("Answer: A"), late.model, saying(silent)) }).ask(call());
  for await (const piece of pieces) if (piece.type === "step" && late.model.calls.length > 0) break;
  assert.ok(late.isCancelled());
});

test("streams a long draft in pieces", async () => {
  const text = `${"word ".repeat(500)}Answer: A`;
  const all = await run([saying(text), saying(text)]);
  assert.equal(textOf(all), text);
  assert.ok(all.filter(({ type }) => type === "text").length > 5);
});
