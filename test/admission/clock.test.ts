import assert from "node:assert/strict";
import { test } from "vitest";
import type { Failure } from "../../src/contract/failure.ts";
import type { Pool } from "../../src/store/pool.ts";
import { answered, ask, checkBooks, makeAccount, makeReplica } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";

const SECOND = 1_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

interface World {
  pool: Pool;
  /** Moves the clock of the database. */
  move(ms: number): void;
  /** Sends a request. @returns `ok`, or the limit that refused it and the wait in milliseconds */
  send(): Promise<"ok" | [limit: string | undefined, retryAfterMs: number | undefined]>;
}

async function setUp(t: Lifetime, limits: Record<string, number>): Promise<World> {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { purchased: 10n ** 12n, limits, spendLimits: { day: 10 ** 12, month: 10 ** 12 } });
  let now = Date.parse("2026-05-06T07:08:00.000Z");
  const replica = await makeReplica(t, pool, { clock: () => now });
  return {
    pool,
    move(ms) {
      now += ms;
    },
    async send() {
      try {
        const lease = await replica.take(ask("ws_1", { authenticatedAt: Number.NEGATIVE_INFINITY }));
        await lease.settle(answered());
        return "ok";
      } catch (error) {
        const { limit, retryAfterMs } = error as Failure;
        return [limit, retryAfterMs];
      }
    },
  };
}

test("opens no window again when the clock steps forward and back, any number of times", async (t) => {
  for (const step of [200, 90 * SECOND, HOUR, 20 * HOUR]) {
    const { pool, move, send } = await setUp(t, { requests_per_minute: 1, requests_per_day: 2 });
    assert.equal(await send(), "ok");
    move(step);
    const isNewMinute = step >= 60 * SECOND;
    assert.equal((await send()) === "ok", isNewMinute, `${step} forward`);
    for (let i = 1; i <= 6; i++) {
      move(i % 2 === 1 ? -step + 10 : step);
      assert.notEqual(await send(), "ok", `${step}, ${i}`);
    }
    await checkBooks(pool);
  }
});

test("takes at most three times the length of a window after a step back, and states the wait exactly", async (t) => {
  const { pool, move, send } = await setUp(t, { requests_per_minute: 1 });
  move(HOUR);
  assert.equal(await send(), "ok");
  move(-HOUR);
  let waits = 0;
  for (let passed = 0; passed < 2 * HOUR; waits++) {
    const answer = await send();
    assert.ok(Array.isArray(answer));
    const [limit, wait = 0] = answer;
    assert.equal(limit, "requests_per_minute");
    assert.ok(wait > 0 && wait <= 180 * SECOND, `${wait}`);
    move(wait - 2);
    assert.notEqual(await send(), "ok");
    move(2);
    assert.equal(await send(), "ok");
    passed += wait;
  }
  assert.ok(waits >= 55 && waits <= 62, `${waits} windows in two hours`);
  // The clock has caught up.
  assert.deepEqual(await pool.query("select at = clock as same from periods"), [{ same: true }]);
  await checkBooks(pool);
});

test("refused requests alone, too, let the window pass after a step back", async (t) => {
  const { move, send } = await setUp(t, { requests_per_minute: 1 });
  move(HOUR);
  assert.equal(await send(), "ok");
  move(-HOUR);
  let refusals = 0;
  while ((await send()) !== "ok") {
    refusals += 1;
    move(5 * SECOND);
  }
  assert.equal(refusals, 24);
});

test("after a step back by more than a day, keeps the counters and follows the clock", async (t) => {
  const { pool, move, send } = await setUp(t, { requests_per_minute: 1 });
  move(400 * DAY);
  assert.equal(await send(), "ok");
  move(-400 * DAY);
  assert.deepEqual(await send(), ["requests_per_minute", 60 * SECOND]);
  move(60 * SECOND);
  assert.equal(await send(), "ok");
  assert.deepEqual(await pool.query("select at from periods"), [{ at: new Date("2026-05-06T07:09:00Z") }]);
});

test("judges a key that expires by the clock, not by the time of the windows", async (t) => {
  const { pool, move, send } = await setUp(t, {});
  await pool.query("update api_keys set expires_at = '2026-05-06T07:30:00Z'");
  move(20 * 60 * SECOND);
  assert.equal(await send(), "ok");
  await pool.query("update periods set at = at + interval '1 hour', clock = at + interval '1 hour'");
  assert.equal(await send(), "ok");
});

test("accepts in the books a request that is settled the day after its spend limit was lowered", async (t) => {
  const { pool } = await testDatabase(t);
  await makeAccount(pool, "ws_1", { purchased: 10 ** 9, spendLimits: { day: 10 ** 9 } });
  let now = Date.parse("2026-05-06T23:59:50.000Z");
  const replica = await makeReplica(t, pool, { clock: () => now });
  const lease = await replica.take(ask("ws_1"));
  await pool.query(`update accounts set spend_limits = '{"day": 1000}'`);
  await pool.query(
    `insert into audit (workspace_id, at, actor_kind, actor_id, action, details)
     values ('ws_1', $1, 'owner', 'test', 'spend_limit.set', '{"period": "day"}')`,
    [new Date(now)],
  );
  now += 20 * SECOND;
  await lease.settle(answered());
  await pool.query("select end_grants('ws_1', $1)", [replica.id]);
  await checkBooks(pool);
  // The same spending without a request that was admitted before the change.
  await pool.query("update audit set at = at - interval '1 minute'");
  assert.deepEqual(
    (await pool.query<{ check_name: string }>("select check_name from check_books()")).map((row) => row.check_name),
    ["spend limit"],
  );
});
