import assert from "node:assert/strict";
import type { Query } from "../../src/store/pool.ts";
import { countsIn, MINUTE, textsOf, useOf } from "./cap-helpers.ts";
import { AT, type Cases } from "./case-helpers.ts";

const NOW = new Date(AT);
/** The start of the minute of AT, and of its day, week and month. */
const STARTS = ["2026-05-06T07:08Z", "2026-05-06T00:00Z", "2026-05-04T00:00Z", "2026-05-01T00:00Z"].map((start) =>
  Date.parse(start),
);

/** Usage of a key or another subject: `n` requests that were answered, and as many that failed. */
async function usage(
  query: Query,
  n: number,
  start: string,
  { name = "k", unit = "day", workspace = "w", table = "usage" } = {},
): Promise<void> {
  await query(`insert into ${table} values ($1, $2, $3, $4, $5, $5, $6, $7, 0, $8)`, [
    ...[workspace, unit, new Date(start), name, n, 3 * n, 5 * n, 7 * n],
  ]);
}

async function countersOf(query: Query, subject: string): Promise<string | undefined> {
  const columns = "workspace_id, subject, requests, input_tokens, output_tokens, spent_micro, at = $2";
  const sql = `select concat_ws(' ', ${columns}) from subject_periods_at('w', $1, $2)`;
  return (await textsOf(query, sql, [subject, NOW]))[0];
}

/** The functions that keep the counters of subjects, called alone. */
export const WINDOW_CASES: Cases = {
  async "keeps the counts of each window that has not begun since"(query) {
    const [minute = 0, day = 0, week = 0, month = 0] = STARTS;
    for (const [at, windows, counts] of [
      [minute, "{9,9,9,9,9}", "{11,22,33,44,55}"],
      [minute - 1, "{0,9,9,9,9}", "{10,22,33,44,55}"],
      [day, "{0,9,9,9,9}", "{10,22,33,44,55}"],
      [day - 1, "{0,0,9,9,9}", "{10,20,33,44,55}"],
      [week, "{0,0,9,9,9}", "{10,20,33,44,55}"],
      [week - 1, "{0,0,0,9,9}", "{10,20,30,44,55}"],
      [month, "{0,0,0,9,9}", "{10,20,30,44,55}"],
      [month - 1, "{0,0,0,0,9}", "{10,20,30,40,55}"],
    ] as const) {
      const sql = `select windows_since($1, $2, 9)::text || add_to_periods('{1,2,3,4,5}', $1, $2, '{10,20,30,40,50}')`;
      assert.deepEqual(await textsOf(query, `${sql}::text`, [new Date(at), NOW]), [windows + counts]);
    }
  },

  async "counts what a subject has used in each window since before its first cap"(query) {
    for (const [name, table] of [
      ["k", "usage"],
      ["team=x", "usage"],
      ["user:k", "usage_subjects"],
      ["tag:team=x", "usage_subjects"],
    ] as const) {
      const days = ["2026-05-06", "2026-05-04", "2026-05-01", "2026-04-30"];
      const factor = table === "usage" ? 1 : 2;
      for (const [i, day] of days.entries()) await usage(query, factor * 10 ** i, day, { name, table });
      const of = { name, table, unit: "minute" };
      await usage(query, factor * 3, "2026-05-06T07:08Z", of);
      await usage(query, factor * 1e6, "2026-05-06T07:07Z", of);
      await usage(query, factor * 2e6, "2026-05-06T07:00Z", { ...of, unit: "hour" });
      await usage(query, factor * 4e6, "2026-05-06", { name, table, workspace: "v" });
      await usage(query, factor * 8e6, "2026-05-06", { name: `other ${name}`, table });
    }
    const counts = (n: number) => `{${[3, 1, 11, 111, 1_111].map((count) => n * count)}}`;
    const ofKey = `${counts(2)} ${counts(3)} ${counts(5)} ${counts(7)}`;
    const ofOther = `${counts(4)} ${counts(6)} ${counts(10)} ${counts(14)}`;
    assert.equal(await countersOf(query, "key:k"), `w key:k ${ofKey} t`);
    for (const subject of ["user:k", "tag:team=x"])
      assert.equal(await countersOf(query, subject), `w ${subject} ${ofOther} t`);
    const none = "{0,0,0,0,0}";
    assert.equal(await countersOf(query, "user:new"), `w user:new ${none} ${none} ${none} ${none} t`);
  },

  async "reads the counters of a subject as of now, and changes nothing"(query) {
    const of = [1, 2, 3, 4, 5];
    const times = (n: number) => of.map((count) => n * count);
    await useOf(query, "user:k", { requests: of, input: times(2), output: times(3), spent: times(4) }, -MINUTE);
    await usage(query, 9, "2026-05-06", { name: "user:k", table: "usage_subjects" });
    const late = "{0,2,3,4,5} {0,4,6,8,10} {0,6,9,12,15} {0,8,12,16,20}";
    assert.equal(await countersOf(query, "user:k"), `w user:k ${late} t`);
    assert.deepEqual(await countsIn(query), [
      "w user:k {1,2,3,4,5} {2,4,6,8,10} {3,6,9,12,15} {4,8,12,16,20} 07:07:09",
    ]);
    assert.equal(await countersOf(query, "user:j"), `w user:j ${Array(4).fill("{0,0,0,0,0}").join(" ")} t`);
  },
};
