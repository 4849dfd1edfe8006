import assert from "node:assert/strict";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { test } from "vitest";
import {
  LedgerEntryKind,
  type LedgerHour,
  type ListLedgerHoursRequestSchema,
} from "../../gen/chorus/admin/v1/credits_pb.js";
import type { Pool } from "../../src/store/pool.ts";
import { adminOf, type BackOffice } from "../helpers/admin.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { plansOf } from "../helpers/query-plans.ts";

const HOUR = 3_600_000;
const NOON = Date.UTC(2026, 10, 20, 12);

type Credits = BackOffice["credits"];
type Period = MessageInitShape<typeof ListLedgerHoursRequestSchema>;

async function open(t: Lifetime): Promise<{ pool: Pool; url: string; credits: Credits }> {
  const { pool, url } = await testDatabase(t);
  for (const n of [1, 2]) {
    await pool.query("insert into workspaces (id, name) values ($1, $1)", [`ws_${n}`]);
    await pool.query("insert into accounts (workspace_id) values ($1)", [`ws_${n}`]);
  }
  return { pool, url, credits: adminOf(pool).credits };
}

/** Adds `n` entries that are `everyMs` apart; the i-th of them takes i and 2 i millionths of a credit. */
const add = (pool: Pool, kind: string, [first, n, everyMs]: [Date, number, number], workspace = "ws_1") =>
  pool.query(
    `insert into ledger (workspace_id, at, kind, reference, granted_micro, purchased_micro)
     select $1, $2::timestamptz + i * $3 * interval '1 millisecond', $4, 'r' || i, -i, -2 * i
     from generate_series(0, $5::int - 1) i`,
    [workspace, first, everyMs, kind, n],
  );

/** Reads all pages. @returns the hours, and the number of calls that they took */
async function hoursOf(credits: Credits, of: Period = {}) {
  const hours: LedgerHour[] = [];
  let pageToken = "";
  let calls = 0;
  do {
    const page = await credits.listLedgerHours({ workspace: "ws_1", ...of, pageToken });
    hours.push(...page.hours);
    pageToken = page.nextPageToken;
    calls++;
  } while (pageToken !== "");
  const rows = hours.map(({ startTime, settlements, granted, purchased }) => [
    startTime ? (timestampDate(startTime).getTime() - NOON) / HOUR : Number.NaN,
    ...[Number(settlements), Math.round(Number(granted) * 1e6), Math.round(Number(purchased) * 1e6)],
  ]);
  return { rows, calls };
}

test("sums the settlements of each hour, which the ledger lists from its start to its end", async (t) => {
  const { pool, credits } = await open(t);
  // 19 and 20 before noon, 1 after it; then none for an hour.
  await add(pool, "settlement", [new Date(NOON - 19 * 180_000), 20, 180_000]);
  await add(pool, "settlement", [new Date(NOON + 2 * HOUR - 1), 3, 1]);
  for (const kind of ["grant", "purchase", "adjustment", "hold", "release"])
    await add(pool, kind, [new Date(NOON), 3, 1]);
  await add(pool, "settlement", [new Date(NOON), 3, 1], "ws_2");
  const expected = [
    [2, 2, -3, -6],
    [1, 1, 0, 0],
    [0, 1, -19, -38],
    [-1, 19, -171, -342],
  ];
  for (const pageSize of [0, 1, 2, 3, 4]) {
    const { rows, calls } = await hoursOf(credits, { pageSize });
    assert.deepEqual(rows, expected);
    assert.equal(calls, Math.ceil(4 / (pageSize || 100)));
  }
  const [startTime, endTime] = [timestampFromMs(NOON + 59 * 60_000), timestampFromMs(NOON + HOUR + 1)];
  assert.deepEqual((await hoursOf(credits, { startTime, endTime })).rows, expected.slice(1, 3));
  const atStart = timestampFromMs(NOON + HOUR);
  assert.deepEqual((await hoursOf(credits, { startTime, endTime: atStart })).rows, expected.slice(2, 3));
  for (const [hour, settlements] of expected) {
    const from = NOON + Number(hour) * HOUR;
    const { entries } = await credits.listLedger({
      ...{ workspace: "ws_1", kinds: [LedgerEntryKind.SETTLEMENT] },
      ...{ startTime: timestampFromMs(from), endTime: timestampFromMs(from + HOUR) },
    });
    assert.equal(entries.length, settlements);
  }
  assert.deepEqual((await hoursOf(credits, { workspace: "ws_2" })).rows, [[0, 3, -3, -6]]);
  const never = { seconds: 1n << 60n, nanos: 0 };
  await assert.rejects(hoursOf(credits, { startTime: never }), { kind: "invalid_request", field: "from" });
  for (const place of ["1 1", "1 1 1 1", "1 1 1 1 99999999999999999999", "x"]) {
    const pageToken = Buffer.from(place).toString("base64url");
    const refused = { kind: "invalid_request", field: "page_token" };
    await assert.rejects(credits.listLedgerHours({ workspace: "ws_1", pageToken }), refused);
  }
});

test("continues an hour of more than 100,000 settlements on the next pages, exactly", async (t) => {
  const { pool, url, credits } = await open(t);
  await add(pool, "settlement", [new Date(NOON - HOUR), 3, 1]);
  await add(pool, "settlement", [new Date(NOON), 210_000, 10]);
  await add(pool, "settlement", [new Date(NOON + HOUR), 100_000 - 10_000, 10]);
  const sum = (n: number) => (n * (n - 1)) / 2;
  const expected = [
    [1, 90_000, -sum(90_000), -2 * sum(90_000)],
    [0, 210_000, -sum(210_000), -2 * sum(210_000)],
    [-1, 3, -3, -6],
  ];
  assert.deepEqual(await hoursOf(credits), { rows: expected, calls: 4 });
  assert.deepEqual((await hoursOf(credits, { pageSize: 1 })).rows, expected);
  // The last hour is read to its end by a whole page.
  const endTime = timestampFromMs(NOON + HOUR);
  await pool.query("delete from ledger where at < $1", [new Date(NOON)]);
  await pool.query("delete from ledger where at >= $1 and at < $2", [
    new Date(NOON + 200_000 * 10),
    new Date(NOON + HOUR),
  ]);
  assert.deepEqual(await hoursOf(credits, { endTime }), {
    rows: [[0, 200_000, -sum(200_000), -2 * sum(200_000)]],
    calls: 3,
  });
  await pool.query("vacuum analyze ledger");
  const plans = await plansOf(url, async (client) => {
    const query: Pool["query"] = async (text, values) => (await client.query(text, values && [...values])).rows;
    await adminOf({ ...pool, query }).credits.listLedgerHours({ workspace: "ws_1" });
  });
  const scans = plans.flatMap(({ scans }) => scans).filter(({ table, rows }) => /^ledger/.test(table) && rows > 0);
  assert.deepEqual(
    scans.map(({ index, condition, rows }) => [/_pkey$/.test(index ?? ""), /workspace_id = /.test(condition), rows]),
    [[true, true, 100_000]],
  );
});
