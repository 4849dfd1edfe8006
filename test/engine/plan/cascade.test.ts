import assert from "node:assert/strict";
import { test } from "vitest";
import { cascade } from "../../../src/engine/plan/cascade.ts";
import { compareAnswers } from "../../../src/engine/plan/compare.ts";
import { panel } from "../../../src/engine/plan/panel.ts";
import { failover, UpstreamError } from "../../../src/models/failover.ts";
import { complete } from "../../../src/models/port/model.ts";
import { ModelError } from "../../../src/models/port/model-error.ts";
import { call, collect, end, fakeModel, textOf, text as textPiece } from "../../models/fake-model.ts";
import { asMembers, dead, type Fake, held, saying, stepsOf } from "./members.ts";

const pair = (...models: Fake[]) => panel({ members: asMembers(...models), compare: compareAnswers("all") });

async function text(plan: ReturnType<typeof cascade>, options = call()): Promise<string> {
  return textOf(await collect(plan.ask(options)));
}

test("answers with the agreed draft, and else asks the stronger model", async () => {
  const strong = saying("Answer: S");
  const ask = (...models: Fake[]) => text(cascade({ first: pair(...models), next: () => strong }));
  assert.equal(await ask(saying("Answer: A"), saying("A")), "Answer: A");
  assert.equal(strong.calls.length, 0);
  assert.equal(await ask(saying("Answer: A"), saying("Answer: B")), "Answer: S");
  assert.equal(await ask(saying("Answer: A"), saying(dead)), "Answer: S");
  assert.equal(await ask(saying(dead), saying(dead)), "Answer: S");
  assert.equal(await ask(saying("I can't help with that."), saying("Answer: A")), "Answer: S");
});

test("passes the drafts to the next model", async () => {
  let seen: string[] = [];
  await text(
    cascade({
      first: pair(saying("Answer: A"), saying("Answer: B")),
      next: (drafts) => {
        seen = drafts.map(({ text }) => text);
        return saying("ok");
      },
    }),
  );
  assert.deepEqual(seen, ["Answer: A", "Answer: B"]);
});

test("answers with the best draft when the stronger model fails or there is none", async () => {
  const members = [
    { role: "fast" as const, model: saying("Answer: A"), accuracy: 0.5 },
    { role: "fast" as const, model: saying("Answer: B"), accuracy: 0.6 },
  ];
  const first = panel({ members, compare: compareAnswers("all") });
  for (const next of [() => saying(dead), () => undefined]) {
    const all = await collect(cascade({ first, next }).ask(call()));
    assert.equal(textOf(all), "Answer: B");
    assert.deepEqual(stepsOf(all).slice(-2), ["fallback service …", "fallback service ok"]);
    assert.equal(all.at(-1)?.type, "end");
  }
});

test("cancels a stronger model that starts too late and answers with the best draft", async () => {
  const late = held("Answer: S");
  const first = pair(saying("Answer: A"), saying("Answer: B"));
  assert.equal(await text(cascade({ first, next: () => late.model, firstTextMs: 30 })), "Answer: A");
  assert.ok(late.isCancelled());
});

test("answers with the best draft at once when the stronger model is still loading", async () => {
  const loading = () => {
    throw new ModelError("loads", { retryable: true, status: 503, retryAfterMs: 1_000 });
  };
  const startedAt = performance.now();
  const [first, other] = [pair(saying("Answer: A"), saying("Answer: B")), pair(saying(dead), saying(dead))];
  const [strong, back] = [fakeModel(loading), fakeModel(loading, () => [textPiece("Answer: S"), end()])];
  assert.equal(await text(cascade({ first, next: () => failover([strong]) })), "Answer: A");
  assert.ok(performance.now() - startedAt < 900);
  // Without a draft it is waited for.
  assert.equal(await text(cascade({ first: other, next: () => failover([back]) })), "Answer: S");
});

test("throws an UpstreamError with each cause when all models fail", async () => {
  const plan = cascade({ first: pair(saying(dead), saying(dead)), next: () => saying(dead) });
  await assert.rejects(text(plan), (error) => {
    assert.ok(error instanceof UpstreamError);
    assert.equal(error.causes.length, 3);
    return true;
  });
});

test("asks no other model after an answer has broken off", async () => {
  const breaks = fakeModel(async function* () {
    yield textPiece("one ");
    throw new Error("reset");
  });
  const after = saying("other");
  let seen = "";
  const plan = cascade({ first: breaks, next: () => after });
  await assert.rejects(async () => {
    for await (const piece of plan.ask(call())) if (piece.type === "text") seen += piece.text;
  }, UpstreamError);
  assert.deepEqual([seen, after.calls.length], ["one ", 0]);
});

test("ends the stronger model when the caller aborts", async () => {
  const caller = new AbortController();
  const late = held("S");
  const plan = cascade({
    first: pair(saying("Answer: A"), saying("Answer: B")),
    next: () => late.model,
    firstTextMs: 60_000,
  });
  const abortReason = new Error("gone");
  const rejected = assert.rejects(text(plan, call({ signal: caller.signal })), abortReason);
  while (late.model.calls.length === 0) await new Promise(setImmediate);
  caller.abort(abortReason);
  await rejected;
  assert.ok(late.isCancelled());
});

test("gives the text and the steps of a unary completion", async () => {
  const plan = cascade({ first: pair(saying("Answer: A"), saying("Answer: A")), next: () => undefined });
  const { text, steps } = await complete(plan, call());
  assert.equal(text, "Answer: A");
  assert.equal(steps.length, 6, JSON.stringify(steps));
});
