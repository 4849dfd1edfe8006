import assert from "node:assert/strict";
import type { Query } from "../../src/store/pool.ts";
import { cap, countsIn, DAY, MINUTE, share, sharesIn, useOf } from "./cap-helpers.ts";
import { AT, type Cases } from "./case-helpers.ts";

const NOW = new Date(AT);
const report = (query: Query, reports: readonly object[]) =>
  query("select report_subjects('w', 7, $1, $2)", [JSON.stringify(reports), NOW]);

const said = (subject: string, rest: object = {}) => ({
  ...{ subject, requests: 0, input: 0, credits: 0, output: 0 },
  ...rest,
});

const ALL = { credit: 100, held: 40, running: 10, runs: 4, requests: 20, input: 30, output: 50 };
const HELD = { held: 8, running: 2, returns: true };
const DONE = { held: 0, running: 0, returns: true };

const REPORT_CASES: Cases = {
  async "takes what a replica has admitted from its headroom of each subject, and nothing from others"(query) {
    for (const subject of ["user:a", "user:b", "user:c", "user:d"]) await share(query, subject, 7, ALL, "w", -MINUTE);
    await share(query, "user:a", 8, ALL);
    await share(query, "user:a", 7, ALL, "v");
    await report(query, [
      said("user:a", { requests: 3, input: 5, credits: 7, output: 11, held: 41, running: 6 }),
      said("user:b", { requests: 21, input: 31, credits: 101, output: 51 }),
      said("user:c", { requests: 1, input: 1, credits: 1, output: 1, ...HELD }),
      said("user:d", DONE),
      said("user:none", { requests: 1, input: 1, credits: 1, held: 8, running: 2 }),
    ]);
    assert.deepEqual(await sharesIn(query), [
      "v user:a 7 100 40 10 4 20 30 50 t 07:08:09",
      "w user:a 7 93 41 10 6 17 25 39 t 07:07:09",
      "w user:a 8 100 40 10 4 20 30 50 t 07:08:09",
      "w user:b 7 0 40 10 4 0 0 0 t 07:07:09",
      "w user:c 7 8 8 2 2 0 0 0 f 07:07:09",
    ]);
  },

  async "keeps of a subject that had no headroom what its requests hold or that they run"(query) {
    await report(query, [
      said("user:a", HELD),
      said("user:b", { ...DONE, held: 3 }),
      said("user:c", { ...DONE, running: 4 }),
      said("user:d", DONE),
      said("user:e", { ...HELD, returns: false }),
    ]);
    const kept = ["user:a 7 8 8 2 2", "user:b 7 3 3 0 0", "user:c 7 0 0 4 4"];
    const rows = kept.map((row) => `w ${row} 0 0 0 f 07:08:09`);
    assert.deepEqual(await sharesIn(query), rows);
    await share(query, "user:b", 8, ALL);
    await share(query, "user:b", 7, ALL, "v");
    await report(query, [said("user:a", { ...HELD, returns: null }), said("user:b", DONE), said("user:c", HELD)]);
    assert.deepEqual(await sharesIn(query), [
      "v user:b 7 100 40 10 4 20 30 50 t 07:08:09",
      "w user:a 7 8 8 2 2 0 0 0 t 07:08:09",
      "w user:b 8 100 40 10 4 20 30 50 t 07:08:09",
      "w user:c 7 8 8 2 2 0 0 0 f 07:08:09",
    ]);
    await report(query, [said("user:a", { ...DONE, running: 1 }), said("user:c", { ...DONE, held: 1 })]);
    assert.deepEqual((await sharesIn(query)).slice(1), [
      "w user:a 7 0 0 1 1 0 0 0 f 07:08:09",
      "w user:b 8 100 40 10 4 20 30 50 t 07:08:09",
      "w user:c 7 1 1 0 0 0 0 0 f 07:08:09",
    ]);
    await report(query, [said("user:a", { ...DONE, returns: false })]);
    assert.match((await sharesIn(query))[1] ?? "", /^w user:a 7 0 0 1 0 0 0 0 t/);
  },

  async "counts what a replica has admitted in the windows since it has headroom, where counters exist"(query) {
    const day = AT - (AT % DAY);
    const counts = {
      requests: [1, 1, 1, 1, 1],
      input: [2, 2, 2, 2, 2],
      output: [3, 3, 3, 3, 3],
      spent: [4, 4, 4, 4, 4],
    };
    for (const subject of ["user:a", "user:b", "user:c", "user:d"]) await useOf(query, subject, counts, -MINUTE);
    await share(query, "user:a", 7, ALL);
    await share(query, "user:b", 7, ALL, "w", day - 1 - AT);
    await share(query, "user:c", 8, ALL);
    await share(query, "user:d", 7, ALL);
    await share(query, "user:e", 7, ALL);
    const used = { requests: 5, input: 6, held: 0, running: 0 };
    const reports = ["user:a", "user:b", "user:c", "user:e"].map((subject) => said(subject, used));
    await report(query, [...reports, said("user:d", { input: 9 })]);
    assert.deepEqual(await countsIn(query), [
      "w user:a {5,6,6,6,6} {6,8,8,8,8} {0,3,3,3,3} {0,4,4,4,4} 07:08:09",
      "w user:b {0,1,6,6,6} {0,2,8,8,8} {0,3,3,3,3} {0,4,4,4,4} 07:08:09",
      "w user:c {1,1,1,1,1} {2,2,2,2,2} {3,3,3,3,3} {4,4,4,4,4} 07:07:09",
      "w user:d {1,1,1,1,1} {2,2,2,2,2} {3,3,3,3,3} {4,4,4,4,4} 07:07:09",
    ]);
  },
};

interface Granted {
  subject: string;
  extra: Record<"credit" | "running" | "requests" | "input" | "output", number | null>;
  ms_left: number;
}

/** Reserves headroom for the grant 7. @returns for each subject: credit, running, requests, input, output, ms left */
async function granted(query: Query, wants: readonly object[], live = 1): Promise<string[]> {
  const [row] = await query<{ granted: Granted[] }>(
    "select grant_subjects(periods_at('w', $1), 7, $2, $3) as granted",
    [NOW, live, JSON.stringify(wants)],
  );
  const textOf = ({ subject, extra: { credit, running, requests, input, output }, ms_left }: Granted) =>
    [subject, credit, running, requests, input, output, ms_left].map((part) => part ?? "-").join(" ");
  return (row?.granted ?? []).map(textOf).sort();
}

const want = (subject: string, n: number, rest: object = {}) => ({
  ...{ subject, n, size_credit: 10, size_input: 2, size_output: 3 },
  ...rest,
});

const GRANT_CASES: Cases = {
  async "reserves for each subject half of what the tightest of its caps leaves, divided by the replicas"(query) {
    const figures = { credits: 400, concurrent_requests: 80, requests: 90, input_tokens: 200, output_tokens: 300 };
    for (const [figure, amount] of Object.entries(figures)) {
      await cap(query, `user:${figure}`, figure, figure === "concurrent_requests" ? "" : "day", amount);
      await cap(query, "user:all", figure, figure === "concurrent_requests" ? "" : "day", amount);
    }
    const subjects = [...Object.keys(figures).map((figure) => `user:${figure}`), "user:all", "user:none"];
    const wants = subjects.map((subject) => want(subject, 1_000));
    assert.deepEqual(await granted(query, wants), [
      ...[
        "user:all 200 20 20 40 60 51000",
        "user:concurrent_requests - 40 - - - 51000",
        "user:credits 200 - - - - 51000",
      ],
      ...["user:input_tokens - - - 100 - 51000", "user:none - - - - - 51000", "user:output_tokens - - - - 150 51000"],
      "user:requests - - 45 - - 51000",
    ]);
    const rows = (await sharesIn(query)).map((row) => row.replace("w user:", ""));
    assert.deepEqual(rows, [
      ...["all 7 200 0 20 0 20 40 60 t 07:08:09", "concurrent_requests 7 0 0 40 0 0 0 0 t 07:08:09"],
      ...["credits 7 200 0 0 0 0 0 0 t 07:08:09", "input_tokens 7 0 0 0 0 0 100 0 t 07:08:09"],
      ...["output_tokens 7 0 0 0 0 0 0 150 t 07:08:09", "requests 7 0 0 0 0 45 0 0 t 07:08:09"],
    ]);
    assert.equal((await countsIn(query)).length, 6);
    await query("delete from subject_grants");
    assert.deepEqual(await granted(query, [want("user:requests", 1_000)], 3), ["user:requests - - 15 - - 51000"]);
    await query("delete from subject_grants");
    // Requests that need nothing of it.
    assert.deepEqual(await granted(query, [want("user:credits", 9, { size_credit: 0 })]), [
      "user:credits 0 - - - - 51000",
    ]);
    await useOf(query, "user:credits", { spent: [0, 401, 0, 0, 0] });
    assert.deepEqual(await granted(query, [want("user:credits", 9, { size_credit: 0 })]), []);
  },

  async "reserves nothing at the edge, unless it is all that is wanted"(query) {
    await cap(query, "user:u", "requests", "day", 7);
    assert.deepEqual(await granted(query, [want("user:u", 4)]), []);
    assert.deepEqual(await granted(query, [want("user:u", 3)]), ["user:u - - 3 - - 51000"]);
    await query("update caps set amount = 11");
    await query("delete from subject_grants");
    assert.deepEqual(await granted(query, [want("user:u", 5)]), ["user:u - - 5 - - 51000"]);
    await query("delete from subject_grants");
    await query("update caps set amount = 8");
    assert.deepEqual(await granted(query, [want("user:u", 100)]), ["user:u - - 4 - - 51000"]);
  },

  async "leaves what is used, held and reserved of a cap"(query) {
    await cap(query, "user:u", "credits", "day", 1_000);
    await useOf(query, "user:u", { spent: [0, 100, 0, 0, 0] });
    await query("insert into subject_holds values ('w', 'q', 'user:u', 0, 200)");
    await share(query, "user:u", 8, { credit: 300 });
    assert.deepEqual(await granted(query, [want("user:u", 100)]), ["user:u 200 - - - - 51000"]);
  },

  async "adds to the headroom of the same minute only, also where no cap is left"(query) {
    const minute = AT - (AT % MINUTE);
    for (const subject of ["user:a", "user:b"]) await cap(query, subject, "requests", "day", 100);
    await share(query, "user:a", 7, { ...ALL, isIdle: false }, "w", minute - AT);
    await share(query, "user:b", 7, ALL, "w", minute - AT - 1);
    await share(query, "user:c", 7, { ...ALL, isIdle: false }, "w", minute - AT);
    await share(query, "user:d", 7, ALL);
    await share(query, "user:none", 8, ALL);
    await share(query, "user:none", 7, ALL, "v");
    const wants = ["a", "b", "c", "none"].map((id) => want(`user:${id}`, 5, { minute }));
    const old = [want("user:d", 5, { minute: minute - MINUTE }), { subject: "user:d", minute }];
    assert.deepEqual(await granted(query, [...wants, ...old]), ["user:a - - 5 - - 51000", "user:c - - - - - 51000"]);
    assert.deepEqual(await sharesIn(query), [
      "v user:none 7 100 40 10 4 20 30 50 t 07:08:09",
      "w user:a 7 100 40 10 4 25 30 50 t 07:08:09",
      "w user:b 7 100 40 10 4 20 30 50 t 07:07:59",
      "w user:c 7 100 40 10 4 20 30 50 f 07:08:09",
      "w user:d 7 100 40 10 4 20 30 50 t 07:08:09",
      "w user:none 8 100 40 10 4 20 30 50 t 07:08:09",
    ]);
    await query("update caps set figure = 'concurrent_requests', period = '' where subject = 'user:a'");
    await cap(query, "user:a", "credits", "day", 1_000);
    await cap(query, "user:a", "input_tokens", "day", 1_000);
    await cap(query, "user:a", "output_tokens", "day", 1_000);
    await granted(query, [want("user:a", 5, { minute })]);
    assert.equal((await sharesIn(query))[1], "w user:a 7 150 40 15 4 25 40 65 t 07:08:09");
    // What was returned needs no row, and no minute.
    assert.deepEqual(await granted(query, [want("user:none", 5)]), ["user:none - - - - - 51000"]);
  },

  async "ends headroom with the first raise that ends"(query) {
    const left = async (subject: string) => (await granted(query, [want(subject, 5)]))[0]?.split(" ").at(-1);
    const days = { day: 40, week: 30, month: 20 };
    for (const [period, seconds] of Object.entries(days))
      await cap(query, "user:u", "requests", period, 100, { endsAt: AT + seconds * 1_000 });
    await cap(query, "user:u", "requests", "total", 100, { endsAt: AT - 1_000 });
    await cap(query, "user:v", "requests", "total", 100, { endsAt: AT + 1_000 });
    await cap(query, "user:u", "requests", "total", 100, { endsAt: AT + 1_000, workspace: "v" });
    await cap(query, "user:u", "credits", "total", 1_000, { endsAt: AT });
    assert.equal(await left("user:u"), "20000");
    await cap(query, "user:*", "requests", "minute", 100, { endsAt: AT + 10_000 });
    assert.equal(await left("user:u"), "10000");
    assert.equal(await left("user:x"), "10000");
    assert.equal(await left("tag:a=b"), "51000");
  },
};

/** The functions that keep the headroom of subjects, called alone. */
export const SHARE_CASES: Cases = { ...REPORT_CASES, ...GRANT_CASES };
