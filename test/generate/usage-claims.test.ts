import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createTokenizer } from "../../src/engine/tokens/tokens.ts";
import type { Pool } from "../../src/store/pool.ts";
import { credits, RATES, rowOf } from "../helpers/bench.ts";
import { testDatabase } from "../helpers/database.ts";
import { startOwnService, type TestService } from "../helpers/service.ts";
import { type Reply, type ScriptedVendor, startVendor, type VendorCall, type WireKind } from "../helpers/vendors.ts";
import { callers, fileLifetime } from "./callers.ts";

const tokenizer = createTokenizer();

const PROMPT = "one two three four five six seven eight nine ten";
const INPUT = tokenizer.count(PROMPT);
const TEXT = "Hello there.";

/** Token counts of a vendor as JSON text, without the absent ones. Input includes cached tokens. */
interface Claims {
  input?: string;
  cached?: string;
  output?: string;
  thinking?: string;
}

const all = (text: string): Claims => ({ input: text, cached: text, output: text, thinking: text });

/** The figures of a vendor, or the JSON text in place of its whole usage; and the cached tokens that are charged. */
const CASES: [name: string, claims: Claims | string, cached: number][] = [
  ["correct figures", { input: "30", cached: "3", output: "4", thinking: "1" }, 3],
  ["negative cached tokens", { input: "30", cached: "-60", output: "4", thinking: "0" }, 0],
  ["fractional cached tokens", { input: "30", cached: "3.9", output: "4", thinking: "0.5" }, 3],
  ["more cached tokens than input", { input: "30", cached: "1e300", output: "4", thinking: "9" }, INPUT],
  ["missing cached tokens", { input: "30", output: "4" }, 0],
  ["negative figures", all("-5"), 0],
  ["hugely negative figures", all("-1e300"), 0],
  ["fractional figures", all("2.7"), 2],
  ["null in place of figures", all("null"), 0],
  ["no figures", {}, 0],
  ["extremely large figures", all("1e300"), INPUT],
  ["figures beyond the range of a double", all("1e999"), INPUT],
  ["texts in place of figures", all('"7"'), 0],
  ["objects in place of figures", all('{"a":[1]}'), 0],
  ["null in place of the usage", "null", 0],
  ["a list in place of the usage", "[-1]", 0],
  ["a negative number in place of the usage", "-1", 0],
];

/** JSON text of an object with the members that have a value. */
function objectOf(members: Record<string, string | undefined>): string {
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return `{${given.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`;
}

const frames = (...data: string[]) => data.map((each) => `data: ${each}\n\n`).join("");
const text = JSON.stringify(TEXT);

/** The body of an answer with the claims in each format, whole and streamed. */
const BODIES: Record<WireKind, (claims: Claims | string, streamed: boolean) => string> = {
  openai(claims, streamed) {
    const usage =
      typeof claims === "string"
        ? claims
        : objectOf({
            prompt_tokens: claims.input,
            completion_tokens: claims.output,
            prompt_tokens_details: objectOf({ cached_tokens: claims.cached }),
            completion_tokens_details: objectOf({ reasoning_tokens: claims.thinking }),
          });
    return streamed
      ? frames(
          `{"choices":[{"index":0,"delta":{"content":${text}}}]}`,
          '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
          `{"choices":[],"usage":${usage}}`,
          "[DONE]",
        )
      : `{"choices":[{"message":{"role":"assistant","content":${text}},"finish_reason":"stop"}],"usage":${usage}}`;
  },
  responses(claims, streamed) {
    const usage =
      typeof claims === "string"
        ? claims
        : objectOf({
            input_tokens: claims.input,
            output_tokens: claims.output,
            input_tokens_details: objectOf({ cached_tokens: claims.cached }),
            output_tokens_details: objectOf({ reasoning_tokens: claims.thinking }),
          });
    const message = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":${text}}]}`;
    const response = `{"status":"completed","output":[${message}],"usage":${usage}}`;
    return streamed
      ? frames(
          `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":${text}}`,
          `{"type":"response.completed","response":${response}}`,
        )
      : response;
  },
  anthropic(claims, streamed) {
    const { input, cached, output, thinking } = typeof claims === "string" ? {} : claims;
    const usage = objectOf({
      // This format counts cached tokens apart from the input.
      input_tokens: input,
      cache_read_input_tokens: cached,
      output_tokens: output,
      output_tokens_details: objectOf({ thinking_tokens: thinking }),
    });
    const given = typeof claims === "string" ? claims : usage;
    return streamed
      ? frames(
          `{"type":"message_start","message":{"role":"assistant","content":[],"usage":${given}}}`,
          '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
          `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":${text}}}`,
          `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":${given}}`,
          '{"type":"message_stop"}',
        )
      : `{"type":"message","content":[{"type":"text","text":${text}}],"stop_reason":"end_turn","usage":${given}}`;
  },
  google(claims, streamed) {
    const usage =
      typeof claims === "string"
        ? claims
        : objectOf({
            promptTokenCount: claims.input,
            cachedContentTokenCount: claims.cached,
            candidatesTokenCount: claims.output,
            thoughtsTokenCount: claims.thinking,
          });
    const candidate = `{"content":{"parts":[{"text":${text}}]},"finishReason":"STOP"}`;
    const answer = `{"candidates":[${candidate}],"usageMetadata":${usage}}`;
    return streamed ? frames(answer) : answer;
  },
};

for (const kind of ["openai", "responses", "anthropic", "google"] as const) {
  describe(`the charge when ${kind} reports`, () => {
    const lifetime = fileLifetime();
    let vendor: ScriptedVendor;
    let service: TestService;
    let pool: Pool;
    beforeAll(async () => {
      vendor = await startVendor(kind);
      lifetime.onTestFinished(() => vendor.close());
      const database = await testDatabase(lifetime);
      pool = database.pool;
      const env = { ...vendor.env, CHORUS_RATES: JSON.stringify(RATES), LOG_LEVEL: "info" };
      service = await startOwnService(lifetime, { databaseUrl: database.url, env });
    });
    afterAll(() => lifetime.end());

    test.for(CASES)("%s", async ([, claims, cached]) => {
      vendor.always(({ streamed }: VendorCall): Reply => ({ raw: BODIES[kind](claims, streamed) }));
      const usage = { input: INPUT, output: tokenizer.count(TEXT), cached };
      const price = credits(usage.input, usage.cached, usage.output);
      for (const [name, ask] of Object.entries(callers(service))) {
        const { text, end, failure } = await ask({ prompt: PROMPT, intelligence_trace: true });
        assert.equal(failure, undefined, name);
        assert.equal(text, TEXT, name);
        assert.deepEqual(end?.usage, { ...usage, credits: price }, name);
        const row = await rowOf(pool, end?.id);
        assert.deepEqual(
          [row.outcome, Number(row.credits_micro), Number(row.cached_tokens), row.model_calls],
          ["ok", Math.round(price * 1e6), cached, 1],
          name,
        );
        assert.ok(Number(row.model_input_tokens) >= 0 && Number(row.model_output_tokens) >= 0, name);
        assert.ok(Number(row.cost_usd ?? 0) >= 0, name);
      }
      await assertHealthy(service);
    });
  });
}

/** Checks that the process still runs, logged no errors and serves valid metrics. */
async function assertHealthy(service: TestService): Promise<void> {
  assert.equal(service.process.exitCode, null, service.output());
  assert.doesNotMatch(service.output(), /"level":"(?:error|fatal)"|unhandled|uncaught/i);
  const metrics = await (await fetch(`${service.rpcUrl}/metrics`)).text();
  assert.match(metrics, /chorus_model_tokens_total\{/);
  assert.doesNotMatch(metrics, /^chorus_\S* (?:-|NaN|\+?Inf)/m);
}
