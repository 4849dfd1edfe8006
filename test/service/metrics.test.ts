import assert from "node:assert/strict";
import { test } from "node:test";
import { createKeys } from "../../src/admission/keys.ts";
import { testDatabase } from "../helpers/database.ts";
import { startService } from "../helpers/service.ts";

const FIGURES = ["requests", "failed_requests", "input_tokens", "output_tokens", "cached_tokens", "credits"];
const DAY = 86_400_000;

test("metrics", async (t) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const service = await startService(t, { databaseUrl });
  const [{ workspace_id, id: key } = {}] = await pool.query<{ workspace_id: string; id: string }>(
    "select id, workspace_id from api_keys",
  );
  const second = await createKeys(pool).create({ workspace: "default", scopes: ["generate"] });
  const metrics = async (query = "") => {
    const response = await service.get(`/v1/metrics${query}`);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text);
  };
  let made = 0;
  const record = (
    at: string,
    more: {
      key?: string | undefined;
      outcome?: string;
      streamed?: boolean;
      micro?: number;
      workspace?: string | undefined;
    } = {},
  ) =>
    pool.query(
      `insert into generations (workspace_id, created_at, id, request_id, key_id, streamed, shape, effort, level, input_tokens,
         output_tokens, cached_tokens, credits_micro, outcome, latency_ms)
       values ($1, $2, $3, 'req_x', $4, $5, 'text', 'auto', 'low', 10, 3, 2, $6, $7, 1)`,
      [
        more.workspace ?? workspace_id,
        at,
        `gen_${made++}`,
        more.key ?? key,
        more.streamed ?? false,
        more.micro ?? 2_020,
        more.outcome ?? "ok",
      ],
    );

  await t.test("by default cover the last 30 days by day, and are empty at first", async () => {
    const now = Date.now();
    const got = await metrics();
    assert.deepEqual(Object.keys(got), ["from", "to", "interval", "totals", "series"]);
    assert.ok(Math.abs(Date.parse(got.to) - now) < 10_000);
    assert.equal(Date.parse(got.from), Math.floor((Date.parse(got.to) - 30 * DAY) / DAY) * DAY);
    assert.equal(got.interval, "day");
    assert.deepEqual(Object.keys(got.totals), FIGURES);
    assert.ok(Object.values(got.totals).every((figure) => figure === 0));
    assert.deepEqual(got.series, []);
  });

  await t.test("show an answer as soon as it is there", async () => {
    const answer = await service.post("/v1/generate", { prompt: "What is 6 * 7?" });
    const { usage } = (await answer.json()) as { usage: Record<string, number> };
    const { totals, series } = await metrics();
    const figures = { requests: 1, failed_requests: 0, ...usage };
    assert.deepEqual(totals, figures);
    const { start, ...point } = series[0];
    assert.deepEqual(point, figures);
    assert.deepEqual(Object.keys(series[0]), ["start", ...FIGURES]);
    assert.equal(Date.parse(start) % DAY, 0);
    await pool.query("delete from generations");
  });

  await t.test("sum up by interval; failures count apart and cost nothing", async () => {
    await record("2026-01-31T23:59:30Z");
    await record("2026-01-31T23:59:59.999Z", { outcome: "cut_short", micro: 0 });
    await record("2026-02-01T00:00:00Z", { outcome: "caller_gone", streamed: true, micro: 1 });
    await record("2026-02-01T00:00:01Z", { outcome: "caller_gone", micro: 0 });
    await record("2026-02-01T01:00:00Z", { outcome: "upstream_failed", micro: 0, key: second.id });
    await record("2026-02-01T00:30:00Z", { workspace: "ws_other" });
    const query = "?from=2026-01-31T00:00:00Z&to=2026-02-02";
    const totals = {
      requests: 3,
      failed_requests: 2,
      input_tokens: 30,
      output_tokens: 9,
      cached_tokens: 6,
      credits: 0.002021,
    };
    const starts = async (interval: string) => {
      const got = await metrics(`${query}&interval=${interval}`);
      assert.equal(got.interval, interval);
      assert.deepEqual(got.totals, totals);
      return got.series.map(({ start, requests, failed_requests }: Record<string, unknown>) => [
        start,
        requests,
        failed_requests,
      ]);
    };
    assert.deepEqual(await starts("minute"), [
      ["2026-01-31T23:59:00.000Z", 2, 0],
      ["2026-02-01T00:00:00.000Z", 1, 1],
      ["2026-02-01T01:00:00.000Z", 0, 1],
    ]);
    assert.deepEqual(await starts("hour"), [
      ["2026-01-31T23:00:00.000Z", 2, 0],
      ["2026-02-01T00:00:00.000Z", 1, 1],
      ["2026-02-01T01:00:00.000Z", 0, 1],
    ]);
    assert.deepEqual(await starts("day"), [
      ["2026-01-31T00:00:00.000Z", 2, 0],
      ["2026-02-01T00:00:00.000Z", 1, 2],
    ]);
    assert.deepEqual(await starts("month"), [
      ["2026-01-01T00:00:00.000Z", 2, 0],
      ["2026-02-01T00:00:00.000Z", 1, 2],
    ]);
    const months = await metrics(`${query}&interval=month`);
    assert.equal(months.from, "2026-01-01T00:00:00.000Z");
    assert.equal(months.to, "2026-02-02T00:00:00.000Z");
  });

  await t.test("start inclusive, end exclusive, in any time zone", async () => {
    const count = async (query: string) => (await metrics(query)).totals.requests;
    assert.equal(await count("?from=2026-01-31T23:59:30Z&to=2026-01-31T23:59:59.999Z&interval=minute"), 1);
    assert.equal(await count("?from=2026-02-01&to=2026-02-01T00:00:00.001Z"), 1);
    assert.equal(await count("?from=2026-02-01T01:00:00%2B01:00&to=2026-02-01T01:00:01%2B01:00&interval=minute"), 1);
  });

  await t.test("split by key", async () => {
    const { series, totals } = await metrics("?from=2026-01-31&to=2026-02-02&group_by=key");
    assert.deepEqual(Object.keys(series[0]), ["start", "key_id", ...FIGURES]);
    assert.deepEqual(
      series
        .map(({ start, key_id, requests, failed_requests }: Record<string, unknown>) => [
          start,
          key_id,
          requests,
          failed_requests,
        ])
        .toSorted(),
      [
        ["2026-01-31T00:00:00.000Z", key, 2, 0],
        ["2026-02-01T00:00:00.000Z", key, 1, 1],
        ["2026-02-01T00:00:00.000Z", second.id, 0, 1],
      ].toSorted(),
    );
    assert.equal(totals.requests, 3);
    assert.deepEqual((await metrics("?from=2026-01-31&to=2026-02-02&group_by=none")).totals, totals);
  });

  await t.test("refuse what makes no sense, naming the parameter", async () => {
    for (const [query, field, message] of [
      ["?from=yesterday", "from", /such as "2026-01-31T00:00:00Z"/],
      ["?from=2026-02-30", "from", /date/],
      ["?to=1767225600", "to", /date/],
      ["?interval=week", "interval", /"minute", "hour", "day", "month"/],
      ["?group_by=model", "group_by", /"none", "key"/],
      ["?from=2026-02-01&to=2026-02-01", "from", /start before its end/],
      ["?from=2026-02-02&to=2026-02-01", "from", /start before its end/],
      ["?from=2099-01-01", "from", /start before its end/],
      ["?from=2026-01-01&to=2026-02-01&interval=minute", "interval", /5,?000 points/],
      ["?from=0001-01-01&interval=day", "interval", /5,?000 points/],
    ] as const) {
      const response = await service.get(`/v1/metrics${query}`);
      const text = await response.text();
      assert.equal(response.status, 422, `${query}: ${text}`);
      const failure = JSON.parse(text);
      assert.deepEqual([failure.code, failure.field], ["invalid_request", field], query);
      assert.match(failure.message, message);
    }
  });

  await t.test("without a vendor each answer says that the offline models made it", async () => {
    const response = await service.post("/v1/generate", { prompt: "What is 6 * 7?" });
    const { notices, answer } = (await response.json()) as { answer: string; notices: { code: string }[] };
    assert.match(answer, /42/);
    assert.deepEqual(
      notices.map(({ code }) => code),
      ["offline_models"],
    );
  });
});
