import assert from "node:assert/strict";
import { describe } from "vitest";
import type { Pool } from "../../src/store/pool.ts";
import { credits, rowOf, test } from "../helpers/bench.ts";
import { until } from "../helpers/until.ts";

const MEMBERS = ["id", "request_id", "answer", "structured_error", "usage", "latency_ms", "finish_reason", "notices"];

describe("one answer", () => {
  test("returns the members of the contract once the answer's row is in the store", async ({
    harness: { openai, pool, count, ask },
  }) => {
    openai.always({ text: "Paris is the capital.", usage: { input: 50, cached: 7, output: 9 } });
    const schema = '{"type":"object","properties":{}}';
    const system = "Be brief.";
    const messages = [
      { role: "system", content: "Speak English." },
      { role: "user", content: "What is the capital of France? ".repeat(5) },
      { role: "assistant", content: "" },
      { role: "user", content: "Well?" },
    ];
    const answer = await ask({ system, messages });
    assert.deepEqual(Object.keys(answer), MEMBERS);
    assert.match(answer.id, /^gen_[0-9a-f]{32}$/);
    assert.match(answer.request_id, /^req_[0-9a-f]{32}$/);
    const { id, request_id, latency_ms, ...rest } = answer;
    assert.ok(Number.isInteger(latency_ms) && latency_ms >= 0);
    const input = [system, ...messages.map(({ content }) => content)].reduce((sum, text) => sum + count(text), 0);
    const output = count("Paris is the capital.");
    const usage = { input_tokens: input, output_tokens: output, cached_tokens: 7, credits: credits(input, 7, output) };
    assert.deepEqual(rest, {
      answer: "Paris is the capital.",
      structured_error: null,
      usage,
      finish_reason: "stop",
      notices: [],
    });

    const [row] = await pool.query("select * from generations where id = $1", [id]);
    const { created_at, latency_ms: latency, key_id, workspace_id, fingerprint, ...columns } = row ?? {};
    assert.deepEqual(columns, {
      id,
      request_id,
      streamed: false,
      shape: "text",
      effort: "auto",
      level: "low",
      input_tokens: BigInt(input),
      output_tokens: BigInt(output),
      cached_tokens: 7n,
      credits_micro: BigInt(Math.round(usage.credits * 1e6)),
      outcome: "ok",
      finish_reason: "stop",
      model: "openai-fast",
      ability: "prose",
      end_user: null,
      tags: null,
      model_calls: 1,
      model_input_tokens: 50n,
      model_output_tokens: 9n,
      // The built-in catalogue has no prices.
      cost_usd: null,
    });
    assert.match(String(fingerprint), /^[0-9a-f]{8}$/);
    assert.ok(created_at instanceof Date && Math.abs(created_at.getTime() - Date.now()) < 10_000);
    const [key] = await pool.query("select id, workspace_id from api_keys");
    assert.deepEqual({ id: key_id, workspace_id }, key);

    // A schema counts once for any number of calls. Cached tokens never exceed those sent.
    openai.always({ text: "{}", usage: { input: 500, cached: 400, output: 9 } });
    const strict = await ask({
      prompt: "a",
      effort: "low",
      response_format: { type: "json_schema", schema: JSON.parse(schema) },
    });
    assert.equal(strict.usage.input_tokens, 1 + count(schema));
    assert.equal(strict.usage.cached_tokens, strict.usage.input_tokens);
    assert.equal(strict.usage.credits, credits(1 + count(schema), 1 + count(schema), count("{}")));
  });

  test("streams the same answer", async ({ harness: { openai, pool, count, stream } }) => {
    openai.always({ text: ["Pa", "ris ", "is."], usage: { input: 9, cached: 1, output: 3 } });
    const { events, text, last } = await stream({ prompt: "Tell me a story." });
    assert.ok(events.slice(0, -1).every(({ event }) => event === "delta"));
    assert.equal(last.event, "done");
    assert.equal(text, "Paris is.");
    assert.deepEqual(Object.keys(last.data), ["id", "request_id", "usage", "finish_reason", "notices"]);
    const usage = { input_tokens: count("Tell me a story."), output_tokens: count("Paris is."), cached_tokens: 1 };
    assert.deepEqual(last.data.usage, { ...usage, credits: credits(usage.input_tokens, 1, usage.output_tokens) });
    const row = await rowOf(pool, last.data.id);
    assert.deepEqual([row.streamed, row.outcome, row.finish_reason, row.model], [true, "ok", "stop", "openai-fast"]);
  });

  test("ends before a stop sequence for every split, and charges what was delivered", async ({
    harness: { openai, count, ask, stream },
  }) => {
    const text = "One, 漢字 two: STOP and three.";
    const expected = "One, 漢字 two: ";
    const cases: Promise<void>[] = [];
    openai.always(({ body }) => {
      const at = Number(/#(\d+)/.exec(body)?.[1]);
      return { text: [text.slice(0, at), text.slice(at)].filter((piece) => piece !== "") };
    });
    const check = (usage: unknown, finish: unknown, answer: unknown) => {
      assert.equal(answer, expected);
      assert.equal(finish, "stop");
      assert.equal((usage as { output_tokens: number }).output_tokens, count(expected));
    };
    for (let at = 0; at <= text.length; at++) {
      const body = { prompt: `#${at}`, stop_sequences: ["STOPPED", "STOP", " and"] };
      cases.push(ask(body).then(({ usage, finish_reason, answer }) => check(usage, finish_reason, answer)));
      cases.push(stream(body).then(({ last, text }) => check(last.data.usage, last.data.finish_reason, text)));
    }
    await Promise.all(cases);

    // Text that only looks like the start of a stop sequence is delivered.
    openai.always({ text: ["a ST", "O", "P", "x STO"] });
    for (const got of [
      (await ask({ prompt: "a", stop_sequences: ["STOP!"] })).answer,
      (await stream({ prompt: "a", stop_sequences: ["STOP!"] })).text,
    ]) {
      assert.equal(got, "a STOPx STO");
    }
    // An answer can be empty, also where the vendor has taken the stop sequence out.
    for (const text of ["STOP at once", ""]) {
      openai.always({ text });
      const empty = await ask({ prompt: "a", stop_sequences: ["STOP"] });
      assert.deepEqual([empty.answer, empty.usage.output_tokens, empty.finish_reason], ["", 0, "stop"]);
      const { text: streamed, last } = await stream({ prompt: "a", stop_sequences: ["STOP"] });
      assert.deepEqual([streamed, last.data.finish_reason], ["", "stop"]);
    }
  });

  test("ends the vendor's call when a stop sequence or max_tokens is reached", async ({
    harness: { openai, stream },
  }) => {
    for (const more of [{ stop_sequences: ["END"] }, { max_tokens: 2 }]) {
      openai.always({ text: ["one two three ", "four five six ", "END", "x"], end: "hang" });
      const before = openai.calls.length;
      const { last } = await stream({ prompt: "a", ...more });
      assert.equal(last.event, "done");
      assert.equal(await openai.calls[before]?.ended, "aborted");
    }
  });

  test("delivers at most max_tokens tokens by the service's own count", async ({
    harness: { openai, tokenizer, count, ask, stream },
  }) => {
    const text = "Internationalisation: 漢字仮名交じり文, naïve 😀😀 emoji and l33t-speak, twice over.";
    const total = count(text);
    for (const split of [1, 3, 1000]) {
      openai.always({ text: text.match(new RegExp(`.{1,${split}}`, "gsu")) ?? [] });
      for (const cap of [1, 2, 3, 7, total - 1, total, total + 1]) {
        const meter = tokenizer.meter(cap);
        const expected = meter.push(text) + meter.flush();
        const { text: got, last } = await stream({ prompt: "a", max_tokens: cap });
        assert.equal(got, expected, `${cap} tokens`);
        assert.equal(last.data.finish_reason, cap < total ? "length" : "stop");
        const { output_tokens, credits: paid } = last.data.usage as { output_tokens: number; credits: number };
        assert.equal(output_tokens, count(expected));
        assert.equal(paid, credits(1, 0, output_tokens));
        assert.deepEqual(last.data.notices, []);
        const unary = await ask({ prompt: "a", max_tokens: cap });
        assert.deepEqual(
          [unary.answer, unary.finish_reason, unary.usage.output_tokens],
          [expected, last.data.finish_reason, output_tokens],
        );
      }
    }
    // The vendor receives the cap.
    const sent = openai.calls.at(-1)?.json ?? {};
    assert.equal(sent.max_tokens ?? sent.max_completion_tokens, total + 1);
  });

  test("returns a trace only when asked for, with roles and without names of models", async ({
    harness: { openai, ask, stream },
  }) => {
    openai.always({ text: "one two" });
    for (const effort of ["low", "auto"]) {
      const answer = await ask({ prompt: "a", effort, intelligence_trace: true });
      assert.deepEqual(Object.keys(answer), [...MEMBERS, "intelligence_trace"]);
      const { steps, reasons, ...rest } = answer.intelligence_trace;
      assert.deepEqual(rest, {
        intelligence_level: "low",
        models: 1,
        escalations: 0,
        dropped_members: 0,
        repairs: 0,
        searches: 0,
        internal_input_tokens: 10,
        internal_output_tokens: 5,
      });
      assert.ok(reasons.every((reason: unknown) => typeof reason === "string"));
      assert.deepEqual(
        steps.map(({ started_ms: _, duration_ms: __, ...step }: Record<string, unknown>) => step),
        [{ id: 1, kind: "answer", role: "fast", outcome: "ok" }],
      );
      assert.doesNotMatch(JSON.stringify(answer), /openai|anthropic|gpt|claude/i);
    }
    const { events, last } = await stream({ prompt: "a", intelligence_trace: true });
    assert.deepEqual(
      events.map(({ event }) => event),
      ["trace", "delta", "trace", "done"],
    );
    assert.deepEqual(Object.keys(events[0]?.data.step ?? {}), ["id", "kind", "role", "started_ms"]);
    assert.deepEqual(Object.keys(events[2]?.data.step ?? {}), [
      "id",
      "kind",
      "role",
      "started_ms",
      "duration_ms",
      "outcome",
    ]);
    assert.deepEqual((last.data.intelligence_trace as { steps: unknown[] }).steps, [events[2]?.data.step]);
    const untraced = await stream({ prompt: "a", intelligence_trace: false });
    assert.ok(untraced.events.every(({ event, data }) => event !== "trace" && !("intelligence_trace" in data)));
  });

  test("lists the members of the request that it ignored", async ({ harness: { ask, stream } }) => {
    const body = {
      prompt: "a",
      model: "gpt",
      messages: null,
      web_search: true,
      attachments: [{ name: "n", media_type: "text/plain", data: "aGk=", size: 2 }],
    };
    const text = JSON.stringify(body).replace('"model"', '"__proto__":{},"model"');
    for (const { notices } of [
      await ask(JSON.parse(text)),
      (await stream(JSON.parse(text))).last.data as { notices: Record<string, unknown>[] },
    ]) {
      assert.deepEqual(
        notices.map(({ code, field }: Record<string, unknown>) => [code, field]),
        [
          ["unknown_field", "__proto__"],
          ["unknown_field", "model"],
          ["unknown_field", "attachments[0].size"],
          ["web_search_unavailable", "web_search"],
        ],
      );
      for (const notice of notices) {
        assert.deepEqual(Object.keys(notice), ["code", "message", "field"]);
        assert.equal(typeof notice.message, "string");
      }
    }
    const many = await ask({ prompt: "a", ...Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`x${i}`, 0])) });
    assert.equal(many.notices.length, 101);
    assert.match(many.notices.at(-1).message, /^50 more/);
    assert.deepEqual((await ask({ prompt: "a", web_search: false })).notices, []);
  });

  test("returns the object in prompt-defined JSON mode, or why there is none", async ({
    harness: { openai, service, ask, stream },
  }) => {
    for (const output_shape of ["extract", "summary", "recommendation", "tradeoffs", "decision"]) {
      openai.always({ text: 'Here:\n```json\n{"2": 1.0, "1": 123456789012345678901234567890, "__proto__": {}}\n```' });
      const response = await service.post("/v1/generate", { prompt: "a", output_shape });
      const text = await response.text();
      assert.match(
        text,
        /"structured":\{"2":1\.0,"1":123456789012345678901234567890,"__proto__":\{\}\},"structured_error":null,"usage"/,
      );
      assert.deepEqual(Object.keys(JSON.parse(text)), [...MEMBERS.slice(0, 3), "structured", ...MEMBERS.slice(3)]);
      assert.match(JSON.parse(text).answer, /^Here:\n```json/);
    }
    for (const [answer, reason] of [
      ["[1, 2]", /list/],
      ["no JSON here", /no JSON/i],
      ['{"a": ', /cut off|not valid/],
      ["42", /not an object/],
    ] as const) {
      openai.always({ text: answer });
      const got = await ask({ prompt: "a", output_shape: "extract" });
      assert.deepEqual([got.answer, got.structured], [answer, null]);
      assert.match(got.structured_error, reason);
      const { last, text } = await stream({ prompt: "a", output_shape: "extract" });
      assert.deepEqual([text, last.data.structured], [answer, null]);
      assert.match(`${last.data.structured_error}`, reason);
    }
    openai.always({ text: ['{"a"', ': "b"}'] });
    const { last } = await stream({ prompt: "a", output_shape: "extract" });
    assert.deepEqual(last.data.structured, { a: "b" });
    assert.equal(last.data.structured_error, null);
  });

  test("leaves no text of prompt, answer, key or vendor in the store or the log", async ({
    harness: { openai, anthropic, pool, service, ask, stream },
  }) => {
    const marks = [
      "mark-prompt",
      "mark-system",
      "mark-answer",
      "mark-vendor",
      "mark-stop",
      "mark-field",
      "mark-schema",
      "mark-file",
      "mark-key",
      service.apiKey,
    ];
    openai.always({ text: "mark-answer" });
    const schema = { type: "object", properties: { a: { type: "string", description: "mark-schema" } } };
    const body = { prompt: "mark-prompt", system: "mark-system", stop_sequences: ["mark-stop"], "mark-field": 1 };
    await ask(body);
    await stream(body);
    await service
      .post("/v1/generate", { prompt: "mark-prompt", effort: "low", response_format: { type: "json_schema", schema } })
      .then((r) => r.text());
    await service.post("/v1/generate", '{"prompt":"mark-prompt\n   at mark-prompt').then((r) => r.text());
    await service.post("/v1/generate", { prompt: "mark-prompt", temperature: "mark-field" }).then((r) => r.text());
    await service.post("/v1/generate", { prompt: "a" }, { "x-api-key": "mark-key" }).then((r) => r.text());
    await service
      .post("/v1/generate", {
        prompt: "a",
        attachments: [{ name: "mark-file", media_type: "text/plain", data: btoa("mark-file") }],
      })
      .then((r) => r.text());
    const error = {
      message: "mark-vendor\n    at mark-vendor (mark-vendor:1:1)",
      type: "mark-vendor",
      code: "mark-vendor",
    };
    for (const [path, broken] of [
      ["/v1/generate", { status: 400, error }],
      ["/v1/generate:stream", { status: 400, error }],
      ["/v1/generate", { raw: "mark-vendor\n    at mark-vendor" }],
      ["/v1/generate:stream", { text: "mark-answer", end: "garbage" }],
    ] as const) {
      openai.always(broken);
      anthropic.always(broken);
      const response = await service.post(path, { prompt: "mark-prompt", effort: "high" });
      assert.doesNotMatch(await response.text(), /mark-vendor/);
    }
    const dump = await dumpAll(pool);
    assert.match(dump, /upstream_failed/);
    await until(() => service.output().includes('"failure":"upstream_failed"'));
    for (const mark of marks) {
      assert.ok(!dump.includes(mark), `${mark} is in the store`);
      assert.ok(
        !service.output().includes(mark),
        `${mark} is in the log: ${service
          .output()
          .split("\n")
          .find((line) => line.includes(mark))}`,
      );
    }
    assert.doesNotMatch(service.output(), /MaxListeners|Warning|unhandled/i);
  });
});

async function dumpAll(pool: Pool): Promise<string> {
  const tables = await pool.query<{ name: string }>(
    "select format('%I.%I', schemaname, tablename) as name from pg_tables " +
      "where schemaname not in ('pg_catalog', 'information_schema')",
  );
  let dump = "";
  for (const { name } of tables) {
    for (const { row } of await pool.query<{ row: string }>(`select t::text as row from ${name} t`)) dump += `${row}\n`;
  }
  return dump;
}
