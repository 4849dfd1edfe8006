import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { describe } from "vitest";
import { type Bench, credits, lastOf, rowOf, settled, test, textOf } from "../helpers/bench.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { head, openRaw } from "../helpers/raw.ts";
import { readEvents, startService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";

describe("an answer", () => {
  test("does not charge an answer that the model cut short, unless the caller's cap did", async ({
    harness: { openai, pool, count, ask },
  }) => {
    openai.always({ text: "It goes on and", finish: "length" });
    const cut = await ask({ prompt: "a" });
    assert.equal(cut.finish_reason, "length");
    assert.equal(cut.usage.credits, 0);
    assert.deepEqual(
      cut.notices.map(({ code }: { code: string }) => code),
      ["cut_short"],
    );
    assert.equal((await rowOf(pool, cut.id)).outcome, "cut_short");
    const capped = await ask({ prompt: "a", max_tokens: 100 });
    assert.equal(capped.finish_reason, "length");
    assert.equal(capped.usage.credits, credits(1, 0, count("It goes on and")));
    assert.deepEqual(capped.notices, []);
  });

  test("asks the next model while nothing was delivered", async ({
    harness: { openai, anthropic, pool, ask, stream },
  }) => {
    anthropic.always({ text: "From the other." });
    for (const broken of [{ end: "cut", after: 0 }, { status: 400 }, { text: "" }] as const) {
      openai.always(broken);
      const { text, last } = await stream({ prompt: "a" });
      assert.equal(text, "From the other.");
      const row = await rowOf(pool, last.data.id);
      assert.deepEqual([row.model, row.outcome], ["anthropic-fast", "ok"]);
      // A success, so that the next failure does not open this model's circuit breaker.
      openai.always({});
      await ask({ prompt: "a" });
    }
  });

  test("ends a stream whose vendor fails after some text with an error event, uncharged", async ({
    harness: { openai, pool, ask, stream },
  }) => {
    for (const end of ["reset", "cut", "error", "garbage"] as const) {
      openai.always({ text: ["some ", "text ", "more"], after: 2, end });
      const { events, text, last } = await stream({ prompt: `dies by ${end}` });
      assert.equal(text, "some text ", end);
      assert.ok(events.length > 1 && events.slice(0, -1).every(({ event }) => event === "delta"));
      assert.equal(last.event, "error");
      const { request_id, message, ...rest } = last.data;
      assert.deepEqual(rest, { code: "upstream_failed", retry_after_ms: 1_000 });
      assert.equal(typeof message, "string");
      const [row] = await pool.query(
        "select outcome, credits_micro, finish_reason from generations where request_id = $1",
        [request_id],
      );
      assert.deepEqual(row, { outcome: "upstream_failed", credits_micro: 0n, finish_reason: null });
      openai.always({});
      await ask({ prompt: "a" });
    }
  });

  test("sends headers after a silence, comments meanwhile, and a late failure as an event", async ({
    harness: { openai, anthropic, service, stream },
  }) => {
    openai.always({ text: "late", firstMs: 1_000 });
    const response = await service.post("/v1/generate:stream", { prompt: "a" });
    assert.equal(response.status, 200);
    const text = await response.text();
    assert.match(text, /^(: \n\n)+event: delta\ndata: \{"text":"late"\}\n\n(: \n\n)*event: done\n/);

    openai.always({ status: 400, headersMs: 1_000 });
    anthropic.always({ status: 400 });
    const { events } = await stream({ prompt: "a" });
    assert.deepEqual(
      events.map(({ event, data }) => [event, data.code]),
      [["error", "upstream_failed"]],
    );
  });

  test("delivers the text so far, uncharged, when time runs out", async ({ harness: { openai, pool, stream } }) => {
    openai.always({ text: ["Some ", "text", " more"], after: 2, end: "hang" });
    const medium = { prompt: "a", effort: "medium" };
    const before = openai.calls.length;
    const { text, last } = await stream(medium);
    assert.equal(text, "Some text");
    assert.equal(last.event, "done");
    assert.equal(last.data.finish_reason, "length");
    assert.deepEqual(last.data.usage, { input_tokens: 1, output_tokens: 2, cached_tokens: 0, credits: 0 });
    assert.deepEqual(
      (last.data.notices as { code: string }[]).map(({ code }) => code),
      ["cut_short"],
    );
    assert.equal(await openai.calls[before]?.ended, "aborted");
    const row = await rowOf(pool, last.data.id);
    assert.deepEqual([row.outcome, row.credits_micro, row.finish_reason], ["cut_short", 0n, "length"]);

    const extract = await stream({ ...medium, output_shape: "extract" });
    assert.equal(extract.last.data.structured, null);
    assert.match(`${extract.last.data.structured_error}`, /cut short/);
  });

  test("fails with 504, or an error event after the headers, when time runs out without text", async ({
    harness: { openai, anthropic, pool, service, stream },
  }) => {
    openai.always({ end: "silent" });
    anthropic.always({ end: "silent" });
    const response = await service.post("/v1/generate", { prompt: "a", effort: "medium" });
    assert.equal(response.status, 504);
    const { request_id } = (await response.json()) as { request_id: string };
    const [row] = await pool.query("select outcome, credits_micro from generations where request_id = $1", [
      request_id,
    ]);
    assert.deepEqual(row, { outcome: "timed_out", credits_micro: 0n });
    const { events } = await stream({ prompt: "a", effort: "medium" });
    assert.deepEqual(
      events.map(({ event, data }) => [event, data.code]),
      [["error", "timed_out"]],
    );
  });

  test("charges a caller who left a stream for input and what was written, and ends the vendor's call", async ({
    harness: { openai, pool, service, count, auth },
    t,
  }) => {
    const words = Array.from({ length: 500 }, (_, i) => `word${i} `);
    openai.always({ text: words, betweenMs: 10 });
    const before = openai.calls.length;
    const raw = await openRaw(t, service.url);
    const body = '{"prompt":"leaves a stream"}';
    raw.send(head("POST", "/v1/generate:stream", { ...auth, "Content-Length": body.length }) + body);
    const seen = await raw.until("word2 ");
    const [, requestId = ""] = /X-Request-Id: (\S+)/i.exec(seen) ?? [];
    raw.socket.destroy();
    assert.equal(await openai.calls[before]?.ended, "aborted");
    const [row = {}] = await settled(pool, requestId);
    assert.deepEqual([row.outcome, row.finish_reason], ["caller_gone", null]);
    const input = count("leaves a stream");
    const output = Number(row.output_tokens);
    assert.ok(
      output >= count("word0 word1 word2 ") && output < count(words.slice(0, 100).join("")),
      `${output} tokens`,
    );
    assert.equal(Number(row.credits_micro) / 1e6, credits(input, 0, output));

    // Before the first word: the input alone.
    openai.always({ end: "silent" });
    const silent = openai.calls.length;
    const early = await openRaw(t, service.url);
    early.send(head("POST", "/v1/generate:stream", { ...auth, "Content-Length": body.length }) + body);
    const [, id = ""] = /X-Request-Id: (\S+)/i.exec(await early.until("\r\n\r\n")) ?? [];
    // The headers do not wait for the vendor.
    await until(() => openai.calls.length > silent);
    early.socket.destroy();
    assert.equal(await openai.calls[silent]?.ended, "aborted");
    const [nothing = {}] = await settled(pool, id);
    assert.deepEqual(
      [nothing.outcome, nothing.output_tokens, Number(nothing.credits_micro) / 1e6],
      ["caller_gone", 0n, credits(input, 0, 0)],
    );
  });

  test("does not charge a unary caller who left, and ends the vendor's call", async ({
    harness: { openai, pool, service, auth },
  }) => {
    for (const stop_sequences of [[], ["never"]]) {
      openai.always({ text: ["some ", "text"], end: "hang", after: 1 });
      const before = openai.calls.length;
      const start = new Date();
      const leave = new AbortController();
      const answer = fetch(`${service.url}/v1/generate`, {
        method: "POST",
        headers: auth,
        body: JSON.stringify({ prompt: "leaves", stop_sequences }),
        signal: leave.signal,
      });
      await until(() => openai.calls.length > before);
      // The caller leaves when the first piece has arrived.
      await sleep(50);
      leave.abort();
      await assert.rejects(answer);
      assert.equal(await openai.calls[before]?.ended, "aborted");
      const [row = {}] = await settled(pool, start);
      assert.deepEqual([row.streamed, row.outcome, row.credits_micro], [false, "caller_gone", 0n]);
    }
  });

  test("charges a caller who stopped reading as if the caller had left, and does not read ahead", async ({
    harness,
    t,
  }) => {
    const { rows, whole } = await stalled(t, harness, {});
    const { count } = harness;
    const left = rows.filter(({ outcome }) => outcome === "caller_gone");
    assert.ok(left.length > 0);
    for (const row of rows) {
      const output = Number(row.output_tokens);
      assert.equal(Number(row.credits_micro) / 1e6, credits(count("stalls"), 0, output));
      assert.ok(row.outcome === "ok" ? output === whole : output < whole, `${row.outcome} after ${output} tokens`);
    }
  });

  test("does not charge an answer that was cut short while its caller did not read", async ({ harness, t }) => {
    const { rows } = await stalled(t, harness, { effort: "medium" });
    // An answer without any text that the socket took has timed out.
    const cut = rows.filter(({ outcome }) => outcome === "cut_short" || outcome === "timed_out");
    assert.ok(cut.length > 0);
    assert.ok(cut.every(({ credits_micro }) => credits_micro === 0n));
    assert.ok(rows.every(({ outcome }) => outcome !== "caller_gone"));
  });

  test("finishes a running answer in time when the service stops, or cuts it short, uncharged", async ({
    harness: { openai, databaseUrl, pool, env },
    t,
  }) => {
    const other = await startService(t, { databaseUrl, env: { ...env, CHORUS_DRAIN_MS: "5000" } });
    openai.always(({ body }) =>
      body.includes("quick")
        ? { text: ["qu", "ick"], betweenMs: 100 }
        : { text: ["part ", "rest"], after: 1, end: "hang" },
    );
    const [quick, slow] = await Promise.all(
      ["quick", "slow"].map((prompt) => other.post("/v1/generate:stream", { prompt })),
    );
    const reads = Promise.all([readEvents(quick ?? assert.fail()), readEvents(slow ?? assert.fail())]);
    assert.equal(await other.stop("SIGTERM"), 0);
    const [whole, part] = await reads;
    const [wholeEnd, partEnd] = [lastOf(whole), lastOf(part)];
    assert.deepEqual([textOf(whole), wholeEnd.data.finish_reason], ["quick", "stop"]);
    assert.deepEqual([textOf(part), partEnd.data.finish_reason], ["part ", "length"]);
    assert.equal((partEnd.data.usage as { credits: number }).credits, 0);
    assert.equal((await rowOf(pool, partEnd.data.id)).outcome, "cut_short");
    assert.equal((await rowOf(pool, wholeEnd.data.id)).outcome, "ok");
  });
});

/**
 * Asks for answers of 1 MB over a connection, which come one after the other, and reads none. About 36 of them fit
 * into the socket buffers: Linux lets that of a receiver grow to 32 MB.
 */
async function stalled(t: Lifetime, { openai, service, pool, auth, count }: Bench, more: object) {
  // Many characters for few tokens, which are counted in 30 ms. A long run of spaces takes twenty times as long.
  const text = Array.from({ length: 16 }, () => `${" ".repeat(64)} a`.repeat(992));
  openai.always({ text });
  const before = openai.calls.length;
  const start = new Date();
  const body = JSON.stringify({ prompt: "stalls", ...more });
  const request = head("POST", "/v1/generate:stream", { ...auth, "Content-Length": body.length }) + body;
  let rows: Awaited<ReturnType<typeof settled>> = [];
  const isCut = () => rows.some(({ outcome }) => outcome !== "ok");
  while (!isCut()) {
    const raw = await openRaw(t, service.url);
    raw.socket.pause();
    raw.send(request.repeat(48));
    // When the last bytes of an answer fill the buffers, the connection ends and no answer is cut: tries another.
    let changed = performance.now();
    await until(async () => {
      const known = rows.length;
      rows = await settled(pool, start);
      if (rows.length > known) changed = performance.now();
      return isCut() || performance.now() - changed > 5_000;
    });
  }
  // None of the vendor's calls is left open.
  await Promise.all(openai.calls.slice(before).map(({ ended }) => ended));
  return { rows, whole: count(text.join("")) };
}
