import assert from "node:assert/strict";
import { test } from "vitest";
import type { Signal } from "../../../src/concurrency/abort.ts";
import { hedge } from "../../../src/engine/plan/hedge.ts";
import { until } from "../../helpers/until.ts";
import { call, collect, textOf } from "../../models/fake-model.ts";
import { dead, type Fake, held, saying, stepsOf } from "./members.ts";

function hedged(first: Fake, second: Fake, more: Partial<Parameters<typeof hedge>[0]> = {}) {
  return hedge({ first, second: () => second, afterMs: 5, mayHedge: () => true, role: "fast", ...more });
}

async function run(plan: ReturnType<typeof hedge>, options = call()) {
  return collect(plan.ask(options));
}

test("asks no second model when the first is on time", async () => {
  const second = saying("second");
  const all = await run(hedged(saying("the first one"), second, { afterMs: 60_000 }));
  assert.equal(textOf(all), "the first one");
  assert.deepEqual([second.calls.length, stepsOf(all)], [0, []]);
});

test("answers with the model whose first piece comes first, and cancels the other", async () => {
  const late = held("late");
  let all = await run(hedged(late.model, saying("the second one")));
  assert.equal(textOf(all), "the second one");
  assert.ok(late.isCancelled());
  assert.deepEqual(stepsOf(all), ["hedge fast …", "hedge fast ok"]);

  const first = held("the first one");
  const second = held("second");
  const pending = run(hedged(first.model, second.model));
  await until(() => second.model.calls.length > 0);
  first.release();
  all = await pending;
  assert.equal(textOf(all), "the first one");
  assert.ok(second.isCancelled());
  assert.deepEqual(stepsOf(all), ["hedge fast …", "hedge fast dropped"]);
});

test("makes no second call when the budget does not allow it", async () => {
  const late = held("late");
  const second = saying("second");
  const pending = run(hedged(late.model, second, { mayHedge: () => false }));
  setTimeout(late.release, 30);
  assert.equal(textOf(await pending), "late");
  assert.equal(second.calls.length, 0);
});

test("answers when one of the two fails, and throws the first one's error when both do", async () => {
  const late = held("late");
  const pending = run(hedged(late.model, saying(dead)));
  setTimeout(late.release, 30);
  assert.equal(textOf(await pending), "late");
  await assert.rejects(run(hedged(saying(dead), saying("x"), { afterMs: 60_000 })), /dead/);
});

test("ends both calls when the caller aborts", async () => {
  const caller = new AbortController();
  const both = [held("a"), held("b")] as const;
  const abortReason = new Error("gone");
  const rejected = assert.rejects(
    run(hedged(both[0].model, both[1].model), call({ signal: caller.signal })),
    abortReason,
  );
  await until(() => both[1].model.calls.length > 0);
  caller.abort(abortReason);
  await rejected;
  assert.ok(both.every(({ isCancelled }) => isCancelled()));
});

test("ends the call when the reader leaves", async () => {
  const first = saying("one two three");
  let signal: Signal | undefined;
  for await (const piece of hedged(first, saying("x"), { afterMs: 60_000 }).ask(call())) {
    if (piece.type !== "text") continue;
    signal = first.calls[0]?.signal;
    break;
  }
  assert.ok(signal?.aborted);
});
