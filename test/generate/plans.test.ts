import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { describe } from "vitest";
import { Effort, GenerationService } from "../../gen/chorus/v1/generation_pb.js";
import { createTokenizer } from "../../src/engine/tokens/tokens.ts";
import { credits, rowOf, settled, textOf } from "../helpers/bench.ts";
import { test as base } from "../helpers/fixtures.ts";
import { fixture } from "../helpers/lifetime.ts";
import { type Behaviour, FAST_PRICE, NAMES, PRICE, startPanel } from "../helpers/panel.ts";
import { head, openRaw } from "../helpers/raw.ts";
import { transports } from "../helpers/rpc.ts";
import { readEvents } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import type { VendorKind } from "../helpers/vendors.ts";

/** Prose: drafts, an analysis, a writer. */
const PROSE = "Write a short story about a lighthouse keeper who finds a letter in a bottle.";
/** JSON: a vote. */
const JSON_PROMPT = 'The capital of France, as {"capital": …}.';

const SCHEMA = {
  type: "object",
  properties: { city: { type: "string" }, people: { type: "integer" } },
  required: ["city", "people"],
  additionalProperties: false,
};

const everyVendor = (behaviour: Behaviour): Record<VendorKind, Behaviour> => ({
  openai: behaviour,
  anthropic: behaviour,
  google: behaviour,
});

const silent = everyVendor({ draft: { end: "silent" } });

const test = base.extend(
  "shared",
  { scope: "file" },
  fixture(async (t) => {
    const { vendors, pool, service, start, script, calls, ask, stream } = await startPanel(t);
    const tokenizer = createTokenizer();
    const count = (text: string) => tokenizer.count(text);
    const headers = { "X-API-Key": service.apiKey, "Content-Type": "application/json" };

    /** Sends a request for a stream without reading its end. */
    async function open(body: object) {
      const raw = await openRaw(t, service.url);
      const text = JSON.stringify(body);
      raw.send(head("POST", "/v1/generate:stream", { ...headers, "Content-Length": Buffer.byteLength(text) }) + text);
      return raw;
    }

    const requestIdOf = (seen: string) => /X-Request-Id: (\S+)/i.exec(seen)?.[1] ?? assert.fail("no identifier");

    // REST

    assert.equal(Object.values(vendors).length, 3);
    return { count, headers, requestIdOf, vendors, pool, service, start, script, calls, ask, stream, open };
  }),
);

describe("plans of a service with three vendors", () => {
  test("opens a stream at the level high before any model has answered, over REST and RPC", async ({
    shared: { service, script, calls, open },
  }) => {
    script(silent);
    const raw = await open({ prompt: PROSE, effort: "high" });
    const seen = await raw.until(": \n\n");
    assert.match(seen, /^HTTP\/1\.1 200 /);
    assert.doesNotMatch(seen, /event:/);
    raw.socket.destroy();
    const leave = new AbortController();
    const client = createClient(GenerationService, transports(service.rpcUrl).gRPC);
    const request = { prompt: PROSE, effort: Effort.HIGH };
    const options = { headers: { "x-api-key": service.apiKey }, signal: leave.signal };
    await assert.rejects(async () => {
      for await (const { event } of client.streamGenerate(request, options)) {
        assert.equal(event.case, "open");
        leave.abort();
      }
    });
    assert.ok((await Promise.all(calls().map(({ ended }) => ended))).every((end) => end === "aborted"));
  });

  test("charges input and answer on every plan, for any effort and number of calls", async ({
    shared: { count, script, calls, ask, stream },
  }) => {
    for (const [prompt, shape, text] of [
      [PROSE, "text", "Once upon a time there was a keeper."],
      [JSON_PROMPT, "extract", '{"capital":"Paris"}'],
    ] as const) {
      for (const effort of ["low", "medium", "high"]) {
        script(everyVendor({ draft: { text }, judge: { text }, write: { text } }));
        const body = { prompt, effort, output_shape: shape };
        const answer = await ask(body);
        assert.equal(answer.answer, text, effort);
        assert.equal(answer.usage.credits, credits(count(prompt), answer.usage.cached_tokens, count(text)));
        const events = await stream(body);
        assert.equal(textOf(events), text, effort);
        assert.deepEqual(events.at(-1)?.data.usage, answer.usage);
        assert.ok(calls().length >= (effort === "high" ? 4 : 2), `${effort}: ${calls().length} calls`);
      }
    }
  });

  test("charges the input to a caller who leaves during the drafts, and ends all calls", async ({
    shared: { count, requestIdOf, pool, script, calls, open },
  }) => {
    script(silent);
    const raw = await open({ prompt: PROSE, effort: "high" });
    const requestId = requestIdOf(await raw.until(": \n\n"));
    await until(() => calls().length >= 3);
    raw.socket.destroy();
    assert.ok((await Promise.all(calls().map(({ ended }) => ended))).every((end) => end === "aborted"));
    const [row = {}] = await settled(pool, requestId);
    assert.deepEqual(
      [row.outcome, row.output_tokens, Number(row.credits_micro) / 1e6],
      ["caller_gone", 0n, credits(count(PROSE), 0, 0)],
    );
    // The tokens of aborted calls are estimated.
    assert.ok(Number(row.model_calls) >= 3 && Number(row.model_input_tokens) > 0 && Number(row.cost_usd) > 0);
  });

  test("charges a caller who leaves while the answer is written for the text so far", async ({
    shared: { count, requestIdOf, pool, script, calls, open },
  }) => {
    const words = Array.from({ length: 300 }, (_, i) => `word${i} `);
    script(
      everyVendor({ draft: { text: "A draft." }, analysis: { text: "{}" }, write: { text: words, betweenMs: 10 } }),
    );
    const raw = await open({ prompt: PROSE, effort: "high" });
    const requestId = requestIdOf(await raw.until("word2 "));
    raw.socket.destroy();
    await Promise.all(calls().map(({ ended }) => ended));
    const [row = {}] = await settled(pool, requestId);
    const output = Number(row.output_tokens);
    assert.equal(row.outcome, "caller_gone");
    assert.ok(output >= count("word0 word1 word2 ") && output < count(words.join("")), `${output} tokens`);
    assert.equal(Number(row.credits_micro) / 1e6, credits(count(PROSE), 0, output));
  });

  test("does not charge a unary caller who leaves during the drafts", async ({
    shared: { headers, pool, service, script, calls },
  }) => {
    script(silent);
    const leave = new AbortController();
    const began = new Date();
    const body = JSON.stringify({ prompt: PROSE, effort: "high" });
    const answer = fetch(`${service.url}/v1/generate`, { method: "POST", headers, body, signal: leave.signal });
    await until(() => calls().length >= 3);
    leave.abort();
    await assert.rejects(answer);
    assert.ok((await Promise.all(calls().map(({ ended }) => ended))).every((end) => end === "aborted"));
    const [row = {}] = await settled(pool, began);
    assert.deepEqual([row.outcome, row.credits_micro], ["caller_gone", 0n]);
  });

  test("fails without a charge when every vendor fails", async ({ shared: { pool, service, script } }) => {
    for (const effort of ["low", "medium", "high"]) {
      script(
        everyVendor({
          draft: { status: 400 },
          judge: { status: 400 },
          analysis: { status: 400 },
          write: { status: 400 },
        }),
      );
      const response = await service.post("/v1/generate", { prompt: PROSE, effort });
      const { request_id, code } = (await response.json()) as { request_id: string; code: string };
      assert.deepEqual([response.status, code], [502, "upstream_failed"], effort);
      const [row] = await settled(pool, request_id);
      assert.deepEqual([row?.outcome, row?.credits_micro], ["upstream_failed", 0n]);
      const streamed = await service.post("/v1/generate:stream", { prompt: PROSE, effort });
      assert.equal(streamed.status, effort === "high" ? 200 : 502);
      if (effort === "high") {
        const events = await readEvents(streamed);
        assert.deepEqual(
          events.map(({ event, data }) => [event, data.code]),
          [["error", "upstream_failed"]],
        );
      } else await streamed.text();
    }
  });

  test("gives levels, roles and figures without names in the trace, over REST and RPC", async ({
    shared: { service, script, ask, stream },
  }) => {
    const client = createClient(GenerationService, transports(service.rpcUrl).gRPC);
    script({
      ...everyVendor({ draft: { text: '{"capital":"Paris"}' }, judge: { text: '{"capital":"Paris"}' } }),
      google: { draft: { status: 400 } },
    });
    const body = { prompt: JSON_PROMPT, effort: "high", output_shape: "extract", intelligence_trace: true };
    const answer = await ask(body);
    assert.doesNotMatch(JSON.stringify(answer), NAMES);
    const trace = answer.intelligence_trace;
    assert.deepEqual(Object.keys(trace).sort(), [
      "agreement",
      "dropped_members",
      "escalations",
      "intelligence_level",
      "internal_input_tokens",
      "internal_output_tokens",
      "models",
      "reasons",
      "repairs",
      "searches",
      "steps",
    ]);
    assert.equal(trace.intelligence_level, "high");
    assert.ok(trace.reasons.length > 0);
    assert.equal(trace.agreement, 1);
    assert.ok(trace.models >= 2, `${trace.models} models`);
    assert.ok(trace.internal_input_tokens >= 20 && trace.internal_output_tokens >= 10);
    for (const step of trace.steps) {
      assert.ok(["fast", "strong", "service"].includes(step.role));
      assert.ok(step.started_ms >= 0 && step.duration_ms >= 0 && step.outcome !== undefined, JSON.stringify(step));
    }
    assert.deepEqual(
      trace.steps.map(({ id }: { id: number }) => id),
      trace.steps.map((_: unknown, i: number) => i + 1),
    );

    const events = await stream(body);
    assert.doesNotMatch(JSON.stringify(events), NAMES);
    const done = events.at(-1)?.data.intelligence_trace as { steps: { id: number }[] };
    const ends = new Map(
      events.filter(({ event }) => event === "trace").map(({ data }) => [(data.step as { id: number }).id, data.step]),
    );
    assert.deepEqual(
      [...ends.values()].sort((a, b) => (a as { id: number }).id - (b as { id: number }).id),
      done.steps,
    );

    const response = await client.generate(
      { prompt: JSON_PROMPT, effort: Effort.HIGH, outputShape: 3, intelligenceTrace: true },
      { headers: { "x-api-key": service.apiKey } },
    );
    assert.equal(response.intelligenceTrace?.intelligenceLevel, Effort.HIGH);
    assert.equal(response.intelligenceTrace?.agreement, 1);
    assert.ok((response.intelligenceTrace?.steps.length ?? 0) >= 3);
    const text = JSON.stringify(response, (_, value) => (typeof value === "bigint" ? `${value}` : value));
    assert.doesNotMatch(text, NAMES);
  });

  test("records the calls, tokens and cost of each answer", async ({ shared: { pool, script, calls, ask } }) => {
    const draft = { text: '{"capital":"Paris"}', usage: { input: 100, cached: 40, output: 10 } };
    const reported = 60 * PRICE.input + 40 * PRICE.cached + 10 * PRICE.output;
    // A call that is too late for the vote is cancelled. Its input is estimated, because vendors bill it.
    // The quick drafts take a moment, so that the silent vendor has received its call before the vote.
    const quick = { ...draft, headersMs: 500 };
    script({ openai: { draft: quick }, anthropic: { draft: quick }, google: { draft: { end: "silent" } } });
    const answer = await ask({
      prompt: JSON_PROMPT,
      effort: "high",
      output_shape: "extract",
      intelligence_trace: true,
    });
    assert.equal(answer.answer, draft.text);
    assert.equal(answer.intelligence_trace.dropped_members, 1);
    const row = await rowOf(pool, answer.id);
    assert.deepEqual([row.model_calls, calls().length, row.model_output_tokens], [3, 3, 20n]);
    const estimated = Number(row.model_input_tokens) - 200;
    assert.ok(estimated > 10, `${estimated} tokens`);
    assert.equal(Number(row.cost_usd), (2 * reported + estimated * PRICE.input) / 1e6);

    script({ openai: { draft } });
    const low = await rowOf(pool, (await ask({ prompt: JSON_PROMPT, effort: "low" })).id);
    assert.deepEqual(
      [low.model_calls, low.model_input_tokens, low.model_output_tokens, Number(low.cost_usd)],
      [1, 100n, 10n, (60 * FAST_PRICE.input + 40 * FAST_PRICE.cached + 10 * FAST_PRICE.output) / 1e6],
    );
  });

  test("gives a valid strict answer or a 502 for any drafts of a panel", async ({
    shared: { pool, service, script },
  }) => {
    const replies = [
      { text: '{"city":"Paris","people":2100000}' },
      { text: '{"city":"Lyon","people":2100000}' },
      { text: '{"city":"Paris","people":"many"}' },
      { text: '```json\n{"city": "Paris", "people": 2100000,}\n```' },
      { text: '{"city":"Par', finish: "length" },
      { text: "I cannot say." },
      { text: "[]" },
      { status: 400 },
    ];
    const outcomes = new Set<number>();
    for (const effort of ["medium", "high"]) {
      for (let i = 0; i < replies.length ** 2; i += 3) {
        const of = (n: number): Behaviour => {
          const reply = replies[n % replies.length] ?? {};
          return { draft: reply, judge: reply };
        };
        script({ openai: of(i), anthropic: of(Math.floor(i / replies.length)), google: of(5 * i + 2) });
        const response = await service.post("/v1/generate", {
          prompt: "Where, and how many?",
          effort,
          response_format: { type: "json_schema", schema: SCHEMA },
        });
        const body = (await response.json()) as Record<string, unknown>;
        outcomes.add(response.status);
        if (response.status === 200) {
          const { city, people, ...rest } = JSON.parse(`${body.answer}`);
          assert.deepEqual([typeof city, Number.isInteger(people), rest], ["string", true, {}]);
          assert.deepEqual(body.structured, { city, people });
        } else {
          assert.equal(response.status, 502, JSON.stringify(body));
          assert.ok(["structured_output_failed", "upstream_failed"].includes(`${body.code}`), JSON.stringify(body));
          const [row] = await settled(pool, `${body.request_id}`);
          assert.equal(row?.credits_micro, 0n);
        }
      }
    }
    assert.deepEqual([...outcomes].sort(), [200, 502]);
  });

  test("does not take a code for the one without its zeros", async ({ shared: { script, ask } }) => {
    const city = (code: string) => ({ text: `{"city":"${code}","people":1}` });
    script({ openai: { draft: city("1234") }, anthropic: { draft: city("01234") } });
    const response_format = { type: "json_schema", schema: SCHEMA };
    const prompt = "Extract the postal code of the city: 01234 Town, 1 person.";
    const { intelligence_trace: trace } = await ask({
      ...{ prompt, effort: "medium", response_format },
      intelligence_trace: true,
    });
    assert.deepEqual([trace.agreement, trace.escalations], [0.5, 1]);
  });

  test("answers with a valid draft where the models that are asked after it give no valid object", async ({
    shared: { count, pool, script, ask },
  }) => {
    const valid = '{"city":"Paris","people":2100000}';
    const draft = { text: valid, usage: { input: 40, cached: 12, output: 9 } };
    script({ openai: { draft: { text: "I cannot say." } }, anthropic: { draft }, google: { draft: { text: "[]" } } });
    const prompt = "How many people live in the capital of France?";
    const response_format = { type: "json_schema", schema: SCHEMA };
    const body = await ask({ prompt, effort: "medium", response_format, intelligence_trace: true });
    const { answer, usage, finish_reason, intelligence_trace: trace } = body;
    assert.deepEqual([answer, finish_reason, trace.steps.at(-1).kind], [valid, "stop", "fallback"]);
    assert.deepEqual([usage.output_tokens, usage.cached_tokens], [count(valid), 12]);
    assert.equal((await rowOf(pool, body.id)).model, "member-anthropic-fast");
  });

  test("calls the tools of a valid draft where the models that are asked after it give no valid calls", async ({
    shared: { vendors, pool, script, ask, stream },
  }) => {
    const city = (given: string) => ({ text: "I look.", calls: [{ name: "weather", arguments: given }] });
    const valid = { ...city('{"city":"Oslo"}'), usage: { input: 40, cached: 12, output: 9 } };
    const wrong = { draft: city('{"town":"Oslo"}') };
    script({ openai: wrong, anthropic: { draft: valid }, google: wrong });
    const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const request = { prompt: "The weather in Oslo?", effort: "medium", tools: [{ name: "weather", parameters }] };
    const { id, answer, tool_calls, usage, finish_reason } = await ask(request);
    assert.deepEqual([answer, finish_reason, usage.cached_tokens], ["I look.", "tool_calls", 12]);
    assert.deepEqual([tool_calls.length, tool_calls[0].arguments], [1, { city: "Oslo" }]);
    assert.equal((await rowOf(pool, id)).model, "member-anthropic-fast");
    const events = await stream(request);
    const called = events.find(({ event }) => event === "tool_call")?.data as Record<string, unknown>;
    assert.deepEqual([textOf(events), called.arguments], ["I look.", { city: "Oslo" }]);
    // Also where each model that is asked once more fails.
    for (const [kind, draft] of Object.entries({ openai: wrong.draft, anthropic: valid, google: wrong.draft }))
      vendors[kind as VendorKind].always(({ body }) =>
        body.includes("Call the tools again.") ? { status: 400 } : draft,
      );
    const { tool_calls: kept, code } = await ask(request);
    assert.deepEqual([code, kept?.[0].arguments], [undefined, { city: "Oslo" }]);
  });

  test("does not charge an answer that is cut short at the deadline", async ({
    shared: { pool, start, script, calls, stream },
    t,
  }) => {
    const hurried = await start({ CHORUS_DEADLINES_MS: '{"low":60000,"medium":60000,"high":3000}' });
    t.onTestFinished(async () => {
      await hurried.stop();
    });
    script(
      everyVendor({
        draft: { text: "A draft." },
        analysis: { text: "{}" },
        write: { text: ["Some ", "text ", "more"], after: 2, end: "hang" },
      }),
    );
    const events = await stream({ prompt: PROSE, effort: "high" }, hurried);
    assert.equal(textOf(events), "Some text ");
    const { data } = events.at(-1) ?? assert.fail();
    assert.deepEqual([data.finish_reason, (data.usage as { credits: number }).credits], ["length", 0]);
    const row = await rowOf(pool, data.id);
    assert.deepEqual([row.outcome, row.credits_micro], ["cut_short", 0n]);
    assert.ok((await Promise.all(calls().map(({ ended }) => ended))).length > 0);
  });

  test("answers within the deadline of each level while one vendor hangs", async ({
    shared: { vendors, start, script, ask, stream },
    t,
  }) => {
    const hurried = await start({ CHORUS_DEADLINES_MS: '{"low":2000,"medium":2000,"high":20000}' });
    t.onTestFinished(async () => {
      await hurried.stop();
    });
    const hangs = { end: "silent" } as const;
    script({ openai: { draft: hangs, analysis: hangs, write: hangs, judge: hangs } });
    assert.equal((await ask({ prompt: PROSE, effort: "low" }, hurried)).answer, "Hello.");
    assert.equal(textOf(await stream({ prompt: PROSE, effort: "low" }, hurried)), "Hello.");
    assert.equal((await ask({ prompt: PROSE, effort: "medium" }, hurried)).answer, "Hello.");

    // The strongest model was too late for a draft, so another one writes.
    script({
      openai: { draft: hangs, analysis: hangs, write: hangs, judge: hangs },
      anthropic: { analysis: { text: "{}" }, write: { text: "Written." } },
      google: { analysis: { text: "{}" }, write: { text: "Written." } },
    });
    const { answer, intelligence_trace } = await ask(
      { prompt: PROSE, effort: "high", intelligence_trace: true },
      hurried,
    );
    assert.equal(answer, "Written.");
    assert.equal(intelligence_trace.dropped_members, 1);
    assert.equal(vendors.openai.calls.length, 1, "it is not asked again");
  });
});
