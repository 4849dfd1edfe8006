import assert from "node:assert/strict";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { CapFigure, MetricsGroupBy, MetricsInterval } from "../../../gen/chorus/v1/generation_pb.js";
import type { Pool } from "../../../src/store/pool.ts";
import { adminOf } from "../../helpers/admin.ts";
import { runCli } from "../../helpers/cli.ts";
import { postOf, recordIn } from "../../helpers/exchange.ts";
import { test as base, OFFLINE } from "../../helpers/fixtures.ts";
import { addUse, NOW, openWithGenerations } from "../../helpers/generations.ts";

const test = base.extend("env", { scope: "file" }, OFFLINE);

const at = (ms: number) => timestampFromDate(new Date(ms));
const DAY = 86_400_000;
const MARCH = { startTime: at(Date.UTC(2026, 2, 1, 5, 7)), endTime: at(Date.UTC(2026, 2, 8, 10, 30)) };

interface Request {
  minute: number;
  key: string;
  user?: string | undefined;
  team?: string | undefined;
  charge: number;
  output: number;
}

let count = 0;

/** Settles requests of a new workspace, from March 1st. @returns its identifier */
async function record(pool: Pool, requests: readonly Request[]): Promise<string> {
  const workspace = `ws_top_${++count}`;
  await pool.query("insert into workspaces (id, name) values ($1, $1)", [workspace]);
  await pool.query("insert into accounts (workspace_id, granted_micro) values ($1, 1000000000)", [workspace]);
  const posts = requests.map(({ minute, key, user, team, charge, output }, i) =>
    postOf(`req_${i}`, {
      ...{ charge, output, created_at: new Date(Date.UTC(2026, 2, 1, 0, minute)), key_id: key, outcome: "ok" },
      ...{ input_tokens: 10 },
      ...(user === undefined ? {} : { end_user: user }),
      ...(team === undefined ? {} : { tags: { team, other: "x" } }),
    }),
  );
  await recordIn(pool, workspace, posts);
  return workspace;
}

test("lists each subject once with its sums, the largest first, whatever the size of a page", async ({
  database: { pool },
}) => {
  const { usage } = adminOf(pool);
  const name = fc.constantFrom("a", "a=b", "ü", "😀", "z");
  const request = fc.record(
    {
      ...{ minute: fc.integer({ min: 0, max: 10_000 }), key: name, user: name, team: name },
      ...{ charge: fc.nat({ max: 3 }), output: fc.nat({ max: 3 }) },
    },
    { requiredKeys: ["minute", "key", "charge", "output"] },
  );
  const groups = [
    [{ groupBy: MetricsGroupBy.KEY }, ({ key }: Request) => key],
    [{ groupBy: MetricsGroupBy.USER }, ({ user }: Request) => user],
    [{ groupBy: MetricsGroupBy.TAG, groupTag: "team" }, ({ team }: Request) => team],
  ] as const;
  // The period is widened to whole days, because it is longer than three days.
  const isInside = ({ minute }: Request) => minute < 7 * 1440 + 630;
  await fc.assert(
    fc.asyncProperty(fc.array(request, { maxLength: 20 }), fc.integer({ min: 1, max: 5 }), async (all, pageSize) => {
      const workspace = await record(pool, all);
      const requests = all.filter(isInside);
      for (const [group, subjectOf] of groups) {
        for (const [figure, of] of [
          [CapFigure.UNSPECIFIED, ({ charge }: Request) => charge],
          [CapFigure.OUTPUT_TOKENS, ({ output }: Request) => output],
          [CapFigure.REQUESTS, () => 1],
        ] as const) {
          const sums = new Map<string, number>();
          for (const one of requests) {
            const subject = subjectOf(one);
            if (subject !== undefined) sums.set(subject, (sums.get(subject) ?? 0) + of(one));
          }
          const found: [string, number][] = [];
          let pageToken = "";
          do {
            const page = await usage.listTopSubjects({ workspace, ...group, ...MARCH, figure, pageSize, pageToken });
            assert.ok(page.subjects.length <= pageSize);
            for (const row of page.subjects) {
              const micro = Math.round(Number(row.credits) * 1e6);
              const value = { [CapFigure.REQUESTS]: row.requests, [CapFigure.OUTPUT_TOKENS]: row.outputTokens }[
                figure as 2
              ];
              found.push([row.subject, Number(value ?? micro)]);
            }
            const credits = requests.reduce((sum, { charge }) => sum + charge, 0);
            assert.deepEqual(
              [page.total?.requests, Math.round(Number(page.total?.credits) * 1e6)],
              [BigInt(requests.length), credits],
            );
            ({ nextPageToken: pageToken } = page);
          } while (pageToken !== "");
          assert.deepEqual(new Map(found), sums);
          assert.equal(found.length, sums.size);
          const order = found.map(([, value]) => value);
          assert.deepEqual(
            order,
            order.toSorted((a, b) => b - a),
          );
        }
      }
    }),
    { numRuns: 8 },
  );
});

test("lists the pages of all time", async ({ database: { pool } }) => {
  const request = { minute: 1, user: "a", charge: 1, output: 1 };
  const workspace = await record(pool, [
    { ...request, key: "key_1" },
    { ...request, key: "key_2" },
  ]);
  const { usage } = adminOf(pool);
  const period = {
    startTime: timestampFromDate(new Date("0001-01-01T00:00:00Z")),
    endTime: timestampFromDate(new Date("9999-12-31T23:59:59Z")),
  };
  const first = await usage.listTopSubjects({ workspace, ...period, pageSize: 1 });
  const second = await usage.listTopSubjects({ workspace, pageSize: 1, pageToken: first.nextPageToken });
  const subjects = [...first.subjects, ...second.subjects].map(({ subject }) => subject);
  assert.deepEqual([subjects, second.nextPageToken], [["key_1", "key_2"], ""]);
});

test("finds subjects by their start, and names of tags", async ({ database: { pool } }) => {
  const { usage } = adminOf(pool);
  const one = { minute: 1, key: "key_x", charge: 1, output: 1 };
  const users = ["u-1", "u-10", "u%", "v"].map((user) => ({ ...one, user, team: user }));
  const workspace = await record(pool, users);
  const search = async (text: string) => {
    const request = { workspace, ...MARCH, groupBy: MetricsGroupBy.USER, search: text };
    return (await usage.listTopSubjects(request)).subjects.map(({ subject }) => subject);
  };
  assert.deepEqual(await search("u-1"), ["u-1", "u-10"]);
  assert.deepEqual(await search("u%"), ["u%"]);
  assert.deepEqual(await search("😀"), []);
  assert.deepEqual((await usage.listTagNames({ workspace })).names, ["other", "team"]);
  await pool.query(
    `insert into usage_subjects select $1, 'day', now(), 'tag:' || name || '=' || i, 1, 0, 1, 1, 0, 1
     from unnest(array['a', 'a-b', 'a.b', 'a_b', 'ab', 'z9']) name, generate_series(1, 3) i`,
    [workspace],
  );
  const { names } = await usage.listTagNames({ workspace });
  assert.deepEqual(names, ["a", "a-b", "a.b", "a_b", "ab", "other", "team", "z9"].toSorted());
});

test("finds the keys that used most, by name too, from the rollups", async ({ t }) => {
  const { pool, usage } = await openWithGenerations(t, 1);
  await addUse(pool);
  const month = { workspace: "one", startTime: at(NOW - 30 * DAY), endTime: at(NOW) };
  const { keys } = await usage.listTopKeys(month);
  const top = await usage.listTopSubjects(month);
  assert.deepEqual(
    top.subjects.map((row) => [row.subject, row.keyName, row.keyPrefix, row.credits, row.requests]),
    [
      ["key_1", "name 1", "ck_1", "12", 6n],
      ["key_3", "name 3", "ck_3", "9", 2n],
    ],
  );
  assert.deepEqual(
    keys.map((row) => [row.keyId, row.keyName, row.keyPrefix, `${row.totals?.credits}`, row.totals?.requests]),
    top.subjects.map((row) => [row.subject, row.keyName, row.keyPrefix, row.credits, row.requests]),
  );
  assert.equal((await usage.listTopKeys({ ...month, pageSize: 1 })).keys.length, 1);
  await assert.rejects(usage.listTopKeys({ ...month, pageSize: 101 }), { kind: "invalid_request", field: "page_size" });
  for (const search of ["NAME 3", "key_3"]) {
    assert.deepEqual(
      (await usage.listTopSubjects({ ...month, search })).subjects.map(({ subject }) => subject),
      ["key_3"],
    );
  }
  const own = await usage.getUsage({ ...month, interval: MetricsInterval.DAY, keyId: "key_3" });
  const same = await usage.getUsage({ ...month, interval: MetricsInterval.DAY, subject: "key:key_3" });
  assert.equal(own.usage?.totals?.credits, 9);
  assert.deepEqual(same, own);
});

test("counts one user or one value of a tag alone", async ({ database: { pool } }) => {
  const { usage } = adminOf(pool);
  const one = { minute: 1, key: "key_x", charge: 5, output: 1 };
  const workspace = await record(pool, [{ ...one, user: "u-1", team: "a=b" }, { ...one, user: "u-10" }, one]);
  const credits = async (subject: string) => {
    const { usage: found } = await usage.getUsage({ workspace, ...MARCH, subject });
    assert.equal(
      found?.series.reduce((sum, point) => sum + point.credits, 0),
      found?.totals?.credits,
    );
    return found?.totals?.credits;
  };
  assert.equal(await credits("user:u-1"), 0.000_005);
  assert.equal(await credits("tag:team=a=b"), 0.000_005);
  assert.equal(await credits("user:u-2"), 0);
  assert.equal(await credits("key:key_x"), 0.000_015);
});

test("refuses malformed selections with the field", async ({ database: { pool } }) => {
  const { usage, caps, activity } = adminOf(pool);
  const workspace = await record(pool, []);
  const token = (text: string) => Buffer.from(text).toString("base64url");
  const { USER, TAG } = MetricsGroupBy;
  const tokens = [
    "x",
    "5 5 1 a",
    "9 5 1 a",
    "1 2 -1 a",
    "1 2 9999999999999999999 a",
    "1 2 3 \0",
    `${"9".repeat(16)} 2 3 a`,
  ];
  const calls: [() => Promise<unknown>, field: string][] = [
    ...tokens.map((text): [() => Promise<unknown>, string] => [
      () => usage.listTopSubjects({ workspace, pageToken: token(text) }),
      "page_token",
    ]),
    [() => usage.listTopSubjects({ workspace, pageSize: 1_001 }), "page_size"],
    [() => usage.listTopSubjects({ workspace, figure: CapFigure.CONCURRENT_REQUESTS }), "figure"],
    [() => usage.listTopSubjects({ workspace, figure: 99 as CapFigure }), "figure"],
    [() => usage.listTopSubjects({ workspace, search: "a\nb" }), "search"],
    [() => usage.listTopSubjects({ workspace, search: "a".repeat(201) }), "search"],
    [() => usage.listTopSubjects({ workspace, groupBy: TAG }), "group_by"],
    [() => usage.listTopSubjects({ workspace, groupTag: "team" }), "group_by"],
    [() => usage.listTopSubjects({ workspace, groupBy: 9 as MetricsGroupBy }), "group_by"],
    [() => usage.listTopSubjects({ workspace, startTime: at(2), endTime: at(1) }), "from"],
    [() => usage.exportUsage({ workspace, pageToken: token(`${"9".repeat(16)} a`) }), "page_token"],
    [() => usage.exportUsage({ workspace, pageToken: token("5 \0") }), "page_token"],
    ...["u-1", "user:", "tag:team", "tag:Team=a", "tag:team=", "key:\0", `user:${"a".repeat(129)}`].flatMap(
      (subject): [() => Promise<unknown>, string][] => [
        [() => usage.getUsage({ workspace, subject }), "subject"],
        [() => usage.getQuotas({ workspace, subject }), "subject"],
      ],
    ),
    [() => usage.getUsage({ workspace, subject: "user:a", keyId: "key_1" }), "subject"],
    [() => usage.getUsage({ workspace, subject: "user:a", groupBy: USER }), "subject"],
    [() => caps.listCaps({ workspace, search: "\0" }), "search"],
    [() => activity.listGenerations({ workspace, tag: "team" }), "tag"],
    [() => activity.listGenerations({ workspace, tag: "Team=a" }), "tag"],
    [() => activity.listGenerations({ workspace, tag: `team=${"a".repeat(65)}` }), "tag"],
  ];
  for (const [call, field] of calls) {
    await assert.rejects(call(), { kind: "invalid_request", field }, String(call));
  }
});

test("chorus usage top prints subjects in their order, a total, and JSON", async ({ service, database: { pool } }) => {
  const one = { minute: 1, key: "key_x", charge: 1_500_000, output: 1 };
  const workspace = await record(pool, [
    { ...one, user: "u-1" },
    { ...one, user: "u-2", charge: 2_000_000 },
    { ...one, user: "u-1", charge: 0 },
    one,
  ]);
  const top = async (...options: string[]) => {
    const period = ["--from", "2026-03-01", "--to", "2026-03-31"];
    const { code, stdout, stderr } = await runCli(["usage", "top", workspace, ...period, ...options], {
      DATA_DIR: service.dataDir,
    });
    assert.deepEqual([code, stderr], [0, ""]);
    return stdout;
  };
  assert.match(
    await top("--by", "user"),
    /^USER +REQUESTS +FAILED +INPUT +OUTPUT +CREDITS\nu-2 +1 .* 2\nu-1 +2 .* 1\.5\nall requests +4 .* 5\n$/,
  );
  const { subjects, total } = JSON.parse(await top("--by", "user", "--figure", "requests", "--limit", "1", "--json"));
  assert.deepEqual([subjects.length, subjects[0].subject, subjects[0].credits], [1, "u-1", "1.5"]);
  assert.equal(total.credits, "5");
  assert.match(await top(), /^KEY +NAME +REQUESTS/);
});
