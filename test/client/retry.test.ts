import assert from "node:assert/strict";
import { test } from "vitest";
import { ChorusError, type ChorusOptions, createChorus } from "../../src/client/client.ts";

/** An answer of the scripted service; an Error is a broken connection. */
type Answer = Response | Error;

const DONE = { id: "gen_1", request_id: "req_1", usage: {}, finish_reason: "stop", notices: [] };

function refusal(status: number, body: object, headers: Record<string, string> = {}): Response {
  return Response.json({ message: "No.", request_id: "req_1", ...body }, { status, headers });
}

function events(text: string): Response {
  return new Response(text, { headers: { "content-type": "text/event-stream" } });
}

function scripted(answers: Answer[], options: Partial<ChorusOptions> = {}) {
  const calls: { url: string; headers: Headers; at: number }[] = [];
  const fetch = async (url: unknown, init?: RequestInit) => {
    calls.push({ url: String(url), headers: new Headers(init?.headers), at: performance.now() });
    const next = answers.shift() ?? assert.fail("unexpected call");
    if (next instanceof Error) throw next;
    return next;
  };
  return { calls, chorus: createChorus({ baseUrl: "http://service/", apiKey: "secret", fetch, ...options }) };
}

test("retries temporary failures with one idempotency key, not before the stated time", async () => {
  const { chorus, calls } = scripted([
    refusal(429, { limit: "concurrent_requests", retry_after_ms: 40 }, { "Retry-After": "1" }),
    new TypeError("fetch failed"),
    refusal(409, { code: "idempotency_key_in_use", retry_after_ms: 20 }),
    Response.json({ answer: "Yes." }),
  ]);
  const { answer } = await chorus.generate({ prompt: "?" });
  assert.equal(answer, "Yes.");
  assert.equal(calls.length, 4);
  assert.equal(new Set(calls.map(({ headers }) => headers.get("idempotency-key"))).size, 1);
  assert.ok(
    calls.every(({ url, headers }) => url === "http://service/v1/generate" && headers.get("x-api-key") === "secret"),
  );
  const [first, second] = calls;
  // A timer may fire slightly early by this clock.
  assert.ok(first && second && second.at - first.at >= 39);
});

test("throws a permanent failure without a retry", async () => {
  for (const [status, code] of [
    [400, "invalid_json"],
    [401, "unauthenticated"],
    [402, "insufficient_credit"],
    [403, "missing_scope"],
    [404, "not_found"],
    [413, "request_too_large"],
    [422, "invalid_request"],
    [422, "idempotency_key_reused"],
    [500, "internal"],
    [502, "structured_output_failed"],
    [504, "timed_out"],
  ] as const) {
    const { chorus, calls } = scripted([refusal(status, { code, field: "prompt" })]);
    await assert.rejects(chorus.generate({ prompt: "?" }), {
      name: "ChorusError",
      code,
      status,
      field: "prompt",
      requestId: "req_1",
    });
    assert.equal(calls.length, 1);
  }
});

test("does not retry a failure that no wait mends", async () => {
  for (const [status, body, code] of [
    [429, { limit: "input_tokens_per_minute" }, "rate_limited"],
    [429, { code: "spend_limit_reached" }, "spend_limit_reached"],
    [502, { code: "upstream_failed" }, "upstream_failed"],
  ] as const) {
    const { chorus, calls } = scripted([refusal(status, body), refusal(status, body)]);
    await assert.rejects(chorus.generate({ prompt: "?" }), { code, retryAfterMs: undefined });
    await assert.rejects(async () => void (await chorus.stream({ prompt: "?" })[Symbol.asyncIterator]().next()), {
      code,
    });
    assert.equal(calls.length, 2);
  }
});

test("does not retry after a long wait", async () => {
  const body = { code: "spend_limit_reached", retry_after_ms: 3_600_000 };
  const { chorus, calls } = scripted([refusal(429, body)]);
  await assert.rejects(chorus.generate({ prompt: "?" }), { code: "spend_limit_reached", retryAfterMs: 3_600_000 });
  assert.equal(calls.length, 1);
});

test("waits until the date that a gateway states", async () => {
  // Dates have whole seconds.
  const until = new Date((Math.floor(Date.now() / 1_000) + 2) * 1_000);
  const busy = new Response("Busy", { status: 503, headers: { "Retry-After": until.toUTCString() } });
  const { chorus, calls } = scripted([busy, Response.json({ answer: "Yes." })]);
  await chorus.generate({ prompt: "?" });
  // A timer may fire slightly early.
  assert.ok(calls.length === 2 && Date.now() >= until.getTime() - 5);
  const tomorrow = new Date(Date.now() + 86_400_000).toUTCString();
  const { chorus: other } = scripted([new Response("Busy", { status: 503, headers: { "Retry-After": tomorrow } })]);
  await assert.rejects(other.generate({ prompt: "?" }), ({ retryAfterMs }: ChorusError) => Number(retryAfterMs) > 8e7);
});

test("fetches an answer again that was cut on its way without an error", async () => {
  const cut = () => new Response('{"answer":"Ye', { headers: { "Content-Type": "application/json; charset=utf-8" } });
  const { chorus, calls } = scripted([cut(), Response.json({ answer: "Yes." })]);
  assert.equal((await chorus.generate({ prompt: "?" })).answer, "Yes.");
  assert.equal(new Set(calls.map(({ headers }) => headers.get("idempotency-key"))).size, 1);
  const { chorus: other } = scripted([cut()], { retries: 0 });
  await assert.rejects(other.quotas(), { code: "connection_failed" });
});

test("throws the last failure when the retries are used up", async () => {
  const lost = new TypeError("fetch failed");
  const { chorus, calls } = scripted([lost, lost], { retries: 1 });
  await assert.rejects(chorus.quotas(), { code: "connection_failed", status: undefined, cause: lost });
  assert.equal(calls.length, 2);
});

test("distinguishes failures of a gateway from those of the service", async () => {
  const page = () => new Response("<h1>Bad Gateway</h1>", { status: 502, headers: { "Retry-After": "0" } });
  const { chorus, calls } = scripted([page(), page()], { retries: 1 });
  await assert.rejects(chorus.generate({ prompt: "?" }), { code: "unexpected_response", status: 502, retryAfterMs: 0 });
  assert.equal(calls.length, 2);
  // Does not retry a stream, because it has no idempotency key and may have been charged.
  const streamed = scripted([page()]);
  await assert.rejects(streamed.chorus.stream({ prompt: "?" }).text(), { code: "unexpected_response" });
  for (const broken of ["event: delta\ndata: no json\n\n", "event: error\ndata: {}\n\n"]) {
    await assert.rejects(
      scripted([events(broken)])
        .chorus.stream({ prompt: "?" })
        .text(),
      { code: "unexpected_response" },
    );
  }
  const moved = scripted([new Response(null, { status: 301, headers: { Location: "http://elsewhere/" } })]);
  await assert.rejects(moved.chorus.quotas(), { code: "unexpected_response", status: 301 });
  const other = scripted([new Response("hello"), new Response("hello")]);
  await assert.rejects(other.chorus.quotas(), { code: "unexpected_response", status: 200 });
  await assert.rejects(other.chorus.stream({ prompt: "?" }).text(), { code: "unexpected_response", status: 200 });
});

test("retries a stream only if it was refused before its first event", async () => {
  const busy = () => refusal(503, { code: "overloaded", retry_after_ms: 1 });
  const early = `event: error\ndata: {"code":"overloaded","message":"No.","request_id":"req_1","retry_after_ms":1}\n\n`;
  const complete = `event: delta\ndata: {"text":"Yes."}\n\nevent: done\ndata: ${JSON.stringify(DONE)}\n\n`;
  const good = scripted([busy(), events(early), events(complete)]);
  assert.equal(await good.chorus.stream({ prompt: "?" }).text(), "Yes.");
  assert.ok(good.calls.every(({ headers }) => !headers.has("idempotency-key")));

  const begun = scripted([events(`event: delta\ndata: {"text":"Ye"}\n\n${early}`)]);
  const seen: string[] = [];
  const read = async () => {
    for await (const event of begun.chorus.stream({ prompt: "?" })) if (event.type === "delta") seen.push(event.text);
  };
  await assert.rejects(read, { code: "overloaded", status: undefined, retryAfterMs: 1 });
  assert.deepEqual(seen, ["Ye"]);

  for (const lost of [new TypeError("fetch failed"), events(`event: delta\ndata: {"text":"Ye"}\n\n`), events("")]) {
    await assert.rejects(scripted([lost]).chorus.stream({ prompt: "?" }).done(), { code: "connection_failed" });
  }
});

test("returns events, text and end from one pass over a stream, and skips unknown event types", async () => {
  const text = [
    `event: hello\ndata: no json\n\nevent: trace\ndata: {"step":{"kind":"answer","role":"fast","started_ms":0}}\n\n`,
    `event: delta\ndata: {"text":"a"}\n\n: \n\nevent: delta\ndata: {"text":"b"}\n\n`,
    `event: done\ndata: ${JSON.stringify(DONE)}\n\n`,
  ].join("");
  const stream = scripted([events(text)]).chorus.stream({ prompt: "?" });
  const types: string[] = [];
  for await (const event of stream) types.push(event.type);
  assert.deepEqual(types, ["trace", "delta", "delta", "done"]);
  assert.equal(await stream.text(), "ab");
  assert.equal((await stream.done()).id, "gen_1");
  await assert.rejects(async () => {
    for await (const _ of stream) assert.fail();
  }, /already been read/);

  const left = scripted([events(text)]).chorus.stream({ prompt: "?" });
  for await (const _ of left) break;
  await assert.rejects(left.done(), { name: "AbortError" });
});

test("stops waiting on abort and throws the reason", async () => {
  const reason = new Error("enough");
  const { chorus } = scripted([refusal(429, { limit: "requests_per_minute", retry_after_ms: 50_000 })]);
  const controller = new AbortController();
  const pending = chorus.generate({ prompt: "?" }, { signal: controller.signal });
  setTimeout(() => controller.abort(reason), 5);
  await assert.rejects(pending, reason);
  const { calls, chorus: untouched } = scripted([]);
  await assert.rejects(untouched.generate({ prompt: "?" }, { signal: controller.signal }), reason);
  await assert.rejects(untouched.stream({ prompt: "?" }, { signal: controller.signal }).text(), reason);
  assert.equal(calls.length, 0);
});

test("fails after timeoutMs of silence; a comment resets the timeout", async () => {
  const never = (_: unknown, init?: RequestInit) =>
    new Promise<Response>((_resolve, reject) => {
      init?.signal?.addEventListener("abort", () => reject(init.signal?.reason));
    });
  const chorus = createChorus({ baseUrl: "http://service", apiKey: "secret", fetch: never, timeoutMs: 20 });
  await assert.rejects(
    chorus.generate({ prompt: "?" }),
    (error) => error instanceof ChorusError && error.code === "timeout",
  );
  await assert.rejects(chorus.stream({ prompt: "?" }).text(), { code: "timeout" });

  let sent = 0;
  const body = new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 60));
      const text = sent++ < 5 ? ": \n\n" : `event: done\ndata: ${JSON.stringify(DONE)}\n\n`;
      controller.enqueue(new TextEncoder().encode(text));
    },
  });
  const slow = scripted([new Response(body, { headers: { "content-type": "text/event-stream" } })], { timeoutMs: 250 });
  assert.equal(await slow.chorus.stream({ prompt: "?" }).text(), "");
});

test("does not count the time that the caller takes for an event", async () => {
  const pieces = ['event: delta\ndata: {"text":"a"}\n\n', `event: done\ndata: ${JSON.stringify(DONE)}\n\n`];
  const fetch = async (_: unknown, init?: RequestInit) =>
    new Response(
      new ReadableStream({
        start: (controller) => init?.signal?.addEventListener("abort", () => controller.error(init.signal?.reason)),
        pull: (controller) => controller.enqueue(new TextEncoder().encode(pieces.shift())),
      }),
      { headers: { "content-type": "text/event-stream" } },
    );
  const chorus = createChorus({ baseUrl: "http://service", apiKey: "secret", fetch, timeoutMs: 100 });
  const types: string[] = [];
  for await (const { type } of chorus.stream({ prompt: "?" })) {
    types.push(type);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  assert.deepEqual(types, ["delta", "done"]);
});

test("names an invalid option without quoting the key", async () => {
  const good = { baseUrl: "https://service", apiKey: "secret" };
  for (const [bad, name] of [
    [{ ...good, baseUrl: "service:8080" }, /^baseUrl /],
    [{ ...good, baseUrl: "https://service/v1/" }, /^baseUrl must be .* without \/v1: https:\/\/service\.$/],
    [{ ...good, apiKey: "" }, /^apiKey is empty\./],
    // As in JavaScript, where no type requires it.
    [{ ...good, apiKey: undefined as unknown as string }, /^apiKey is empty\./],
    [{ ...good, apiKey: "secret\n" }, /^apiKey (?!.*secret)/],
    [{ ...good, retries: -1 }, /^retries /],
    [{ ...good, timeoutMs: 0 }, /^timeoutMs /],
  ] as const) {
    assert.throws(() => createChorus(bad), { name: "TypeError", message: name });
  }
  const { chorus, calls } = scripted([]);
  await assert.rejects(
    chorus.generate({ prompt: "?" }, { idempotencyKey: "two words" }),
    /^TypeError: idempotencyKey /,
  );
  await assert.rejects(chorus.generate({ prompt: 1n as never }), TypeError);
  await assert.rejects(chorus.metrics({ from: new Date("no date") }), RangeError);
  await assert.rejects(chorus.quotas({ user: Object.create(null) }), TypeError);
  await assert.rejects(chorus.getGeneration("\ud800"), URIError);
  assert.equal(calls.length, 0);
});
