import assert from "node:assert/strict";
import { test } from "vitest";
import { failover, UpstreamError } from "../../src/models/failover.ts";
import { ModelError } from "../../src/models/model-error.ts";
import { resilient } from "../../src/models/resilient.ts";
import type { Part } from "../../src/models/stream.ts";
import { call, collect, fakeModel, finish, parts, result, textOf } from "./fake-model.ts";

const broken = new ModelError("broken", { retryable: true });

const fails = () =>
  fakeModel({
    generate: [() => Promise.reject(broken)],
    stream: [
      async function* () {
        yield { type: "stream-start", warnings: [] } satisfies Part;
        throw broken;
      },
    ],
  });

/** Answers nothing until it is given up, and tells why it was. */
const hangs = (reasons: unknown[] = []) => {
  const silence = (signal: AbortSignal | undefined) =>
    new Promise<never>((_, reject) =>
      signal?.addEventListener("abort", () => {
        reasons.push(signal.reason);
        reject(signal.reason);
      }),
    );
  return fakeModel({
    generate: [({ abortSignal }) => silence(abortSignal)],
    stream: [
      async function* ({ abortSignal }) {
        yield { type: "stream-start", warnings: [] } satisfies Part;
        await silence(abortSignal);
      },
    ],
  });
};

/** A call that must have its answer in so many milliseconds. */
const within = (ms: number) => call({ providerOptions: { chorus: { endsAt: performance.now() + ms } } });

const answers = (text: string) => fakeModel({ generate: [async () => result(text)], stream: [() => parts(text)] });

test("the first model that answers answers", async () => {
  const [one, two] = [answers("one"), answers("two")];
  assert.deepEqual(await failover([one, two]).doGenerate(call()), result("one"));
  assert.deepEqual(await collect((await failover([one, two]).doStream(call())).stream), parts("one"));
  assert.equal(two.calls.length, 0);
});

test("the next model takes over, and nothing of the failed one is seen", async () => {
  const models = () => [fails(), fails(), answers("three")];
  assert.deepEqual(await failover(models()).doGenerate(call()), result("three"));
  assert.deepEqual(await collect((await failover(models()).doStream(call())).stream), parts("three"));
});

test("when all have failed, the error has all causes", async () => {
  const all = failover([fails(), fails()]);
  const check = (error: unknown) => {
    assert.ok(error instanceof UpstreamError);
    assert.deepEqual(error.causes, [broken, broken]);
    assert.equal(error.cause, broken);
    return true;
  };
  await assert.rejects(async () => all.doGenerate(call()), check);
  await assert.rejects(collect((await all.doStream(call())).stream), check);
  await assert.rejects(async () => failover([]).doGenerate(call()), UpstreamError);
});

test("after the first text there is no way back", async () => {
  async function* dies(): AsyncGenerator<Part> {
    yield* parts("a").slice(0, 3);
    throw broken;
  }
  const second = answers("two");
  const seen: Part[] = [];
  await assert.rejects(async () => {
    for await (const part of (await failover([fakeModel({ stream: [dies] }), second]).doStream(call())).stream)
      seen.push(part);
  }, UpstreamError);
  assert.equal(textOf(seen), "a");
  assert.equal(second.calls.length, 0);
});

test("an empty success is a failure", async () => {
  const empty = () => fakeModel({ generate: [async () => result("")], stream: [() => parts()] });
  assert.deepEqual(await failover([empty(), answers("two")]).doGenerate(call()), result("two"));
  assert.deepEqual(await collect((await failover([empty(), answers("two")]).doStream(call())).stream), parts("two"));
  await assert.rejects(async () => failover([empty()]).doGenerate(call()), UpstreamError);
  await assert.rejects(collect((await failover([empty()]).doStream(call())).stream), UpstreamError);
});

test("what the content filter held back goes to the next model", async () => {
  const filtered = () =>
    fakeModel({
      generate: [async () => result("I cannot", "content-filter")],
      stream: [() => [finish("content-filter")]],
    });
  assert.deepEqual(await failover([filtered(), answers("two")]).doGenerate(call()), result("two"));
  assert.equal(textOf(await collect((await failover([filtered(), answers("two")]).doStream(call())).stream)), "two");
});

test("an answer that ran into its ceiling stands, even without text", async () => {
  const full = () => fakeModel({ generate: [async () => result("", "length")], stream: [() => [finish("length")]] });
  const second = answers("two");
  assert.deepEqual(await failover([full(), second]).doGenerate(call()), result("", "length"));
  assert.deepEqual(await collect((await failover([full(), second]).doStream(call())).stream), [finish("length")]);
  assert.equal(second.calls.length, 0);
});

test("an abort by the caller is thrown as it is, and no further model is asked", async () => {
  const gone = new Error("gone");
  const caller = new AbortController();
  const aborting = fakeModel({
    generate: [
      async () => {
        caller.abort(gone);
        throw broken;
      },
    ],
    stream: [
      async function* (): AsyncGenerator<Part> {
        caller.abort(gone);
        yield finish("error");
        throw broken;
      },
    ],
  });
  const second = answers("two");
  const both = failover([aborting, second]);
  await assert.rejects(async () => both.doGenerate(call({ abortSignal: caller.signal })), gone);
  await assert.rejects(collect((await both.doStream(call({ abortSignal: caller.signal }))).stream), gone);
  assert.equal(second.calls.length, 0);
});

test("nothing is asked before the stream is read", async () => {
  const model = answers("one");
  const { stream } = await failover([model]).doStream(call());
  await new Promise(setImmediate);
  assert.equal(model.calls.length, 0);
  await stream.cancel();
});

test("a model that is silent for half of the time gets the next one beside it, and the first answer counts", async () => {
  const reasons: unknown[] = [];
  const two = answers("two");
  assert.deepEqual(await failover([hangs(reasons), two]).doGenerate(within(60)), result("two"));
  assert.ok(reasons[0] instanceof ModelError, "it counts against the silent one");

  const slow = fakeModel({ generate: [() => new Promise((resolve) => setTimeout(resolve, 60, result("slow")))] });
  const late: unknown[] = [];
  assert.deepEqual(await failover([slow, hangs(late)]).doGenerate(within(40)), result("slow"));
  assert.equal(late.length, 1, "the other one is given up");
});

test("the last model has all the time that is left, and a call without an end is patient", async () => {
  const slow = fakeModel({ generate: [() => new Promise((resolve) => setTimeout(resolve, 40, result("slow")))] });
  assert.deepEqual(await failover([fails(), slow]).doGenerate(within(10)), result("slow"));
  const two = answers("two");
  assert.deepEqual(await failover([slow, two]).doGenerate(call()), result("slow"));
  assert.equal(two.calls.length, 0);
});

test("a caller who leaves ends all that run", async () => {
  const reasons: unknown[] = [];
  const leaving = new AbortController();
  const model = failover([hangs(reasons), hangs(reasons)]);
  const asked = Promise.resolve(model.doGenerate({ ...within(20), abortSignal: leaving.signal }));
  setTimeout(() => leaving.abort(new Error("gone")), 40);
  await assert.rejects(asked, /gone/);
  assert.deepEqual(reasons.map(String), ["Error: gone", "Error: gone"]);
});

test("a stream behind which there is another gets half of the time for its first text", async () => {
  const models = [hangs(), answers("two")].map((model) =>
    resilient(model, { timeouts: { connectMs: 1_000, firstTokenMs: 60_000, betweenChunksMs: 60_000 } }),
  );
  assert.equal(textOf(await collect((await failover(models).doStream(within(60))).stream)), "two");
});

test("a model that is silent again and again is left alone", async () => {
  const silent = hangs();
  const first = resilient(silent, {
    timeouts: { connectMs: 1_000, firstTokenMs: 60_000, betweenChunksMs: 60_000 },
    breaker: { failures: 2 },
  });
  for (let i = 0; i < 4; i++) {
    await failover([first, answers("two")]).doGenerate(within(20));
    // What was given up is booked a moment after the answer.
    await new Promise(setImmediate);
  }
  assert.equal(silent.calls.length, 2);
});
