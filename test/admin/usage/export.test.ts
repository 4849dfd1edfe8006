import assert from "node:assert/strict";
import fc from "fast-check";
import { MetricsGroupBy } from "../../../gen/chorus/v1/generation_pb.js";
import type { Pool } from "../../../src/store/pool.ts";
import { adminOf } from "../../helpers/admin.ts";
import { runCli } from "../../helpers/cli.ts";
import { postOf, recordIn } from "../../helpers/exchange.ts";
import { test as base, OFFLINE } from "../../helpers/fixtures.ts";

const test = base.extend("env", { scope: "file" }, OFFLINE);

interface Request {
  day: number;
  key: string;
  user?: string | undefined;
  team?: string | undefined;
  charge: number;
}

let count = 0;

/** Settles requests of a new workspace, in March 2026. @returns its name */
async function record(pool: Pool, requests: readonly Request[]): Promise<string> {
  const workspace = `ws_export_${++count}`;
  await pool.query("insert into workspaces (id, name) values ($1, $2)", [workspace, `export-${count}`]);
  await pool.query("insert into accounts (workspace_id, granted_micro) values ($1, 1000000000)", [workspace]);
  const posts = requests.map(({ day, key, user, team, charge }, i) =>
    postOf(`req_${i}`, {
      charge,
      ...{ created_at: new Date(Date.UTC(2026, 2, day, 12)), key_id: key, input_tokens: 10, outcome: "ok" },
      ...(user === undefined ? {} : { end_user: user }),
      ...(team === undefined ? {} : { tags: { team } }),
    }),
  );
  await recordIn(pool, workspace, posts);
  return workspace;
}

const time = (text: string) => ({
  $typeName: "google.protobuf.Timestamp" as const,
  ...{ seconds: BigInt(Date.parse(text) / 1_000), nanos: 0 },
});
const MARCH = { startTime: time("2026-03-01T00:00:00Z"), endTime: time("2026-04-01T00:00:00Z") };

test("has each subject once on each day, and credits as in the ledger, whatever the size of a page", async ({
  database: { pool },
}) => {
  const { usage } = adminOf(pool);
  const name = fc.constantFrom("a", "b", "ü", "z");
  const request = fc.record(
    { day: fc.integer({ min: 1, max: 4 }), key: name, user: name, team: name, charge: fc.nat({ max: 999 }) },
    { requiredKeys: ["day", "key", "charge"] },
  );
  const groups = [
    [{ groupBy: MetricsGroupBy.KEY }, ({ key }: Request) => key],
    [{ groupBy: MetricsGroupBy.USER }, ({ user }: Request) => user ?? ""],
    [{ groupBy: MetricsGroupBy.TAG, groupTag: "team" }, ({ team }: Request) => team ?? ""],
  ] as const;
  await fc.assert(
    fc.asyncProperty(
      fc.array(request, { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 1, max: 5 }),
      async (requests, pageSize) => {
        const workspace = await record(pool, requests);
        for (const [group, subjectOf] of groups) {
          const expected = new Map<string, number>();
          for (const one of requests) {
            const row = JSON.stringify([`2026-03-0${one.day}`, subjectOf(one)]);
            expected.set(row, (expected.get(row) ?? 0) + one.charge);
          }
          const rows: [string, number][] = [];
          let pageToken = "";
          do {
            const page = await usage.exportUsage({ workspace, ...group, ...MARCH, pageSize, pageToken });
            for (const { day, subject, credits } of page.rows)
              rows.push([JSON.stringify([day, subject]), Math.round(Number(credits) * 1e6)]);
            ({ nextPageToken: pageToken } = page);
          } while (pageToken !== "");
          assert.equal(new Set(rows.map(([row]) => row)).size, rows.length);
          assert.deepEqual(new Map(rows.toSorted()), new Map([...expected].toSorted()));
          const days = rows.map(([row]) => row.slice(0, 14));
          assert.deepEqual(days, days.toSorted());
        }
        const [ledger] = await pool.query<{ sum: bigint | null }>(
          "select -sum(granted_micro + purchased_micro)::bigint as sum from ledger where workspace_id = $1",
          [workspace],
        );
        assert.equal(
          Number(ledger?.sum ?? 0n),
          requests.reduce((sum, { charge }) => sum + charge, 0),
        );
      },
    ),
    { numRuns: 12 },
  );
});

test("chorus usage export writes CSV, JSON lines and FOCUS", async ({ service, database: { pool } }) => {
  const workspace = await record(pool, [
    { day: 1, key: "key_1", user: '=1,"x"', charge: 1_500_000 },
    { day: 1, key: "key_1", charge: 250_001 },
    { day: 2, key: "key_2", user: "u", charge: 0 },
  ]);
  const period = ["--from", "2026-03-01", "--to", "2026-03-31"];
  const run = (...options: string[]) =>
    runCli(["usage", "export", workspace, ...period, ...options], { DATA_DIR: service.dataDir });
  const write = async (...options: string[]) => {
    const { code, stdout, stderr } = await run(...options);
    assert.deepEqual([code, stderr], [0, ""]);
    return stdout.trimEnd().split("\n");
  };
  const refuse = async (...options: string[]) => {
    const { code, stdout, stderr } = await run(...options);
    assert.deepEqual([code, stdout], [1, ""]);
    return stderr;
  };
  const name = workspace.replace("ws_export_", "export-");
  assert.deepEqual(await write(), [
    "day,workspace,key_id,key_name,requests,failed_requests,input_tokens,output_tokens,cached_tokens,credits",
    `2026-03-01,${name},key_1,,2,0,20,2,0,1.750001`,
    `2026-03-02,${name},key_2,,1,0,10,1,0,0`,
  ]);
  const later = ["--from", "2026-03-11"];
  for (const format of ["csv", "focus"]) {
    const [head] = await write("--format", format);
    assert.deepEqual(await write("--format", format, ...later), [head], "without use");
  }
  assert.deepEqual(await write("--format", "jsonl", ...later), [""]);
  const lines = (await write("--by", "user", "--format", "jsonl")).map((line) => JSON.parse(line));
  assert.deepEqual(
    lines.map(({ day, user, credits }) => [day, user, credits]),
    [
      ["2026-03-01", "", "0.250001"],
      ["2026-03-01", '=1,"x"', "1.5"],
      ["2026-03-02", "u", "0"],
    ],
  );
  // A tag can have the name of a column.
  assert.deepEqual((await write("--by", "tag:day")).slice(0, 2), [
    "day,workspace,tag.day,requests,failed_requests,input_tokens,output_tokens,cached_tokens,credits",
    `2026-03-01,${name},,2,0,20,2,0,1.750001`,
  ]);
  for (const tag of ["credits", "2026"])
    assert.match((await write("--by", `tag:${tag}`))[0] ?? "", /^day,workspace,tag\./);
  // A spreadsheet must not run a user's identifier as a formula.
  assert.ok((await write("--by", "user")).includes(`2026-03-01,${name},"'=1,""x""",1,0,10,1,0,1.5`));
  const [head = "", first = ""] = await write("--format", "focus", "--currency", "USD", "--price", "0.5");
  const names = head.split(",");
  const cell = (column: string) => first.split(",")[names.indexOf(column)];
  assert.deepEqual(names, names.toSorted());
  assert.deepEqual(
    ["BilledCost", "BillingCurrency", "BillingPeriodEnd", "ChargePeriodStart", "PricingUnit", "ResourceId"].map(cell),
    ["0.8750005", "USD", "2026-04-01T00:00:00Z", "2026-03-01T00:00:00Z", "tokens", "key_1"],
  );
  assert.equal(cell("PricingCurrencyEffectiveCost"), "1.750001");
  for (const [price, cost] of [
    ["1", "1.750001"],
    // Binary numbers give 0.0000017500009999999998.
    ["0.000001", "0.000001750001"],
    ["1000000", "1750001"],
    ["0", "0"],
  ] as const) {
    const [, row = ""] = await write("--format", "focus", "--currency", "XXX", "--price", price);
    assert.equal(row.split(",")[names.indexOf("BilledCost")], cost);
  }
  assert.match(await refuse("--json"), /--json\. For JSON lines, use --format jsonl/);
  const usd = ["--format", "focus", "--currency", "USD"];
  for (const price of ["Infinity", "", " ", "0x10", "-1", "1e3", "1.", ".5"])
    assert.match(
      await refuse(...usd, "--price", price),
      /--price must be a decimal number from 0 such as 0\.01/m,
      price,
    );
  // A credit must not count as one unit of a currency by default, nor a price without a currency.
  for (const half of [usd, ["--format", "focus", "--price", "0.5"]])
    assert.match(await refuse(...half), /--currency and --price go together/);
  assert.match(await refuse("--currency", "USD", "--price", "0.5"), /are for --format focus/);
});
