import assert from "node:assert/strict";
import type { Query } from "../../src/store/pool.ts";
import { countsIn, DAY, openGrant, share, sharesIn, useOf } from "./cap-helpers.ts";
import { AT, type Cases, openAccount } from "./case-helpers.ts";

const NOW = new Date(AT);
const ALL = { credit: 100, held: 40, running: 10, runs: 4, requests: 20, input: 30, output: 50 };

/** An item in the log, without posts. */
async function log(query: Query, workspace: string, grant: number, seq: number, subjects: readonly object[]) {
  const values = [workspace, `r${grant}`, seq, JSON.stringify(subjects)];
  await query("insert into settlement_log values ($1, $2, $3, 0, 0, 0, 0, 0, 0, '[]', $4)", values);
}

const said = (subject: string, n: number, rest: object = {}) => ({
  ...{ subject, requests: n, input: 2 * n, credits: 3 * n, output: 4 * n },
  ...rest,
});

const post = (query: Query) => query("select post_settlements('{v,w}', $1)", [NOW]);

export const POST_CASES: Cases = {
  async "takes what items of the log have admitted from the headroom of the subjects of each grant"(query) {
    for (const [w, grant] of [
      ["v", 9],
      ["w", 7],
      ["w", 8],
      ["x", 6],
    ] as const) {
      await openGrant(query, w, grant);
      for (const subject of ["user:a", "user:b", "user:c"]) await share(query, subject, grant, ALL, w);
    }
    for (const w of ["v", "w", "x"]) await openAccount(query, w);
    await log(query, "w", 7, 3, [said("user:a", 2, { held: 33, running: 3 }), said("user:b", 100)]);
    await log(query, "w", 7, 4, [said("user:a", 1, { held: 22, running: 2 })]);
    await log(query, "w", 7, 5, [said("user:a", 3)]);
    await log(query, "v", 9, 5, [said("user:a", 5, { held: 44, running: 9 })]);
    await log(query, "x", 6, 5, [said("user:a", 7)]);
    await post(query);
    const rows = (await sharesIn(query)).map((row) => row.replace(" t 07:08:09", ""));
    const kept = (w: string, id: string, grant: number) => `${w} user:${id} ${grant} 100 40 10 4 20 30 50`;
    assert.deepEqual(rows, [
      ...["v user:a 9 85 44 10 9 15 20 30", kept("v", "b", 9), kept("v", "c", 9)],
      ...["w user:a 7 82 22 10 2 14 18 26", kept("w", "a", 8), "w user:b 7 0 40 10 4 0 0 0", kept("w", "b", 8)],
      ...[kept("w", "c", 7), kept("w", "c", 8)],
      ...[kept("x", "a", 6), kept("x", "b", 6), kept("x", "c", 6)],
    ]);
  },

  async "says after a report that headroom may be idle"(query) {
    await openAccount(query, "w");
    await openGrant(query, "w", 7);
    await share(query, "user:a", 7, { ...ALL, isIdle: false });
    await log(query, "w", 7, 2, [said("user:a", 1)]);
    await post(query);
    assert.deepEqual(await sharesIn(query), ["w user:a 7 97 40 10 4 19 28 46 t 07:08:09"]);
  },

  async "counts what items of the log have admitted in the windows since each grant has headroom"(query) {
    for (const w of ["v", "w"]) await openAccount(query, w);
    const times = { 7: 0, 8: -DAY, 9: -40 * DAY };
    for (const [grant, after] of Object.entries(times)) {
      await openGrant(query, "w", Number(grant));
      for (const subject of ["user:a", "user:new"]) await share(query, subject, Number(grant), ALL, "w", after);
      await log(query, "w", Number(grant), 2, [said("user:a", Number(grant)), said("user:new", 1)]);
    }
    const one = [1, 1, 1, 1, 1];
    const counts = { requests: one, input: one, output: one, spent: one };
    for (const subject of ["user:a", "user:b"]) await useOf(query, subject, counts, -DAY);
    await post(query);
    assert.deepEqual(await countsIn(query), [
      "w user:a {7,7,16,16,25} {14,14,31,31,49} {0,0,1,1,1} {0,0,1,1,1} 07:08:09",
      "w user:b {1,1,1,1,1} {1,1,1,1,1} {1,1,1,1,1} {1,1,1,1,1} 07:08:09",
    ]);
  },
};
