import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { complete, type Model, type ModelCall, type Piece, type Pieces } from "../../src/models/port/model.ts";
import { ModelError } from "../../src/models/port/model-error.ts";
import { type ResilientOptions, resilient } from "../../src/models/resilient.ts";
import { call, collect, end, fakeModel, pieces, type Script, text, textOf, untilAborted } from "./fake-model.ts";

const TIMEOUTS = { connectMs: 1_000, firstTokenMs: 5_000, betweenChunksMs: 5_000 };
const SILENT = { name: "ModelError", message: "The model was silent for too long." };
const options = (more: Partial<ResilientOptions> = {}): ResilientOptions => ({
  timeouts: TIMEOUTS,
  backoffMs: 1,
  ...more,
});

const fail =
  (status: number, retryAfterMs?: number): Script =>
  () => {
    throw new ModelError("m", { status, retryAfterMs, retryable: status === 429 || status >= 500 });
  };
const ok: Script = () => pieces("fine");
/** Sends some pieces and then nothing until the call is aborted. */
const hang = (...before: Piece[]) =>
  async function* (call: ModelCall): AsyncGenerator<Piece> {
    yield* before;
    await untilAborted(call);
  };
const read = (model: Model, more: Partial<ModelCall> = {}) => collect(model.ask(call(more)));
const whole = (model: Model, more: Partial<ModelCall> = {}) => complete(model, call({ streamed: false, ...more }));

test("passes a call and its pieces on", async () => {
  const model = fakeModel(() => pieces("a", "b"));
  assert.deepEqual(await read(resilient(model, options()), { temperature: 0.5, streamed: false }), pieces("a", "b"));
  assert.deepEqual([model.calls[0]?.temperature, model.calls[0]?.streamed], [0.5, false]);
  assert.deepEqual(await read(resilient(model, options())), pieces("a", "b"));
  assert.equal(resilient(model, options()).name, "fake");
});

test("passes steps on and keeps progress to itself", async () => {
  const step: Piece = { type: "step", step: { id: 1, kind: "draft", role: "fast" } };
  const model = fakeModel(() => [{ type: "progress" }, step, ...pieces("a")]);
  assert.deepEqual(await read(resilient(model, options())), [step, ...pieces("a")]);
});

test("passes over any number of signs of progress, also if they are there at once", async () => {
  const all: Iterator<Piece, undefined> = [
    ...Array.from({ length: 50_000 }, (): Piece => ({ type: "progress" })),
    ...pieces("a"),
  ].values();
  const own: Pieces = { [Symbol.asyncIterator]: () => own, next: () => all.next() };
  const model: Model = { name: "fake", ask: () => own };
  assert.deepEqual(await read(resilient(model, options())), pieces("a"));
});

test("retries a failure that may pass, at most twice", async () => {
  const recovering = fakeModel(fail(500), fail(429), ok);
  assert.equal((await whole(resilient(recovering, options()))).text, "fine");
  assert.equal(recovering.calls.length, 3);

  const down = fakeModel(fail(503));
  await assert.rejects(whole(resilient(down, options())), { name: "ModelError", status: 503 });
  assert.equal(down.calls.length, 3);
});

test("does not retry a failure that would repeat", async () => {
  for (const status of [400, 401, 403, 404]) {
    const model = fakeModel(fail(status));
    await assert.rejects(whole(resilient(model, options())), { status });
    assert.equal(model.calls.length, 1);
  }
});

test("waits as long as the vendor asks for, else a random time up to a doubling bound", async () => {
  const timed = async (model: Model, more: Partial<ResilientOptions>): Promise<number> => {
    const start = performance.now();
    await whole(resilient(model, options(more)));
    return performance.now() - start;
  };
  const hinted = await timed(fakeModel(fail(429, 60), ok), {});
  assert.ok(hinted >= 58, `${hinted}`);
  const full = await timed(fakeModel(fail(500), fail(500), ok), { backoffMs: 20, random: () => 1 });
  assert.ok(full >= 58, `20 and 40: ${full}`);
  const none = await timed(fakeModel(fail(500), fail(500), ok), { backoffMs: 60_000, random: () => 0 });
  assert.ok(none < 30_000, `${none}`);
});

test("fails at once when the vendor asks for too long a wait", async () => {
  const model = fakeModel(fail(429, 30_000), ok);
  const start = performance.now();
  await assert.rejects(whole(resilient(model, options())), { status: 429, retryAfterMs: 30_000 });
  assert.ok(performance.now() - start < 15_000);
  assert.equal(model.calls.length, 1);
});

test("throws the reason of the caller's abort and ends the model's call", async () => {
  const model = fakeModel(untilAborted);
  const caller = new AbortController();
  const pending = whole(resilient(model, options()), { signal: caller.signal });
  const gone = new Error("gone");
  caller.abort(gone);
  await assert.rejects(pending, gone);
  assert.equal(model.calls[0]?.signal.aborted, true);
  assert.equal(model.calls.length, 1);
});

test("throws the reason of an abort during a stream", async () => {
  const caller = new AbortController();
  const gone = new Error("gone");
  const model = resilient(fakeModel(hang(text("a"))), options());
  await assert.rejects(async () => {
    for await (const piece of model.ask(call({ signal: caller.signal }))) if (piece.type === "text") caller.abort(gone);
  }, gone);
});

test("calls no model for a caller who has left", async () => {
  const model = fakeModel(ok);
  const gone = new Error("gone");
  await assert.rejects(read(resilient(model, options()), { signal: AbortSignal.abort(gone) }), gone);
  assert.equal(model.calls.length, 0);
});

test("does not count an abort against the model", async () => {
  const model = fakeModel(untilAborted);
  const guarded = resilient(model, options({ breaker: { minRequests: 1 } }));
  for (let i = 0; i < 3; i++) {
    const caller = new AbortController();
    const pending = whole(guarded, { signal: caller.signal });
    caller.abort();
    await assert.rejects(pending, { name: "AbortError" });
  }
  assert.equal(model.calls.length, 3);
});

test("counts an abort against the model whose reason is that another model was quicker", async () => {
  const model = fakeModel(untilAborted);
  const guarded = resilient(model, options({ breaker: { minRequests: 1 } }));
  const caller = new AbortController();
  const pending = whole(guarded, { signal: caller.signal });
  caller.abort(new ModelError("Another model was quicker.", { retryable: false }));
  await assert.rejects(pending, /quicker/);
  await assert.rejects(whole(guarded), /failed repeatedly/);
});

test("counts a model that sends nothing until the deadline, and not one that has begun", async () => {
  for (const [script, isBlamed] of [
    [hang(), true],
    [hang({ type: "progress" }), false],
  ] as const) {
    const guarded = resilient(fakeModel(script), options({ breaker: { minRequests: 1 } }));
    const deadline = { signal: AbortSignal.timeout(20), endsAt: performance.now() + 20 };
    await assert.rejects(read(guarded, deadline), { name: "TimeoutError" });
    const next = read(guarded, { signal: AbortSignal.timeout(20) });
    await assert.rejects(next, isBlamed ? /failed repeatedly/ : { name: "TimeoutError" });
  }
});

test("counts the retries of a request once, and retries no more once the circuit is open", async () => {
  const model = fakeModel(fail(500));
  const guarded = resilient(model, options({ breaker: { minRequests: 2 } }));
  await Promise.all([1, 2, 3].map(() => assert.rejects(whole(guarded), { status: 500 })));
  assert.ok(model.calls.length >= 7 && model.calls.length <= 9, `${model.calls.length}`);
  await assert.rejects(whole(guarded), /failed repeatedly/);
  const before = model.calls.length;
  await assert.rejects(whole(guarded, { isLastResort: true }), { status: 500 });
  assert.equal(model.calls.length, before + 1);
});

test("ends the wait before a retry when the caller aborts", async () => {
  const model = fakeModel(fail(500), ok);
  const caller = new AbortController();
  const pending = whole(resilient(model, options({ backoffMs: 4_000, random: () => 1 })), { signal: caller.signal });
  await sleep(10);
  caller.abort(new Error("gone"));
  await assert.rejects(pending, { message: "gone" });
  assert.equal(model.calls.length, 1);
});

test("gives a whole completion 20 ms more for each token of its ceiling", async () => {
  const model = fakeModel(untilAborted);
  const start = performance.now();
  const timeouts = { ...TIMEOUTS, firstTokenMs: 30 };
  await assert.rejects(whole(resilient(model, options({ timeouts })), { maxTokens: 2 }), SILENT);
  const took = performance.now() - start;
  assert.ok(took >= 68 && took < 5_000, `30 + 2 * 20: ${took}`);
  assert.equal(model.calls.length, 1, "no time is left for a retry");
});

test("gives a stream firstTokenMs for its first text", async () => {
  const model = fakeModel(hang({ type: "progress" }));
  const timeouts = { ...TIMEOUTS, firstTokenMs: 40 };
  const start = performance.now();
  await assert.rejects(read(resilient(model, options({ timeouts })), { maxTokens: 1_000 }), SILENT);
  assert.ok(performance.now() - start < 10_000, "a stream's ceiling does not extend the wait");
});

test("gives a stream the time of the call where that is shorter", async () => {
  const timeouts = { ...TIMEOUTS, firstTokenMs: 60_000 };
  await assert.rejects(read(resilient(fakeModel(hang()), options({ timeouts })), { silenceMs: 40 }), SILENT);
});

test("starts the silence anew with each progress", async () => {
  async function* thinks(): AsyncGenerator<Piece> {
    for (let i = 0; i < 8; i++) {
      await sleep(150);
      yield { type: "progress" };
    }
    yield* pieces("a");
  }
  const timeouts = { ...TIMEOUTS, firstTokenMs: 1_000 };
  assert.equal(textOf(await read(resilient(fakeModel(thinks), options({ timeouts })))), "a");
});

test("gives a stream betweenChunksMs after its first text", async () => {
  const timeouts = { ...TIMEOUTS, betweenChunksMs: 40 };
  const start = performance.now();
  await assert.rejects(read(resilient(fakeModel(hang(text("a"))), options({ timeouts }))), SILENT);
  assert.ok(performance.now() - start < 5_000);
});

test("does not count the time that the reader takes", async () => {
  const timeouts = { ...TIMEOUTS, firstTokenMs: 50, betweenChunksMs: 30 };
  const model = resilient(
    fakeModel(() => pieces("a", "b")),
    options({ timeouts }),
  );
  const all: Piece[] = [];
  for await (const piece of model.ask(call())) {
    await sleep(50);
    all.push(piece);
  }
  assert.deepEqual(all, pieces("a", "b"));
});

test("opens the circuit after failures in a row, and closes it after a good probe", async () => {
  let now = 0;
  let script = fail(500);
  const model = fakeModel((call) => script(call));
  const breaker = { minRequests: 3, cooldownMs: 100, clock: () => now };
  const guarded = resilient(model, options({ retries: 0, breaker }));
  for (let i = 0; i < 3; i++) await assert.rejects(whole(guarded), { status: 500 });
  await assert.rejects(whole(guarded), { message: /failed repeatedly/ });
  await assert.rejects(read(guarded), { name: "ModelError", retryable: false });
  assert.equal(model.calls.length, 3, "the open circuit sends no calls");
  now = 100;
  await assert.rejects(whole(guarded), { status: 500 });
  await assert.rejects(whole(guarded), { message: /failed repeatedly/ });
  // The workspace whose probe failed waits twice as long.
  now = 300;
  script = ok;
  assert.equal((await whole(guarded)).text, "fine");
  assert.equal((await whole(guarded)).text, "fine");
});

test("says why the circuit is open, and how long the model throttles", async () => {
  const breaker = { minRequests: 1 };
  const limited = resilient(fakeModel(fail(429, 60_000)), options({ retries: 0, breaker }));
  await assert.rejects(whole(limited), { status: 429, kind: undefined });
  await assert.rejects(whole(limited), (error) => {
    assert.ok(error instanceof ModelError);
    assert.deepEqual([error.kind, error.status, error.isCongestion], ["not_asked", 429, false]);
    assert.ok(error.throttledMs !== undefined && error.throttledMs > 30_000 && error.throttledMs <= 60_000);
    return true;
  });
  const denied = resilient(fakeModel(fail(401)), options({ retries: 0, breaker }));
  await assert.rejects(whole(denied), { status: 401 });
  await assert.rejects(whole(denied), { kind: "not_asked", status: 401, needsOperator: true, throttledMs: undefined });
  const short = resilient(fakeModel(fail(429, 1)), options({ retries: 0, breaker }));
  await assert.rejects(whole(short), { status: 429 });
  await sleep(5);
  await assert.rejects(whole(short), { kind: "not_asked", throttledMs: 1_000 });
});

test("does not open the circuit for requests that are at fault", async () => {
  const guarded = resilient(fakeModel(fail(400)), options({ breaker: { minRequests: 1 } }));
  for (let i = 0; i < 3; i++) await assert.rejects(whole(guarded), { status: 400 });
});

test("does not open the circuit for a refused prompt", async () => {
  const refuse: Script = () => {
    throw new ModelError("refused", { retryable: false, kind: "refused" });
  };
  const guarded = resilient(fakeModel(refuse), options({ breaker: { minRequests: 1 } }));
  for (let i = 0; i < 3; i++) await assert.rejects(whole(guarded), { kind: "refused" });
});

test("retries a stream until its first text, and shows nothing of the failed tries", async () => {
  async function* breaks(): AsyncGenerator<Piece> {
    yield { type: "progress" };
    throw new Error("ECONNRESET");
  }
  const model = fakeModel(breaks, fail(529), () => pieces("a"));
  assert.deepEqual(await read(resilient(model, options())), pieces("a"));
});

test("does not retry after the first text", async () => {
  async function* breaks(): AsyncGenerator<Piece> {
    yield text("a");
    throw new Error("ECONNRESET");
  }
  const model = fakeModel(breaks);
  const all: Piece[] = [];
  await assert.rejects(async () => {
    for await (const piece of resilient(model, options()).ask(call())) all.push(piece);
  }, ModelError);
  assert.equal(textOf(all), "a");
  assert.equal(model.calls.length, 1);
});

test("ends the model's call when the reader leaves, and does not count that against the model", async () => {
  const model = fakeModel(hang(text("a")));
  const guarded = resilient(model, options({ breaker: { minRequests: 1 } }));
  for (let i = 0; i < 2; i++) for await (const piece of guarded.ask(call())) if (piece.type === "text") break;
  assert.equal(model.calls.length, 2);
  assert.equal(model.calls[0]?.signal.aborted, true);
});

test("does not abort a call whose completion is whole, so its connection can be used again", async () => {
  const model = fakeModel(ok);
  for await (const piece of resilient(model, options()).ask(call())) if (piece.type === "end") break;
  assert.equal(model.calls[0]?.signal.aborted, false);
});

test("accepts a completion without text", async () => {
  assert.deepEqual(
    await read(
      resilient(
        fakeModel(() => [end()]),
        options(),
      ),
    ),
    [end()],
  );
});

test("reports the end of each try with the vendor's usage and the length of the text", async () => {
  const ends: [outcome: string, isReported: boolean, received: number][] = [];
  const reporting = options({
    timeouts: { ...TIMEOUTS, firstTokenMs: 30 },
    retries: 1,
    onEnd: ({ outcome, usage, received }) => ends.push([outcome, usage !== undefined, received]),
  });
  const endsOf = async (scripts: Script[], more: Partial<ModelCall> = {}, until?: Piece["type"]) => {
    ends.length = 0;
    const read = async () => {
      const model = resilient(fakeModel(...scripts), reporting);
      for await (const piece of model.ask(call(more))) if (piece.type === until) break;
    };
    await read().catch(() => undefined);
    return [...ends];
  };
  async function* breaks(): AsyncGenerator<Piece> {
    yield text("four");
    throw new Error("reset");
  }
  const unary = { streamed: false, maxTokens: 1 };
  assert.deepEqual(await endsOf([fail(500), ok], unary), [
    ["failed", false, 0],
    ["ok", true, 4],
  ]);
  assert.deepEqual(await endsOf([untilAborted], unary), [["timed_out", false, 0]]);
  assert.deepEqual(await endsOf([untilAborted], { ...unary, signal: AbortSignal.timeout(5) }), [["left", false, 0]]);
  assert.deepEqual(await endsOf([() => pieces("four", "six...")]), [["ok", true, 10]]);
  assert.deepEqual(await endsOf([() => pieces("four")], {}, "end"), [["ok", true, 4]]);
  assert.deepEqual(await endsOf([() => pieces("four", "more")], {}, "text"), [["left", false, 4]]);
  assert.deepEqual(await endsOf([breaks]), [["failed", false, 4]]);
});
