import assert from "node:assert/strict";
import { createTokenizer } from "../../src/engine/tokens/tokens.ts";
import type { Pool } from "../../src/store/pool.ts";
import { testDatabase } from "./database.ts";
import { test as base } from "./fixtures.ts";
import { fixture, type Lifetime } from "./lifetime.ts";
import { readEvents, type SseEvent, startService } from "./service.ts";
import { until } from "./until.ts";
import { startVendor } from "./vendors.ts";

/** Credits per million tokens, chosen so that prices are not round numbers. */
export const RATES = { input: 1.5, cached: 0.25, output: 7.3 };

type Row = Record<string, unknown>;

/** Starts a service with two scripted vendors and short timeouts, and returns functions to call and inspect it. */
async function startBench(t: Lifetime) {
  const openai = await startVendor("openai");
  const anthropic = await startVendor("anthropic");
  t.onTestFinished(async () => {
    await Promise.all([openai.close(), anthropic.close()]);
  });
  const { url: databaseUrl, pool } = await testDatabase(t);
  const env = {
    ...openai.env,
    ...anthropic.env,
    CHORUS_RATES: JSON.stringify(RATES),
    // Tests of deadlines use the effort `medium`.
    CHORUS_DEADLINES_MS: '{"low":60000,"medium":2000,"high":60000}',
    CHORUS_STREAM_MS: '{"headersMs":50,"keepAliveMs":20,"stallMs":1000}',
    LOG_LEVEL: "trace",
  };
  const service = await startService(t, { databaseUrl, env });
  const tokenizer = createTokenizer();

  return {
    openai,
    anthropic,
    databaseUrl,
    pool,
    env,
    service,
    tokenizer,
    count: (text: string) => tokenizer.count(text),
    auth: { "X-API-Key": service.apiKey, "Content-Type": "application/json" },
    /** Sends a request that must succeed, and returns the answer. */
    async ask(body: object) {
      const response = await service.post("/v1/generate", body);
      const text = await response.text();
      assert.equal(response.status, 200, text);
      return JSON.parse(text);
    },
    async stream(body: object) {
      const events = await readEvents(await service.post("/v1/generate:stream", body));
      return { events, text: textOf(events), last: lastOf(events) };
    },
  };
}

export type Bench = Awaited<ReturnType<typeof startBench>>;

/** `test` with a service and its vendors, shared by the tests of a file. The vendors are reset before each test. */
export const test = base
  .extend("benchOfFile", { scope: "file" }, fixture(startBench))
  .extend("harness", ({ benchOfFile }) => {
    benchOfFile.openai.reset();
    benchOfFile.anthropic.reset();
    return benchOfFile;
  });

/** Credits by RATES, rounded half up to a millionth. */
export function credits(input: number, cached: number, output: number): number {
  // In hundredths of a micro-credit, so that every figure is whole.
  const hundredths = (input - cached) * 150 + cached * 25 + output * 730;
  return Math.floor((hundredths + 50) / 100) / 1e6;
}

export function lastOf(events: SseEvent[]): SseEvent {
  return events.at(-1) ?? assert.fail("no events");
}

/** The concatenated text of the deltas of a stream. */
export function textOf(events: SseEvent[]): string {
  return events
    .filter(({ event }) => event === "delta")
    .map(({ data }) => data.text)
    .join("");
}

/** The row of a generation, by its identifier. */
export async function rowOf(pool: Pool, id: unknown): Promise<Row> {
  const [row] = await pool.query("select * from generations where id = $1", [id]);
  return row ?? assert.fail(`no row for ${id}`);
}

/**
 * Waits for the rows of requests whose callers do not wait for them.
 * @param which a request identifier, or the time from which on all requests count
 * @param expected number of rows to wait for
 */
export async function settled(pool: Pool, which: string | Date, expected = 1): Promise<Row[]> {
  const column = typeof which === "string" ? "request_id =" : "created_at >=";
  let rows: Row[] = [];
  await until(async () => {
    rows = await pool.query(`select * from generations where ${column} $1`, [which]);
    return rows.length >= expected;
  });
  return rows;
}
