import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { APICallError } from "@ai-sdk/provider";
import { test } from "vitest";
import { ModelError } from "../../src/models/model-error.ts";
import { type ResilientOptions, resilient } from "../../src/models/resilient.ts";
import type { Part } from "../../src/models/stream.ts";
import { until } from "../helpers/until.ts";
import { call, collect, fakeModel, finish, parts, result, textOf, untilAborted } from "./fake-model.ts";

const TIMEOUTS = { connectMs: 1_000, firstTokenMs: 5_000, betweenChunksMs: 5_000 };
const options = (more: Partial<ResilientOptions> = {}): ResilientOptions => ({
  timeouts: TIMEOUTS,
  backoffMs: 1,
  ...more,
});

const fail =
  (statusCode: number, responseHeaders: Record<string, string> = {}) =>
  async () => {
    throw new APICallError({ message: "m", url: "u", requestBodyValues: {}, statusCode, responseHeaders });
  };

const ok = async () => result("fine");

test("a unary call passes through", async () => {
  const model = fakeModel({ generate: [ok] });
  const answer = await resilient(model, options()).doGenerate(call({ temperature: 0.5 }));
  assert.deepEqual(answer, result("fine"));
  assert.equal(model.calls[0]?.temperature, 0.5);
});

test("what may pass is tried again, twice at most", async () => {
  const recovered = fakeModel({ generate: [fail(500), fail(429), ok] });
  assert.deepEqual(await resilient(recovered, options()).doGenerate(call()), result("fine"));
  assert.equal(recovered.calls.length, 3);

  const down = fakeModel({ generate: [fail(503)] });
  await assert.rejects(async () => resilient(down, options()).doGenerate(call()), { name: "ModelError", status: 503 });
  assert.equal(down.calls.length, 3);
});

test("what will not pass is not tried again", async () => {
  for (const status of [400, 401, 403, 404]) {
    const model = fakeModel({ generate: [fail(status)] });
    await assert.rejects(async () => resilient(model, options()).doGenerate(call()), { status });
    assert.equal(model.calls.length, 1);
  }
});

test("the wait is the vendor's where it names one, else random up to a doubling ceiling", async () => {
  const waits: number[] = [];
  const timed = async (model: ReturnType<typeof fakeModel>, more: Partial<ResilientOptions>) => {
    const start = performance.now();
    await resilient(model, options(more)).doGenerate(call());
    waits.push(performance.now() - start);
  };
  await timed(fakeModel({ generate: [fail(429, { "retry-after-ms": "60" }), ok] }), {});
  await timed(fakeModel({ generate: [fail(500), fail(500), ok] }), { backoffMs: 20, random: () => 1 });
  await timed(fakeModel({ generate: [fail(500), fail(500), ok] }), { backoffMs: 1_000, random: () => 0 });
  const [hinted = 0, full = 0, none = 0] = waits;
  assert.ok(hinted >= 58, `${hinted}`);
  assert.ok(full >= 58, `20 and 40: ${full}`);
  assert.ok(none < 40, `${none}`);
});

test("a vendor that asks for too long a wait fails at once", async () => {
  const model = fakeModel({ generate: [fail(429, { "retry-after": "30" }), ok] });
  const start = performance.now();
  await assert.rejects(async () => resilient(model, options()).doGenerate(call()), {
    status: 429,
    retryAfterMs: 30_000,
  });
  assert.ok(performance.now() - start < 500);
  assert.equal(model.calls.length, 1);
});

test("an abort by the caller is thrown as it is and ends the model's call", async () => {
  const model = fakeModel({ generate: [({ abortSignal }) => untilAborted(abortSignal)] });
  const caller = new AbortController();
  const pending = Promise.resolve(resilient(model, options()).doGenerate(call({ abortSignal: caller.signal })));
  const gone = new Error("gone");
  caller.abort(gone);
  await assert.rejects(pending, gone);
  assert.equal(model.calls[0]?.abortSignal?.aborted, true);
  assert.equal(model.calls.length, 1);
});

test("an abort is never the model's failure: the circuit stays closed", async () => {
  const model = fakeModel({ generate: [({ abortSignal }) => untilAborted(abortSignal)] });
  const calm = resilient(model, options({ breaker: { failures: 1 } }));
  for (let i = 0; i < 3; i++) {
    const caller = new AbortController();
    const pending = Promise.resolve(calm.doGenerate(call({ abortSignal: caller.signal })));
    caller.abort();
    await assert.rejects(pending, { name: "AbortError" });
  }
  assert.equal(model.calls.length, 3);
});

test("an abort ends the wait before another try", async () => {
  const model = fakeModel({ generate: [fail(500), ok] });
  const caller = new AbortController();
  const slow = options({ backoffMs: 4_000, random: () => 1 });
  const pending = Promise.resolve(resilient(model, slow).doGenerate(call({ abortSignal: caller.signal })));
  await until(() => model.calls.length === 1);
  caller.abort(new Error("gone"));
  await assert.rejects(pending, { message: "gone" });
  assert.equal(model.calls.length, 1);
});

test("a silent unary call ends after the patience for its length, and another model gets its turn", async () => {
  const model = fakeModel({ generate: [({ abortSignal }) => untilAborted(abortSignal)] });
  const start = performance.now();
  const timeouts = { ...TIMEOUTS, firstTokenMs: 30 };
  await assert.rejects(async () => resilient(model, options({ timeouts })).doGenerate(call({ maxOutputTokens: 2 })), {
    name: "ModelError",
    message: "The model was silent for too long.",
  });
  const took = performance.now() - start;
  assert.ok(took >= 68 && took < 1_000, `30 + 2 * 20: ${took}`);
  assert.equal(model.calls.length, 1, "no time for another try");
});

test("the circuit opens after failures in a row, fails at once, and closes after a good probe", async () => {
  let now = 0;
  let healthy = false;
  const model = fakeModel({ generate: [async () => (healthy ? ok() : fail(500)())] });
  const guarded = resilient(
    model,
    options({ retries: 0, breaker: { failures: 3, cooldownMs: 100, clock: () => now } }),
  );
  const attempt = async () => guarded.doGenerate(call());
  for (let i = 0; i < 3; i++) await assert.rejects(attempt, { status: 500 });
  await assert.rejects(attempt, { message: /failed repeatedly/ });
  await assert.rejects(collect((await guarded.doStream(call())).stream), { name: "ModelError", retryable: false });
  assert.equal(model.calls.length, 3, "the open circuit keeps calls away");
  now = 100;
  await assert.rejects(attempt, { status: 500 });
  await assert.rejects(attempt, { message: /failed repeatedly/ });
  now = 200;
  healthy = true;
  assert.deepEqual(await attempt(), result("fine"));
  assert.deepEqual(await attempt(), result("fine"));
});

test("requests that are themselves at fault do not open the circuit", async () => {
  const model = fakeModel({ generate: [fail(400)] });
  const calm = resilient(model, options({ breaker: { failures: 1 } }));
  for (let i = 0; i < 3; i++) await assert.rejects(async () => calm.doGenerate(call()), { status: 400 });
});

test("a stream passes through from its first text on", async () => {
  const model = fakeModel({ stream: [() => parts("a", "b")] });
  const { stream } = await resilient(model, options()).doStream(call());
  assert.deepEqual(await collect(stream), parts("a", "b"));
});

test("a stream is tried again as long as no text has come, whatever else has", async () => {
  async function* dies(): AsyncGenerator<Part> {
    yield { type: "stream-start", warnings: [] };
    yield { type: "reasoning-delta", id: "r", delta: "hm" };
    yield { type: "text-start", id: "0" };
    throw new Error("ECONNRESET");
  }
  const model = fakeModel({
    stream: [dies, () => [{ type: "error", error: { message: "overloaded" } }], () => parts("a")],
  });
  const { stream } = await resilient(model, options()).doStream(call());
  assert.deepEqual(await collect(stream), parts("a"), "and nothing of the failed tries is seen");
});

test("after the first text a failure is final", async () => {
  async function* dies(): AsyncGenerator<Part> {
    yield* parts("a").slice(0, 3);
    throw new Error("ECONNRESET");
  }
  const model = fakeModel({ stream: [dies] });
  const { stream } = await resilient(model, options()).doStream(call());
  const seen: Part[] = [];
  await assert.rejects(async () => {
    for await (const part of stream) seen.push(part);
  }, ModelError);
  assert.equal(textOf(seen), "a");
  assert.equal(model.calls.length, 1);
});

async function* hangs(signal: AbortSignal | undefined, ...before: Part[]): AsyncGenerator<Part> {
  yield* before;
  await untilAborted(signal);
}

test("a stream may be silent for firstTokenMs before its text", async () => {
  const model = fakeModel({
    stream: [({ abortSignal }) => hangs(abortSignal, { type: "stream-start", warnings: [] })],
  });
  const timeouts = { ...TIMEOUTS, firstTokenMs: 40 };
  const { stream } = await resilient(model, options({ timeouts })).doStream(call());
  await assert.rejects(collect(stream), { message: "The model was silent for too long." });
});

test("thinking is a sign of life", async () => {
  async function* thinks(): AsyncGenerator<Part> {
    for (let i = 0; i < 5; i++) {
      await sleep(30);
      yield { type: "reasoning-delta", id: "r", delta: "hm" };
    }
    yield* parts("a");
  }
  const model = fakeModel({ stream: [thinks] });
  const timeouts = { ...TIMEOUTS, firstTokenMs: 100 };
  const { stream } = await resilient(model, options({ timeouts })).doStream(call());
  assert.equal(textOf(await collect(stream)), "a");
});

test("a stream may be silent for betweenChunksMs after its first text", async () => {
  const model = fakeModel({ stream: [({ abortSignal }) => hangs(abortSignal, ...parts("a").slice(0, 3))] });
  const timeouts = { ...TIMEOUTS, betweenChunksMs: 40 };
  const { stream } = await resilient(model, options({ timeouts })).doStream(call());
  const start = performance.now();
  await assert.rejects(collect(stream), { message: "The model was silent for too long." });
  assert.ok(performance.now() - start < 1_000);
});

test("a slow reader's time is not the model's", async () => {
  const model = fakeModel({ stream: [() => parts("a", "b")] });
  const timeouts = { ...TIMEOUTS, firstTokenMs: 50, betweenChunksMs: 30 };
  const { stream } = await resilient(model, options({ timeouts })).doStream(call());
  let text = "";
  for await (const part of stream) {
    await sleep(50);
    if (part.type === "text-delta") text += part.delta;
  }
  assert.equal(text, "ab");
});

test("a reader that leaves early ends the model's call, and the circuit does not mind", async () => {
  const model = fakeModel({ stream: [({ abortSignal }) => hangs(abortSignal, ...parts("a").slice(0, 3))] });
  const calm = resilient(model, options({ breaker: { failures: 1 } }));
  for (let i = 0; i < 2; i++) {
    for await (const part of (await calm.doStream(call())).stream) if (part.type === "text-delta") break;
  }
  assert.equal(model.calls.length, 2);
  assert.equal(model.calls[0]?.abortSignal?.aborted, true);
});

test("an abort during a stream is thrown as it is", async () => {
  const model = fakeModel({ stream: [({ abortSignal }) => hangs(abortSignal, ...parts("a").slice(0, 3))] });
  const caller = new AbortController();
  const { stream } = await resilient(model, options()).doStream(call({ abortSignal: caller.signal }));
  const gone = new Error("gone");
  await assert.rejects(async () => {
    for await (const part of stream) if (part.type === "text-delta") caller.abort(gone);
  }, gone);
});

test("an answer without text is a whole answer here", async () => {
  const model = fakeModel({ stream: [() => parts()] });
  const { stream } = await resilient(model, options()).doStream(call());
  assert.deepEqual(await collect(stream), [finish()]);
});

test("each try is told when it has ended, with what the vendor reported or what arrived", async () => {
  const ends: [outcome: string, reported: boolean, received: number][] = [];
  const told = options({
    timeouts: { ...TIMEOUTS, firstTokenMs: 30 },
    retries: 1,
    onEnd: ({ outcome, usage, received }) => ends.push([outcome, usage !== undefined, received]),
  });
  const since = async (run: () => Promise<unknown>): Promise<typeof ends> => {
    ends.length = 0;
    await run().catch(() => undefined);
    return [...ends];
  };
  const whole = (...generate: Parameters<typeof fakeModel>[0]["generate"] & object) =>
    since(async () => resilient(fakeModel({ generate }), told).doGenerate(call({ maxOutputTokens: 1 })));
  assert.deepEqual(await whole(fail(500), ok), [
    ["failed", false, 0],
    ["ok", true, 0],
  ]);
  assert.deepEqual(await whole(({ abortSignal }) => untilAborted(abortSignal)), [["timed_out", false, 0]]);
  const gone = AbortSignal.timeout(5);
  const abandoned = fakeModel({ generate: [({ abortSignal }) => untilAborted(abortSignal)] });
  assert.deepEqual(await since(async () => resilient(abandoned, told).doGenerate(call({ abortSignal: gone }))), [
    ["left", false, 0],
  ]);

  const read = (model: ReturnType<typeof fakeModel>, until?: Part["type"]) =>
    since(async () => {
      const { stream } = await resilient(model, told).doStream(call());
      for await (const part of stream) if (part.type === until) break;
    });
  assert.deepEqual(await read(fakeModel({ stream: [() => parts("four", "six...")] })), [["ok", true, 10]]);
  assert.deepEqual(await read(fakeModel({ stream: [() => parts("four")] }), "finish"), [["ok", true, 4]]);
  assert.deepEqual(await read(fakeModel({ stream: [() => parts("four", "more")] }), "text-delta"), [
    ["left", false, 4],
  ]);
  async function* broken() {
    yield* parts("four").slice(0, 3);
    throw new Error("reset");
  }
  assert.deepEqual(await read(fakeModel({ stream: [broken] })), [["failed", false, 4]]);
});
