import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { failover, UpstreamError } from "../../src/models/failover.ts";
import { complete, type Model, type ModelCall, type Piece } from "../../src/models/port/model.ts";
import { ModelError, type ModelErrorInit } from "../../src/models/port/model-error.ts";
import { resilient } from "../../src/models/resilient.ts";
import { call, collect, end, fakeModel, pieces, type Script, text, textOf, untilAborted } from "./fake-model.ts";

const BOTH = [true, false];
const broken = new ModelError("broken", { retryable: true });
const refused = new ModelError("refused", { retryable: false, kind: "refused" });
const tooLong = new ModelError("too long", { retryable: false, kind: "too_long" });

const notAsked = new ModelError("open", { retryable: false, kind: "not_asked" });

const failing = (error: unknown = broken) =>
  fakeModel(async function* (): AsyncGenerator<Piece> {
    yield { type: "progress" };
    throw error;
  });
/** Sends nothing until it is aborted, and keeps the reason. */
const silent = (reasons: unknown[] = []) =>
  fakeModel(async function* (call): AsyncGenerator<Piece> {
    yield { type: "progress" };
    call.signal.addEventListener("abort", () => reasons.push(call.signal.reason), { once: true });
    await untilAborted(call);
  });
const slow = (ms: number) =>
  fakeModel(async () => {
    await sleep(ms);
    return pieces("slow");
  });
const answering = (...texts: string[]) => fakeModel(() => pieces(...texts));
const ending = (...all: Piece[]) => fakeModel(() => all);
/** Whole, and to be ended in so many milliseconds. */
const within = (ms: number): ModelCall => call({ streamed: false, endsAt: performance.now() + ms });
const read = (models: readonly Model[], streamed: boolean, more: Partial<ModelCall> = {}) =>
  collect(failover(models).ask(call({ streamed, ...more })));
const without = (all: readonly Piece[]) => all.filter(({ type }) => type !== "progress");

test("has the names of its models", () => {
  assert.equal(failover([answering("a"), answering("b")]).name, "fake,fake");
});

test("asks the first model only, if it answers", async () => {
  for (const streamed of BOTH) {
    const two = answering("two");
    assert.deepEqual(await read([answering("o", "ne"), two], streamed), pieces("o", "ne"));
    assert.equal(two.calls.length, 0);
  }
});

test("asks the next model after a failure, and delivers no text of the failed one", async () => {
  for (const streamed of BOTH) {
    assert.deepEqual(without(await read([failing(), failing(), answering("three")], streamed)), pieces("three"));
  }
});

test("throws one error with the causes of all models when all fail", async () => {
  for (const streamed of BOTH) {
    await assert.rejects(read([failing(), failing()], streamed), (error) => {
      assert.ok(error instanceof UpstreamError);
      assert.deepEqual(error.causes, [broken, broken]);
      assert.equal(error.cause, broken);
      assert.equal(error.kind, undefined);
      return true;
    });
    await assert.rejects(read([], streamed), UpstreamError);
  }
});

test("names the kind of the failure if it is the same for all models", async () => {
  for (const streamed of BOTH) {
    await assert.rejects(read([failing(refused), failing(refused)], streamed), { kind: "refused" });
    await assert.rejects(read([failing(tooLong), failing(tooLong)], streamed), { kind: "too_long" });
    await assert.rejects(read([failing(refused), failing(tooLong)], streamed), { kind: undefined });
    await assert.rejects(read([failing(refused), failing()], streamed), { kind: undefined });
    await assert.rejects(read([failing(notAsked), failing(refused)], streamed), { kind: "refused" });
    await assert.rejects(read([failing(notAsked), failing(refused), failing()], streamed), { kind: undefined });
    await assert.rejects(read([failing(notAsked), failing(tooLong)], streamed), { kind: undefined });
  }
});

const failed = (status: number, more: Partial<ModelErrorInit> = {}) =>
  new ModelError("m", { status, retryable: status === 429 || status >= 500, ...more });
const throttled = (retryAfterMs: number) => failed(429, { retryAfterMs });

test("has the shortest wait of the models that throttle", async () => {
  const cases: [causes: unknown[], wait: number | undefined][] = [
    [[throttled(30_000), throttled(7_000), throttled(60_000)], 7_000],
    [[throttled(7_000), failed(401), failed(500), refused, tooLong, new Error("e")], 7_000],
    [[new UpstreamError([throttled(9_000)]), throttled(10_000)], 9_000],
    [[failed(503, { retryAfterMs: 8_000 }), failed(503)], 8_000],
    [[failed(429)], 5_000],
    [[failed(529)], 5_000],
    [[throttled(0)], 1_000],
    [[throttled(Number.POSITIVE_INFINITY)], 3_600_000],
    [[throttled(1e15)], 3_600_000],
    [[failed(503), failed(500, { retryAfterMs: 7_000 })], undefined],
    [[failed(429, { retryable: false })], undefined],
    [[failed(401, { retryAfterMs: 7_000 })], undefined],
    [[], undefined],
  ];
  for (const [causes, wait] of cases)
    assert.equal(new UpstreamError(causes).retryAfterMs, wait, JSON.stringify(causes));
});

test("needs the operator if no wait can help any model", () => {
  const cases: [causes: unknown[], needsOperator: boolean][] = [
    [[failed(401), failed(403), failed(404), failed(402)], true],
    [[failed(301), failed(308)], true],
    [[failed(429, { retryable: false })], true],
    [[new UpstreamError([failed(401)]), failed(404)], true],
    [[failed(401), failed(500)], false],
    [[failed(401), throttled(7_000)], false],
    [[failed(401), failed(400)], false],
    [[failed(401), refused], false],
    [[failed(403, { kind: "refused" })], false],
    [[failed(401), new Error("e")], false],
    [[failed(401), notAsked], false],
    [[], false],
  ];
  for (const [causes, needed] of cases)
    assert.equal(new UpstreamError(causes).needsOperator, needed, JSON.stringify(causes));
});

test("asks no other model after the first text", async () => {
  const breaks = fakeModel(async function* (): AsyncGenerator<Piece> {
    yield text("a");
    throw broken;
  });
  const two = answering("two");
  const all: Piece[] = [];
  await assert.rejects(async () => {
    for await (const piece of failover([breaks, two]).ask(call())) all.push(piece);
  }, UpstreamError);
  assert.equal(textOf(all), "a");
  assert.equal(two.calls.length, 0);
});

test("treats a completion without text as a failure", async () => {
  for (const streamed of BOTH) {
    assert.deepEqual(await read([ending(end()), answering("two")], streamed), pieces("two"));
    await assert.rejects(read([ending(end())], streamed), UpstreamError);
  }
});

test("takes a completion that a stop sequence ended before its first text", async () => {
  for (const streamed of BOTH) {
    const two = answering("two");
    assert.deepEqual(await read([ending(end()), two], streamed, { stops: ["x"] }), [end()]);
    assert.equal(two.calls.length, 0);
    await assert.rejects(read([ending(end("length"))], streamed, { stops: ["x"] }), UpstreamError);
  }
});

test("asks the next model when a safety filter left no text", async () => {
  for (const streamed of BOTH) {
    const filtered = () => ending(end("content_filter"));
    assert.deepEqual(await read([filtered(), answering("two")], streamed), pieces("two"));
    await assert.rejects(read([filtered(), filtered()], streamed), { kind: "refused" });
  }
});

test("delivers text that a safety filter cut short, with that reason", async () => {
  const cut = [text("It is "), end("content_filter")];
  for (const streamed of BOTH) {
    const two = answering("two");
    assert.deepEqual(await read([ending(...cut), two], streamed), cut);
    assert.equal(two.calls.length, 0);
  }
});

test("asks the next model when one used its whole ceiling without text", async () => {
  for (const streamed of BOTH) {
    assert.deepEqual(await read([ending(end("length")), answering("two")], streamed), pieces("two"));
    await assert.rejects(read([ending(end("length"))], streamed), UpstreamError);
  }
});

test("throws the reason of the caller's abort, and asks no further model", async () => {
  for (const streamed of BOTH) {
    const gone = new Error("gone");
    const caller = new AbortController();
    const aborting = fakeModel(() => {
      caller.abort(gone);
      throw broken;
    });
    const two = answering("two");
    await assert.rejects(read([aborting, two], streamed, { signal: caller.signal }), gone);
    assert.equal(two.calls.length, 0);
  }
});

test("asks nothing before the first piece is read", async () => {
  for (const streamed of BOTH) {
    const model = answering("one");
    const all = failover([model]).ask(call({ streamed }));
    await new Promise(setImmediate);
    assert.equal(model.calls.length, 0);
    await all.return?.();
  }
});

test("ends the model's call when the reader leaves", async () => {
  let isEnded = false;
  const model = fakeModel(async function* (): AsyncGenerator<Piece> {
    try {
      for (;;) yield text("x");
    } finally {
      isEnded = true;
    }
  });
  for await (const _ of failover([model]).ask(call())) break;
  assert.ok(isEnded);
});

test("asks the next model beside one that has taken half of the time, and takes the first completion", async () => {
  const reasons: unknown[] = [];
  const { text } = await complete(failover([silent(reasons), answering("two")]), within(60));
  assert.equal(text, "two");
  assert.ok(reasons[0] instanceof ModelError, "the abort counts against the slow model");

  const late: unknown[] = [];
  assert.equal((await complete(failover([slow(60), silent(late)]), within(40))).text, "slow");
  assert.equal(late.length, 1, "the other call is ended");
});

test("gives the last model all the remaining time", async () => {
  assert.equal((await complete(failover([failing(), slow(40)]), within(10))).text, "slow");
});

test("asks no second model while the first one has more than half of the time", async () => {
  const two = answering("two");
  assert.equal((await complete(failover([slow(40), two]), within(60_000))).text, "slow");
  assert.equal(two.calls.length, 0);
});

test("ends all calls when the caller leaves", async () => {
  const reasons: unknown[] = [];
  const caller = new AbortController();
  const model = failover([silent(reasons), silent(reasons)]);
  const pending = complete(model, { ...within(20), signal: caller.signal });
  setTimeout(() => caller.abort(new Error("gone")), 40);
  await assert.rejects(pending, /gone/);
  assert.deepEqual(reasons.map(String), ["Error: gone", "Error: gone"]);
});

const TIMEOUTS = { connectMs: 1_000, firstTokenMs: 60_000, betweenChunksMs: 60_000 };

test("gives a stream half of the time for its first text if there is another model", async () => {
  const models = [silent(), answering("two")].map((model) => resilient(model, { timeouts: TIMEOUTS }));
  assert.equal(textOf(await read(models, true, { endsAt: performance.now() + 600 })), "two");
});

test("gives a stream of comments no more than half of the time, but for the last model all of it", async () => {
  const queued = (texts: readonly Piece[] = []) =>
    fakeModel(async function* (call): AsyncGenerator<Piece> {
      for (let i = 0; i < 45; i++) {
        await sleep(10);
        call.signal.throwIfAborted();
        yield { type: "progress", isIdle: true };
      }
      yield* texts;
    });
  const timeouts = { ...TIMEOUTS, firstTokenMs: 200 };
  const [first, last] = [queued(), queued(pieces("last"))].map((model) => resilient(model, { timeouts, retries: 0 }));
  assert.ok(first && last);
  const endsAt = () => performance.now() + 600;
  assert.equal(textOf(await read([first, answering("two")], true, { endsAt: endsAt() })), "two");
  assert.equal(textOf(await read([last], true, { endsAt: endsAt() })), "last");
});

test("waits for a stream of comments after the first text, when no other model can answer", async () => {
  const pausing = fakeModel(async function* (call): AsyncGenerator<Piece> {
    yield text("a");
    for (let i = 0; i < 40; i++) {
      await sleep(10);
      call.signal.throwIfAborted();
      yield { type: "progress", isIdle: true };
    }
    yield* pieces("b");
  });
  const timeouts = { ...TIMEOUTS, betweenChunksMs: 200 };
  const models = [resilient(pausing, { timeouts, retries: 0 }), answering("two")];
  assert.equal(textOf(await read(models, true)), "ab");
});

test("passes over a model that was silent several times", async () => {
  const first = silent();
  const guarded = resilient(first, { timeouts: TIMEOUTS, breaker: { minRequests: 2 } });
  for (let i = 0; i < 4; i++) {
    await complete(failover([guarded, answering("two")]), within(20));
    // The circuit breaker counts the ended call after the answer.
    await new Promise(setImmediate);
  }
  assert.equal(first.calls.length, 2);
});

test("asks the model that failed least when the circuits of all are open", async () => {
  for (const streamed of BOTH) {
    const scripts = [failing(), fakeModel(() => pieces("two"))];
    let isDown = true;
    const guarded = scripts.map((model, i) =>
      resilient(
        fakeModel((call) => (isDown && !(i === 1 && call.maxTokens === 1) ? failing().ask(call) : model.ask(call))),
        { timeouts: TIMEOUTS, retries: 0, breaker: { minRequests: 4 } },
      ),
    );
    // The second model answers one request in four.
    for (const maxTokens of [1, 2, 2, 2]) await read(guarded, streamed, { maxTokens }).catch(() => undefined);
    await assert.rejects(read(guarded.slice(0, 1), streamed, { requester: { workspace: "other" } }), UpstreamError);
    isDown = false;
    assert.equal(textOf(await read(guarded, streamed)), "two");
  }
});

test("asks a model whose circuit is open when no other model answers", async () => {
  for (const streamed of BOTH) {
    let isDown = true;
    const first = fakeModel((call) => (isDown ? failing().ask(call) : pieces("one")));
    const guarded = resilient(first, { timeouts: TIMEOUTS, retries: 0, breaker: { minRequests: 1 } });
    await assert.rejects(collect(guarded.ask(call({ streamed }))), /broken/);
    await assert.rejects(collect(guarded.ask(call({ streamed }))), { failedShare: 1 });
    isDown = false;
    assert.deepEqual(await read([guarded, answering("two")], streamed), pieces("two"));
    assert.deepEqual(without(await read([guarded, failing()], streamed)), pieces("one"));
  }
});

test("asks the model with the shortest wait again after it, if no other one answers", async () => {
  const throttled = (retryAfterMs: number) => new ModelError("later", { retryable: true, status: 429, retryAfterMs });
  const wait = (ms: number): Script[] => [
    async function* () {
      yield* [];
      throw throttled(ms);
    },
    () => pieces(`after ${ms}`),
  ];
  for (const streamed of BOTH) {
    const models = [fakeModel(...wait(1_400)), failing(), fakeModel(...wait(1_100)), failing(throttled(60_000))];
    const startedAt = performance.now();
    assert.deepEqual(without(await read(models, streamed)), pieces("after 1100"));
    assert.ok(performance.now() - startedAt >= 1_090);
    assert.equal(models[0]?.calls.length, 1);
    // Not if there is no time for it, if a model refused the request, or if another failover follows.
    const soon = { endsAt: performance.now() + 2_000 };
    const others = [failing(), failing(refused)];
    await assert.rejects(read([fakeModel(...wait(1_100)), failing()], streamed, soon), { retryAfterMs: 1_100 });
    await assert.rejects(read([fakeModel(...wait(1_100)), ...others], streamed), UpstreamError);
    const replaced = read([fakeModel(...wait(1_100)), failing()], streamed, { isReplaceable: true });
    await assert.rejects(replaced, UpstreamError);
  }
});

test("asks a model that is unavailable for a moment again until it is there, if no other one answers", async () => {
  const away = (status: number) => new ModelError("loads", { retryable: true, status, retryAfterMs: 1_000 });
  const loading = (fails: number, status = 503) =>
    fakeModel(...Array.from({ length: fails }, (): Script => () => failing(away(status)).ask(call())), () =>
      pieces("there"),
    );
  for (const streamed of BOTH) {
    const others = streamed ? [] : [failing()];
    const startedAt = performance.now();
    assert.deepEqual(without(await read([loading(2), ...others], streamed)), pieces("there"));
    // The second wait is longer than the first.
    assert.ok(performance.now() - startedAt >= 2_990);
    // Not until the deadline, and not if it only limits the calls: those were repeated then.
    const model = loading(9);
    const soon = { endsAt: performance.now() + 3_500 };
    await assert.rejects(read([model], streamed, soon), { retryAfterMs: 1_000 });
    assert.equal(model.calls.length, 2);
    await assert.rejects(read([loading(1, 429)], streamed), { retryAfterMs: 1_000 });
  }
});

test("asks each of several models that load again until one is there", async () => {
  const away = new ModelError("loads", { retryable: true, status: 503, retryAfterMs: 1_000 });
  const limited = new ModelError("later", { retryable: true, status: 429, retryAfterMs: 1_500 });
  for (const streamed of BOTH) {
    const [long, throttled] = [failing(away), failing(limited)];
    const short = fakeModel(() => failing(away).ask(call()), answering("there").ask);
    const startedAt = performance.now();
    assert.deepEqual(without(await read([throttled, long, short], streamed)), pieces("there"));
    assert.ok(performance.now() - startedAt < 1_900);
    assert.deepEqual(
      [throttled, long, short].map(({ calls }) => calls.length),
      [1, 2, 2],
    );
    // What only limits the calls is asked again once.
    const turned = fakeModel(() => failing(away).ask(call()), failing(limited).ask);
    await assert.rejects(read([turned, failing()], streamed), { retryAfterMs: 1_000 });
    assert.equal(turned.calls.length, 2);
  }
});

test("fails before the deadline if models that load are still not there", async () => {
  const away = new ModelError("loads", { retryable: true, status: 503, retryAfterMs: 1_500 });
  for (const streamed of BOTH) {
    const models = [failing(away), failing(away)];
    const guarded = models.map((model) => resilient(model, { timeouts: TIMEOUTS }));
    const startedAt = performance.now();
    await assert.rejects(read(guarded, streamed, { endsAt: startedAt + 5_000 }), { retryAfterMs: 1_500 });
    assert.ok(performance.now() - startedAt < 5_000);
    assert.deepEqual(
      models.map(({ calls }) => calls.length),
      [2, 2],
    );
  }
});

test("asks a model that is unavailable again also while its circuit is open", async () => {
  let isThere = false;
  const away = new ModelError("loads", { retryable: true, status: 503, retryAfterMs: 1_000 });
  const first = fakeModel((call) => (isThere ? pieces("there") : failing(away).ask(call)));
  const guarded = resilient(first, { timeouts: TIMEOUTS, retries: 0, breaker: { minRequests: 1 } });
  await assert.rejects(collect(guarded.ask(call())));
  const reading = read([guarded], true);
  setTimeout(() => {
    isThere = true;
  }, 500);
  assert.equal(textOf(await reading), "there");
});
