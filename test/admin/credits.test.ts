import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { test } from "vitest";
import {
  BalanceSchema,
  BookingSchema,
  BooksDifferenceSchema,
  LedgerEntryKind,
  SpendLimitSettingSchema,
} from "../../gen/chorus/admin/v1/credits_pb.js";
import { SpendPeriod, SpendPeriodSchema } from "../../gen/chorus/v1/generation_pb.js";
import type { Actor } from "../../src/admin/shared/audit.ts";
import { applyTiers } from "../../src/admin/tiers.ts";
import { wordOf } from "../../src/contract/json-names.ts";
import { openPool, type Pool } from "../../src/store/pool.ts";
import { adminOf, type BackOffice } from "../helpers/admin.ts";
import { checkBooks, makeAccount } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import { admitIn, settleIn } from "../helpers/exchange.ts";
import { admit as admitOn, listen, makeGrants } from "../helpers/grants.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { overridesOf } from "../helpers/limits.ts";
import { until } from "../helpers/until.ts";

/** The same for every settlement of a request: a repeated settlement finds the record by this time. */
const ADMITTED_AT = new Date();

const UNLIMITED = [{ name: "free", purchased: 0, limits: {} }];

async function open(t: Lifetime): Promise<BackOffice & { pool: Pool; id: string }> {
  const { pool } = await testDatabase(t);
  await applyTiers(pool, UNLIMITED);
  const office = adminOf(pool);
  const { workspace } = await office.workspaces.createWorkspace({ name: "w" });
  const id = workspace?.id ?? "";
  await pool.query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, scopes)
     values ($1, 'key_1', 'x', 'ck', '{generate}')`,
    [id],
  );
  return { ...office, pool, id };
}

type Credits = BackOffice["credits"];
type BookingKind = "grant" | "purchase" | "deduct";

const book = (credits: Credits, kind: BookingKind, amount: string, reference: string, workspace = "w") =>
  credits[kind]({ workspace, amount, reference });

/** A balance in credits. */
const balanceOf = (granted: string, purchased: string, held: string) =>
  create(BalanceSchema, { granted, purchased, held });

/** Admits a request. @returns the kind of the refusal; undefined when it was admitted */
async function hold(pool: Pool, id: string, request: string, micro: number): Promise<string | undefined> {
  return (await admitIn(pool, id, request, { hold: micro }))?.refusal;
}

async function settle(pool: Pool, id: string, request: string, micro: number): Promise<void> {
  const outcome = micro === 0 ? "internal" : "ok";
  await settleIn(pool, id, request, { charge: micro, created_at: ADMITTED_AT, outcome });
}

test("books grants, purchases and adjustments and records them in the ledger and the audit", async (t) => {
  const { credits, pool, id } = await open(t);
  const grant = await book(credits, "grant", "10.5", "welcome");
  const at = grant.booking?.at;
  assert.ok(at && Math.abs(timestampDate(at).getTime() - Date.now()) < 60_000);
  const kind = LedgerEntryKind.GRANT;
  assert.deepEqual(grant.booking, create(BookingSchema, { kind, reference: "welcome", amount: "10.5", at }));
  assert.equal(grant.booking.bookedBefore, false);
  assert.deepEqual(grant.balance, balanceOf("10.5", "0", "0"));
  const purchase = await book(credits, "purchase", "1000000000", "'; drop table ledger; --");
  assert.deepEqual(purchase.balance, balanceOf("10.5", "1000000000", "0"));
  await book(credits, "deduct", "0.5", "correction");
  const { entries, nextPageToken } = await credits.listLedger({ workspace: "w" });
  assert.equal(nextPageToken, "");
  assert.deepEqual(
    entries.map(({ kind, reference, granted, purchased, held }) => [kind, reference, granted, purchased, held]),
    [
      [LedgerEntryKind.ADJUSTMENT, "correction", "-0.5", "0", "0"],
      [LedgerEntryKind.PURCHASE, "'; drop table ledger; --", "0", "1000000000", "0"],
      [LedgerEntryKind.GRANT, "welcome", "10.5", "0", "0"],
    ],
  );
  const audit = await pool.query("select action, details from audit where action like 'credit.%' order by id");
  assert.deepEqual(audit, [
    { action: "credit.grant", details: { reference: "welcome", amount: "10.5" } },
    { action: "credit.purchase", details: { reference: "'; drop table ledger; --", amount: "1000000000" } },
    { action: "credit.adjustment", details: { reference: "correction", amount: "-0.5" } },
  ]);
  await checkBooks(pool, id);
});

test("books a reference once when it is sent again or several times at once", async (t) => {
  const { credits, workspaces, pool } = await open(t);
  const bookings = await Promise.all(Array.from({ length: 8 }, () => book(credits, "purchase", "5", "p")));
  const [first, ...repeated] = bookings.toSorted(
    (a, b) => Number(a.booking?.bookedBefore) - Number(b.booking?.bookedBefore),
  );
  assert.ok(first?.booking);
  assert.equal(first.booking.bookedBefore, false);
  const again = { ...first, booking: { ...first.booking, bookedBefore: true } };
  for (const booking of repeated) assert.deepEqual(booking, again);
  assert.deepEqual(await book(credits, "purchase", "5.000000", "p"), again);
  for (const [kind, amount] of [
    ["purchase", "5.000001"],
    ["grant", "5"],
  ] as const) {
    await assert.rejects(book(credits, kind, amount, "p"), { kind: "invalid_request", field: "reference" });
  }
  const [row] = await pool.query(
    `select purchased_micro as p, purchased_total_micro as t, (select count(*) from ledger) as l,
       (select count(*) from audit where action = 'credit.purchase') as a from accounts`,
  );
  assert.deepEqual(row, { p: 5_000_000n, t: 5_000_000n, l: 1n, a: 1n });
  // References are unique within a workspace only.
  await workspaces.createWorkspace({ name: "w2" });
  const other = await book(credits, "grant", "1", "p", "w2");
  assert.equal(other.balance?.granted, "1");
});

test("takes back only granted credit that is neither spent nor held", async (t) => {
  const { credits, pool, id } = await open(t);
  await book(credits, "grant", "10", "g");
  await book(credits, "purchase", "10", "p");
  assert.equal(await hold(pool, id, "r1", 4_000_000), undefined);
  const refused = (available: string) => ({
    kind: "invalid_request",
    field: "amount",
    message: new RegExp(`^Only ${available} credits`),
  });
  await assert.rejects(book(credits, "deduct", "6.000001", "back"), refused("6"));
  assert.deepEqual((await book(credits, "deduct", "6", "back")).balance, balanceOf("4", "10", "4"));
  await assert.rejects(book(credits, "deduct", "0.000001", "more"), refused("0"));
  await settle(pool, id, "r1", 3_000_000);
  await assert.rejects(book(credits, "deduct", "1.5", "more"), refused("1"));
  await book(credits, "deduct", "1", "more");
  await assert.rejects(book(credits, "deduct", "1", "purchased credit stays"), refused("0"));
  assert.equal(await hold(pool, id, "r2", 10_000_000), undefined);
  assert.equal(await hold(pool, id, "r3", 1), "rate_limited");
  await checkBooks(pool, id);
});

test("takes back granted credit that a replica has reserved and does not use", async (t) => {
  const { pool, url } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { granted: 10_000_000 });
  const grants = await makeGrants(t, { pool, url }, "r1");
  for (let i = 0; i < 10; i++) await admitOn(grants, { hold: 50_000 });
  const [row] = await pool.query<{ idle: bigint }>("select credit_micro - held_micro as idle from grants");
  assert.ok(row && row.idle > 0n);
  const { balance } = await book(adminOf(pool).credits, "deduct", "9.5", "back", "ws-1");
  assert.equal(balance?.granted, "0.5");
  await checkBooks(pool);
});

test("refuses an invalid booking, names its field and changes nothing", async (t) => {
  const { credits, pool } = await open(t);
  const wrong: [BookingKind, string, string, string][] = [
    ["grant", "0", "r", "amount"],
    ["grant", "-0.000000", "r", "amount"],
    ["purchase", "0", "r", "amount"],
    ["purchase", "-1", "r", "amount"],
    ["grant", "1e3", "r", "amount"],
    ["grant", "NaN", "r", "amount"],
    ["grant", "1000000000.000001", "r", "amount"],
    ["deduct", "1000000000.000001", "r", "amount"],
    ["deduct", "1", "r", "amount"],
    ["deduct", "-1", "r", "amount"],
    ["grant", "-1", "r", "amount"],
    ["purchase", "99999999999999999999", "r", "amount"],
    ["purchase", "1", "", "reference"],
    ["purchase", "1", "x".repeat(201), "reference"],
    ["purchase", "1", "a\0b", "reference"],
    ["purchase", "1", "a\u001b[31m", "reference"],
  ];
  for (const [kind, amount, reference, field] of wrong) {
    await assert.rejects(
      book(credits, kind, amount, reference),
      { kind: "invalid_request", field },
      `${kind} ${amount} ${reference}`,
    );
  }
  await assert.rejects(book(credits, "grant", "1", "r", "none"), {
    kind: "unknown_entity",
    field: "workspace",
  });
  await pool.query(
    "update accounts set granted_micro = 999999999999000000, purchased_total_micro = 999999999999000000",
  );
  for (const kind of ["grant", "purchase"] as const) {
    await assert.rejects(book(credits, kind, "1.000001", "r"), { kind: "invalid_request", field: "amount" });
  }
  const [row] = await pool.query(
    `select (select count(*) from bookings) as b, (select count(*) from ledger) as l, purchased_micro as p
     from accounts`,
  );
  assert.deepEqual(row, { b: 0n, l: 0n, p: 0n });
});

test("pages through the whole ledger once, newest first, while new entries are added", async (t) => {
  const { credits, pool, id } = await open(t);
  await book(credits, "grant", "100", "g");
  for (let i = 0; i < 6; i++) {
    assert.equal(await hold(pool, id, `r${i}`, 1_000_000), undefined);
    await settle(pool, id, `r${i}`, i % 3 === 0 ? 0 : 1_000);
  }
  // As versions with leases wrote them.
  for (const kind of ["hold", "release"])
    await pool.query("insert into ledger (workspace_id, at, kind, reference) values ($1, now(), $2, 'r0')", [id, kind]);
  // Many entries that differ by microseconds, which a Date cannot represent.
  await pool.query(
    `insert into ledger (workspace_id, at, kind, reference)
     select $1, now() + i % 3 * interval '1 microsecond', 'grant', 'm' || i from generate_series(1, 30) i`,
    [id],
  );
  const all = await credits.listLedger({ workspace: "w", pageSize: 1_000 });
  assert.equal(all.entries.length, 37);
  const seen: string[] = [];
  let pageToken = "";
  do {
    const page = await credits.listLedger({ workspace: "w", pageSize: 7, pageToken });
    seen.push(...page.entries.map((entry) => entry.id));
    if (pageToken === "") await book(credits, "grant", "1", "later");
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  assert.deepEqual(
    seen,
    all.entries.map((entry) => entry.id),
  );
  const charges = await credits.listLedger({ workspace: "w", pageSize: 1_000, chargesOnly: true });
  assert.equal(charges.entries.filter(({ kind }) => kind === LedgerEntryKind.SETTLEMENT).length, 4);
  assert.ok(charges.entries.every(({ kind }) => kind !== LedgerEntryKind.HOLD && kind !== LedgerEntryKind.RELEASE));
  for (const pageToken of ["x", Buffer.from("1780000000000000 1 or 1=1").toString("base64url")])
    await assert.rejects(credits.listLedger({ workspace: "w", pageToken }), {
      kind: "invalid_request",
      field: "page_token",
    });
  await assert.rejects(credits.listLedger({ workspace: "w", pageSize: 1_001 }), {
    kind: "invalid_request",
    field: "page_size",
  });
  await assert.rejects(credits.listLedger({ workspace: "none" }), { kind: "unknown_entity" });
});

test("sets and clears each spend limit on its own, and applies it to the next requests", async (t) => {
  const { credits, workspaces, pool, id } = await open(t);
  await book(credits, "purchase", "10", "p");
  const owner: Actor = { kind: "owner", id: "tok_owner", workspaceId: id };
  const set = async (period: SpendPeriod, amount: string | undefined) => {
    const { spendLimits } =
      amount === undefined
        ? await credits.clearSpendLimit({ period }, owner)
        : await credits.setSpendLimit({ period, amount }, owner);
    return Object.fromEntries(spendLimits.map((limit) => [wordOf(SpendPeriodSchema, limit.period), limit.amount]));
  };
  const { DAY, MONTH, UNSPECIFIED } = SpendPeriod;
  assert.deepEqual(await set(DAY, "2.5"), { day: "2.5" });
  assert.deepEqual(await set(MONTH, "1000000000"), { day: "2.5", month: "1000000000" });
  assert.equal(await hold(pool, id, "r1", 2_500_001), "spend_limit_reached");
  assert.equal(await hold(pool, id, "r1", 2_500_000), undefined);
  assert.deepEqual(await set(DAY, "0"), { day: "0", month: "1000000000" });
  assert.equal(await hold(pool, id, "r2", 1), "spend_limit_reached");
  assert.deepEqual(await set(DAY, undefined), { month: "1000000000" });
  assert.deepEqual(await set(DAY, undefined), { month: "1000000000" });
  assert.equal(await hold(pool, id, "r2", 1), undefined);
  for (const [period, amount, field] of [
    [99 as SpendPeriod, "1", "period"],
    [UNSPECIFIED, "1", "period"],
    [DAY, "-1", "amount"],
    [DAY, "", "amount"],
    [DAY, "1000000000.1", "amount"],
  ] as const) {
    await assert.rejects(set(period, amount), { kind: "invalid_request", field });
  }
  const { workspace } = await workspaces.getWorkspace({}, owner);
  const month = create(SpendLimitSettingSchema, { period: MONTH, amount: "1000000000" });
  assert.deepEqual(workspace?.spendLimits, [month]);
});

test("tells the replicas with headroom of a workspace that its limits have changed", async (t) => {
  const { pool, url } = await testDatabase(t);
  const { credits, workspaces } = adminOf(pool);
  for (const id of ["ws_1", "ws_2"]) await makeAccount(pool, id, { granted: 1_000 });
  const told: string[] = [];
  t.onTestFinished(await listen(url, (workspace) => told.push(workspace)));
  await admitOn(await makeGrants(t, { pool }, "r1"));
  for (const workspace of ["ws-2", "ws-1"]) {
    await credits.setSpendLimit({ workspace, period: SpendPeriod.DAY, amount: "1" });
    await workspaces.setLimits({ workspace, overrides: overridesOf([{ name: "concurrent_requests", to: 1n }]) });
  }
  await until(() => told.length === 2);
  assert.deepEqual(told, ["ws_1", "ws_1"]);
});

/** A grant of 5 requests fits beside the 3 of the test below, and one of 9 credits does not. */
const GRANT =
  "insert into grants (workspace_id, replica, seq, at, credit_micro, held_micro, running, running_now, requests, " +
  "input_tokens, output_tokens, reply)";

test("finds each kind of difference between ledger, accounts, grants and usage", async (t) => {
  const { credits, pool, id } = await open(t);
  await book(credits, "grant", "3", "g");
  await book(credits, "purchase", "4", "p");
  for (const request of ["r1", "r2", "r3"]) assert.equal(await hold(pool, id, request, 2_000_000), undefined);
  await settle(pool, id, "r2", 2_000_000);
  await settle(pool, id, "r3", 2_000_000);
  assert.deepEqual((await credits.checkBooks({ workspace: "w" })).differences, []);
  assert.deepEqual((await credits.checkBooks({})).differences, []);
  for (const [statement, ...checks] of [
    ["update accounts set granted_micro = granted_micro + 1", "granted = ledger"],
    ["update accounts set purchased_micro = purchased_micro + 1", "purchased = ledger"],
    ["update accounts set purchased_total_micro = 0", "total purchased = ledger"],
    ["delete from bookings where reference = 'g'", "booking = ledger"],
    ["delete from ledger where reference = 'g'", "booking = ledger", "granted = ledger"],
    ["update ledger set reference = 'r3' where reference = 'r2'", "charge = generation", "settled once"],
    ["update generations set outcome = 'timed_out' where id = 'gen_r2'", "uncharged outcome", "usage by minute"],
    ["update generations set request_id = 'r2'", "charge = generation", "one generation"],
    ["update usage set output_tokens = 0 where unit = 'hour'", "usage by day", "usage by hour"],
    ["update usage set requests = 9 where unit = 'minute'", "usage by hour", "usage by minute"],
    ["update usage set credits_micro = 0 where unit = 'day'", "usage = ledger", "usage by day"],
    ["update periods set spent_micro[4] = 5", "spent in period = ledger"],
    [`update accounts set spend_limits = '{"week": 1}'`, "spend limit"],
    [
      `insert into replicas values ('r', now() - interval '2 h'), ('other', now());
       update grants set replica = 'r', at = now() - interval '2 h'`,
      "no orphaned grant",
    ],
    [`${GRANT} values ('${id}', 'a', 1, now(), 9000000, 0, 0, 0, 0, 0, 0, '{}')`, "reserved credit"],
    [`${GRANT} values ('${id}', 'a', 1, now(), 1, 2, 0, 0, 0, 0, 0, '{}')`, "hold within grant"],
    [
      `${GRANT} values ('${id}', 'a', 1, now(), 0, 0, 0, 0, 5, 0, 0, '{}');
       update accounts set limits = '{"requests_per_day": 7}'`,
      "reserved requests_per_day",
    ],
  ] as const) {
    await assert.rejects(
      pool.tx(async (query) => {
        await query(statement);
        const within = adminOf({ ...pool, query, tx: (run) => run(query) });
        const { differences } = await within.credits.checkBooks({});
        const names = new Set(differences.map(({ check }) => check));
        for (const check of checks) assert.ok(names.has(check), `${statement}: ${[...names]}`);
        assert.ok(differences.every(({ workspace }) => workspace === "w"));
        throw new Error("undo");
      }),
      { message: "undo" },
    );
  }
  await assert.rejects(
    pool.tx(async (query) => {
      await query("update accounts set granted_micro = granted_micro + 1");
      const within = adminOf({ ...pool, query, tx: (run) => run(query) });
      const figures = { expected: "0", found: "0.000001" };
      assert.deepEqual((await within.credits.checkBooks({ workspace: "w" })).differences, [
        create(BooksDifferenceSchema, { check: "granted = ledger", workspace: "w", ...figures }),
      ]);
      throw new Error("undo");
    }),
    { message: "undo" },
  );
});

test("reports no violation when a spend limit is lowered below the amount already spent", async (t) => {
  const { credits, pool, id } = await open(t);
  await book(credits, "purchase", "4", "p");
  assert.equal(await hold(pool, id, "r1", 2_000_000), undefined);
  await credits.setSpendLimit({ workspace: "w", period: SpendPeriod.WEEK, amount: "1" });
  assert.deepEqual((await credits.checkBooks({ workspace: "w" })).differences, []);
});

test("keeps each balance at zero or above and equal to its ledger, for any bookings and requests", async (t) => {
  const { credits, pool, id } = await open(t);
  type Step =
    | { do: "book"; kind: BookingKind; micro: bigint; reference: number }
    | { do: "hold"; micro: number }
    | { do: "settle"; micro: number }
    | { do: "release" };
  const step = fc.oneof<fc.Arbitrary<Step>[]>(
    fc.record({
      do: fc.constant("book" as const),
      kind: fc.constantFrom("grant" as const, "purchase" as const, "deduct" as const),
      micro: fc.bigInt({ min: -1n, max: 60n }),
      reference: fc.nat(12),
    }),
    fc.record({ do: fc.constant("hold" as const), micro: fc.nat(40) }),
    fc.record({ do: fc.constant("settle" as const), micro: fc.nat(40) }),
    fc.record({ do: fc.constant("release" as const) }),
  );
  let round = 0;
  let requests = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      round++;
      const booked = new Map<number, Step>();
      const run = async (of: Step): Promise<void> => {
        if (of.do === "hold") await hold(pool, id, `r${++requests}`, of.micro);
        else if (of.do === "settle" || of.do === "release") {
          const [grant] = await pool.query<{ request: string; hold: bigint }>(
            "select replica as request, credit_micro as hold from grants limit 1",
          );
          if (!grant) return;
          if (of.do === "release") await pool.query("select end_grants($1, $2)", [id, grant.request]);
          else await settle(pool, id, grant.request, Math.min(of.micro, Number(grant.hold)));
        } else {
          const digits = String(of.micro < 0n ? -of.micro : of.micro).padStart(6, "0");
          const amount = `${of.micro < 0n ? "-" : ""}0.${digits}`;
          await book(credits, of.kind, amount, `${round}-${of.reference}`).then(
            () => booked.set(of.reference, booked.get(of.reference) ?? of),
            (error: { kind: string; field: string }) => assert.equal(error.kind, "invalid_request"),
          );
        }
      };
      // Three at a time, as from several replicas.
      for (let i = 0; i < steps.length; i += 3) await Promise.all(steps.slice(i, i + 3).map(run));
      await checkBooks(pool, id);
      const [account] = await pool.query<{ ok: boolean }>(
        `select granted_micro >= 0 and purchased_micro >= 0 and held between 0 and granted_micro + purchased_micro as ok
         from accounts, in_use(workspace_id) where workspace_id = $1`,
        [id],
      );
      assert.equal(account?.ok, true);
      const [row] = await pool.query<{ n: bigint }>("select count(*) as n from bookings where reference like $1", [
        `${round}-%`,
      ]);
      assert.equal(Number(row?.n), booked.size);
    }),
    { numRuns: 40 },
  );
});

test("every call fails with overloaded while the database is unreachable", async () => {
  const pool = openPool("postgres://nobody@127.0.0.1:1/none");
  const { credits } = adminOf(pool);
  const calls = [
    book(credits, "grant", "1", "r"),
    credits.listLedger({ workspace: "w" }),
    credits.checkBooks({ workspace: "w" }),
    credits.setSpendLimit({ workspace: "w", period: SpendPeriod.DAY, amount: "1" }),
  ];
  await Promise.all(calls.map((call) => assert.rejects(call, { kind: "overloaded" })));
  await pool.end();
});
