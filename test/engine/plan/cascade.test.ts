import assert from "node:assert/strict";
import { test } from "vitest";
import { cascade } from "../../../src/engine/plan/cascade.ts";
import { compareAnswers } from "../../../src/engine/plan/compare.ts";
import { panel } from "../../../src/engine/plan/panel.ts";
import { UpstreamError } from "../../../src/models/failover.ts";
import { call, collect, fakeModel, parts, textOf } from "../../models/fake-model.ts";
import { asMembers, dead, type Fake, held, saying, stepsOf } from "./members.ts";

const pair = (...models: Fake[]) => panel({ members: asMembers(...models), compare: compareAnswers("all") });

async function text(plan: ReturnType<typeof cascade>, options = call()): Promise<string> {
  return textOf(await collect((await plan.doStream(options)).stream));
}

test("agreement answers without the stronger model; disagreement, death and refusal go on to it", async () => {
  const strong = saying("Answer: S");
  const ask = (...models: Fake[]) => text(cascade({ first: pair(...models), next: () => strong }));
  assert.equal(await ask(saying("Answer: A"), saying("A")), "Answer: A");
  assert.equal(strong.calls.length, 0);
  assert.equal(await ask(saying("Answer: A"), saying("Answer: B")), "Answer: S");
  assert.equal(await ask(saying("Answer: A"), saying(dead)), "Answer: S");
  assert.equal(await ask(saying(dead), saying(dead)), "Answer: S");
  assert.equal(await ask(saying("I can't help with that."), saying("Answer: A")), "Answer: S");
});

test("the drafts reach whoever is asked then", async () => {
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

test("when the stronger model fails, or nobody is asked, the best draft answers", async () => {
  const members = [
    { role: "fast" as const, model: saying("Answer: A"), accuracy: 0.5 },
    { role: "fast" as const, model: saying("Answer: B"), accuracy: 0.6 },
  ];
  const first = panel({ members, compare: compareAnswers("all") });
  for (const next of [() => saying(dead), () => undefined]) {
    const all = await collect((await cascade({ first, next }).doStream(call())).stream);
    assert.equal(textOf(all), "Answer: B");
    assert.deepEqual(stepsOf(all).slice(-2), ["fallback service …", "fallback service ok"]);
    assert.equal(all.at(-1)?.type, "finish");
  }
});

test("a stronger model that does not begin in time is cancelled, and the best draft answers", async () => {
  const late = held("Answer: S");
  const first = pair(saying("Answer: A"), saying("Answer: B"));
  assert.equal(await text(cascade({ first, next: () => late.model, firstTextMs: 30 })), "Answer: A");
  assert.ok(late.isCancelled());
});

test("nobody left is an UpstreamError with each cause", async () => {
  const plan = cascade({ first: pair(saying(dead), saying(dead)), next: () => saying(dead) });
  await assert.rejects(text(plan), (error) => {
    assert.ok(error instanceof UpstreamError);
    assert.equal(error.causes.length, 3);
    return true;
  });
});

test("an answer that breaks off is not replaced", async () => {
  const breaks = fakeModel({
    stream: [
      async function* () {
        yield* parts("one ").slice(0, 3);
        throw new Error("reset");
      },
    ],
  });
  const after = saying("other");
  let seen = "";
  const plan = cascade({ first: breaks, next: () => after });
  await assert.rejects(async () => {
    for await (const part of (await plan.doStream(call())).stream) if (part.type === "text-delta") seen += part.delta;
  }, UpstreamError);
  assert.deepEqual([seen, after.calls.length], ["one ", 0]);
});

test("an abort by the caller while the stronger model works ends it", async () => {
  const caller = new AbortController();
  const late = held("S");
  const plan = cascade({
    first: pair(saying("Answer: A"), saying("Answer: B")),
    next: () => late.model,
    firstTextMs: 60_000,
  });
  const gone = new Error("gone");
  const rejected = assert.rejects(text(plan, call({ abortSignal: caller.signal })), gone);
  while (late.model.calls.length === 0) await new Promise(setImmediate);
  caller.abort(gone);
  await rejected;
  assert.ok(late.isCancelled());
});

test("doGenerate folds the stream and keeps the steps", async () => {
  const plan = cascade({ first: pair(saying("Answer: A"), saying("Answer: A")), next: () => undefined });
  const { content, providerMetadata } = await plan.doGenerate(call());
  assert.deepEqual(content, [{ type: "text", text: "Answer: A" }]);
  const steps = providerMetadata?.chorus?.steps;
  assert.ok(Array.isArray(steps) && steps.length === 6, JSON.stringify(steps));
});
