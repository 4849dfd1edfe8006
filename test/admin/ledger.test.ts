import assert from "node:assert/strict";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { test } from "vitest";
import {
  type LedgerEntry,
  LedgerEntryKind,
  type ListLedgerRequestSchema,
} from "../../gen/chorus/admin/v1/credits_pb.js";
import { keepPartitions } from "../../src/store/partitions.ts";
import type { Pool } from "../../src/store/pool.ts";
import { adminOf, type BackOffice } from "../helpers/admin.ts";
import { QUIET } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import { admitIn, settleIn } from "../helpers/exchange.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { plansOf } from "../helpers/query-plans.ts";

const { GRANT, PURCHASE, ADJUSTMENT, SETTLEMENT } = LedgerEntryKind;

interface Opened {
  pool: Pool;
  url: string;
  /** Of the workspace `w`. */
  id: string;
  credits: BackOffice["credits"];
}

async function open(t: Lifetime): Promise<Opened> {
  const { pool, url } = await testDatabase(t);
  const { credits, workspaces } = adminOf(pool);
  const { workspace } = await workspaces.createWorkspace({ name: "w" });
  return { pool, url, id: workspace?.id ?? "", credits };
}

type Filter = MessageInitShape<typeof ListLedgerRequestSchema>;

const list = (credits: Opened["credits"], of: Filter) => credits.listLedger({ workspace: "w", ...of });

/** Reads all pages. */
async function pagesOf(credits: Opened["credits"], of: Filter): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  let pageToken = "";
  do {
    const page = await list(credits, { pageSize: 3, ...of, pageToken });
    entries.push(...page.entries);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return entries;
}

test("lists the kinds of entries that are asked for, with the balances that they have among all entries", async (t) => {
  const { credits, pool, id } = await open(t);
  for (let i = 0; i < 8; i++) {
    const booking = { workspace: "w", amount: `${10 + i}`, reference: `b${i}` };
    await (i % 3 === 0 ? credits.purchase(booking) : credits.grant(booking));
    assert.equal(await admitIn(pool, id, `r${i}`, { hold: 1_000_000 }), undefined);
    await settleIn(pool, id, `r${i}`, { charge: 1_000 * i });
  }
  await credits.deduct({ workspace: "w", amount: "2", reference: "back" });
  const all = (await list(credits, {})).entries;
  assert.equal(all.length, 16);
  const micro = (amount: string) => Math.round(Number(amount) * 1e6);
  all.reduceRight((before, { granted, purchased, balance }) => {
    assert.equal(micro(balance), before + micro(granted) + micro(purchased));
    return micro(balance);
  }, 0);
  const endTime = all[3]?.at;
  assert.ok(endTime);
  for (const kinds of [[], [SETTLEMENT], [GRANT], [PURCHASE, SETTLEMENT], [GRANT, PURCHASE, ADJUSTMENT]]) {
    const wanted = all.filter(({ kind }) => kinds.length === 0 || kinds.includes(kind));
    assert.deepEqual(await pagesOf(credits, { kinds }), wanted);
    const older = wanted.filter((entry) => all.indexOf(entry) > 3);
    assert.deepEqual(await pagesOf(credits, { kinds, endTime, chargesOnly: true }), older);
  }
});

test("refuses kinds that no index finds, and a page token with another balance than a number", async (t) => {
  const { credits } = await open(t);
  for (const kind of [LedgerEntryKind.HOLD, LedgerEntryKind.RELEASE, LedgerEntryKind.UNSPECIFIED, 99]) {
    const refused = { kind: "invalid_request", field: "kinds[1]" };
    await assert.rejects(list(credits, { kinds: [GRANT, kind] }), refused);
  }
  for (const place of ["1 1 99999999999999999999", "1 1 or", "1 1 1 1"]) {
    const pageToken = Buffer.from(place).toString("base64url");
    await assert.rejects(list(credits, { pageToken }), { kind: "invalid_request", field: "page_token" });
  }
});

/** Adds settlements without a charge, newer than all other entries. */
const addSettlements = (pool: Pool, id: string, first: number, last: number) =>
  pool.query(
    `insert into ledger (workspace_id, at, kind, reference)
     select $1, now() + i * interval '1 microsecond', 'settlement', 'r' || i from generate_series($2::int, $3::int) i`,
    [id, first, last],
  );

test("leaves out the balances of entries that lie behind 100,000 others, and of those on later pages", async (t) => {
  const { credits, pool, id } = await open(t);
  for (const reference of ["first", "second"]) await credits.grant({ workspace: "w", amount: "5", reference });
  await addSettlements(pool, id, 1, 99_998);
  const balances = async (pageSize: number) =>
    (await pagesOf(credits, { kinds: [GRANT], pageSize })).map(({ balance }) => balance);
  for (const pageSize of [1, 2]) assert.deepEqual(await balances(pageSize), ["10", "5"]);
  await addSettlements(pool, id, 99_999, 99_999);
  // Each page sums its own entries.
  assert.deepEqual(await balances(2), ["10", ""]);
  assert.deepEqual(await balances(1), ["10", "5"]);
  await addSettlements(pool, id, 100_000, 100_000);
  for (const pageSize of [1, 2]) assert.deepEqual(await balances(pageSize), ["", ""]);
  assert.equal((await list(credits, { pageSize: 1 })).entries[0]?.balance, "10");
});

test("finds bookings among settlements by their index, and reads no more for a page than it shows", async (t) => {
  const { credits, pool, url, id } = await open(t);
  const partitions = await keepPartitions(pool, { retentionDays: 90, runDays: 30, log: QUIET });
  await partitions.stop();
  await credits.grant({ workspace: "w", amount: "5", reference: "g" });
  await addSettlements(pool, id, 1, 50_000);
  await pool.query("vacuum analyze");
  const scansOf = async (of: Filter) => {
    const plans = await plansOf(url, async (client) => {
      const query: Pool["query"] = async (text, values) => (await client.query(text, values && [...values])).rows;
      await list(adminOf({ ...pool, query }).credits, of);
    });
    return plans.map(({ scans }) => scans.filter(({ table, rows }) => /^ledger/.test(table) && rows > 0));
  };
  const indexes = await pool.query<{ name: string }>(
    "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'ledger_bookings'::regclass",
  );
  const [bookings] = (await scansOf({ kinds: [GRANT, PURCHASE] })).filter((scans) => scans.length > 0);
  assert.deepEqual(
    bookings?.map(({ index, rows }) => [indexes.some(({ name }) => name === index), rows]),
    [[true, 1]],
  );
  const page = (await scansOf({ pageSize: 20, kinds: [SETTLEMENT] })).flat();
  assert.deepEqual(
    page.map(({ rows, condition }) => [rows, /workspace_id = /.test(condition)]),
    [
      [21, true],
      [20, true],
    ],
  );
});
