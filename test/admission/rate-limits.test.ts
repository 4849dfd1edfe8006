import assert from "node:assert/strict";
import { test } from "vitest";
import { type RateLimit, rateLimits } from "../../src/admission/rate-limits.ts";

/** The headroom that a replica has beside what the database says. */
const more = (requests: number, input: number, output: number) => ({ requests, input, output });

const remaining = (limits: readonly RateLimit[]) => limits.map((one) => `${one.name} ${one.remaining}/${one.limit}`);

test("names the limits of a workspace with their figure, the shortest window of each figure first", () => {
  const names = ["month", "day", "minute"].flatMap((unit) =>
    ["output_tokens", "input_tokens", "requests"].map((figure) => `${figure}_per_${unit}`),
  );
  const limits = rateLimits(Object.fromEntries(names.map((name) => [name, [9, 1]])), [more(1, 2, 3)], 0, 1);
  const sums = { requests: 2, input_tokens: 3, output_tokens: 4 };
  const expected = Object.entries(sums).flatMap(([figure, sum]) =>
    ["minute", "day", "month"].map((unit) => `${figure}_per_${unit} ${sum}/9`),
  );
  assert.deepEqual(remaining(limits), expected);
  assert.deepEqual([...new Set(limits.map(({ figure }) => figure))], Object.keys(sums));
});

test("has no limits when the workspace has none", () => {
  assert.deepEqual(rateLimits({}, [more(1, 1, 1)], 0, 1), []);
});

test("adds what the replica has, except what has no limit, up to the limit and not below zero", () => {
  const left = (rest: number, ...of: ReturnType<typeof more>[]) =>
    remaining(rateLimits({ requests_per_day: [10, rest] }, of, 0, 1)).join();
  assert.equal(left(3), "requests_per_day 3/10");
  assert.equal(left(3, more(2, 7, 7), more(4, 7, 7)), "requests_per_day 9/10");
  assert.equal(left(3, more(2, 7, 7), more(Number.POSITIVE_INFINITY, 7, 7)), "requests_per_day 5/10");
  assert.equal(left(3, more(8, 7, 7)), "requests_per_day 10/10");
  // The database has counted more than a limit that was lowered allows.
  assert.equal(left(-5, more(2, 7, 7)), "requests_per_day 0/10");
});

for (const [at, unit, start, end] of [
  ["2026-05-06T07:08:00Z", "minute", "2026-05-06T07:08:00Z", "2026-05-06T07:09:00Z"],
  ["2026-05-06T00:00:00Z", "day", "2026-05-06T00:00:00Z", "2026-05-07T00:00:00Z"],
  ["2026-05-06T23:59:00Z", "day", "2026-05-06T00:00:00Z", "2026-05-07T00:00:00Z"],
  ["2028-02-29T23:59:00Z", "month", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"],
  ["2026-12-01T00:00:00Z", "month", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"],
] as const) {
  test(`states the length of the ${unit} of ${at} and the time to its end`, () => {
    const name = `output_tokens_per_${unit}`;
    // Of the minute, 20 s are left.
    const [limit] = rateLimits({ [name]: [5, 5] }, [], Date.parse(at), 20_000);
    assert.equal(limit?.windowSeconds, (Date.parse(end) - Date.parse(start)) / 1_000);
    assert.equal(limit?.resetMs, Date.parse(end) - Date.parse(at) - 40_000);
  });
}
