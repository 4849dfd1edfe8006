import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe } from "vitest";
import { keyOf, makeAccount } from "../../helpers/books.ts";
import { test as base, OFFLINE } from "../../helpers/fixtures.ts";

const FIGURES = ["requests", "failed_requests", "input_tokens", "output_tokens", "cached_tokens", "credits"];
const DAY = 86_400_000;

/** Each test has a new workspace without requests. */
const test = base.extend("env", { scope: "file" }, OFFLINE).extend("workspace", async ({ service, database }) => {
  const id = `ws_${randomUUID().slice(0, 8)}`;
  await makeAccount(database.pool, id, { secret: id, granted: 10n ** 12n });
  const headers = { "x-api-key": id };
  return {
    key: keyOf(id),
    ask: (prompt: string) => service.post("/v1/generate", { prompt }, headers),
    quotas: async () => JSON.parse(await (await service.get("/v1/quotas", headers)).text()),
    get: (query: string) => service.get(`/v1/metrics${query}`, headers),
    async metrics(query = "") {
      const response = await service.get(`/v1/metrics${query}`, headers);
      const text = await response.text();
      assert.equal(response.status, 200, text);
      return JSON.parse(text);
    },
  };
});

describe("metrics", () => {
  test("cover the last 30 days by day as a default, and start empty", async ({ workspace: { metrics } }) => {
    const now = Date.now();
    const got = await metrics();
    assert.deepEqual(Object.keys(got), ["from", "to", "interval", "totals", "series"]);
    // The end of the current minute.
    assert.ok(Date.parse(got.to) >= now && Date.parse(got.to) - now <= 70_000);
    assert.equal(Date.parse(got.from), Math.floor((Date.parse(got.to) - 30 * DAY) / DAY) * DAY);
    assert.equal(got.interval, "day");
    assert.deepEqual(Object.keys(got.totals), FIGURES);
    assert.ok(Object.values(got.totals).every((figure) => figure === 0));
    assert.deepEqual(got.series, []);
  });

  test("include an answer immediately", async ({ workspace: { ask, key, metrics } }) => {
    const answer = await ask("What is 6 * 7?");
    const { usage } = (await answer.json()) as { usage: Record<string, number> };
    const { totals, series } = await metrics();
    const figures = { requests: 1, failed_requests: 0, ...usage };
    assert.deepEqual(totals, figures);
    const { start, ...point } = series[0];
    assert.deepEqual(point, figures);
    assert.deepEqual(Object.keys(series[0]), ["start", ...FIGURES]);
    assert.equal(Date.parse(start) % DAY, 0);
    const byKey = await metrics("?group_by=key&interval=month");
    assert.deepEqual(Object.keys(byKey.series[0]), ["start", "key_id", ...FIGURES]);
    assert.equal(byKey.series[0].key_id, key);
  });

  test("include each answer of a busy workspace immediately, as quotas do", async ({
    workspace: { ask, metrics, quotas },
  }) => {
    // From the third answer on, charges are appended to the log and posted later.
    for (let answers = 1; answers <= 6; answers++) {
      assert.equal((await ask("What is 6 * 7?")).status, 200);
      const { totals } = await metrics();
      assert.equal(totals.requests, answers);
      const { credit, windows } = await quotas();
      assert.equal(Math.round((1e6 - credit.balance) * 1e6), Math.round(totals.credits * 1e6));
      assert.equal(windows.day.requests.used, answers);
    }
  });

  test("refuse invalid parameters by name", async ({ workspace: { get } }) => {
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
      const response = await get(query);
      const text = await response.text();
      assert.equal(response.status, 422, `${query}: ${text}`);
      const failure = JSON.parse(text);
      assert.deepEqual([failure.code, failure.field], ["invalid_request", field], query);
      assert.match(failure.message, message);
    }
  });

  test("adds a notice about offline models to an answer when no vendor is configured", async ({
    workspace: { ask },
  }) => {
    const response = await ask("What is 6 * 7?");
    const { notices, answer } = (await response.json()) as { answer: string; notices: { code: string }[] };
    assert.match(answer, /42/);
    assert.deepEqual(
      notices.map(({ code }) => code),
      ["offline_models"],
    );
  });
});
