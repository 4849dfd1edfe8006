import assert from "node:assert/strict";
import { test } from "vitest";
import { Failure } from "../../src/contract/failure.ts";
import type { Pool } from "../../src/store/pool.ts";
import { answered, ask, checkBooks, makeAccount, makeReplica, type Replica } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import { type SentItem, sentItems } from "../helpers/scripted.ts";

const USERS = 2_000;
/** What the template allows each user on a day. */
const AMOUNT = 40;
/** Some users send more requests, one after the other, so that the replica reserves headroom of them. */
const BUSY = { users: 256, requests: 6 };
const CALLERS = 128;

/** A pool that notes the items of its statements. */
function watched(pool: Pool): { pool: Pool; items: Partial<SentItem>[]; bytes: number[] } {
  const items: Partial<SentItem>[] = [];
  const bytes: number[] = [];
  const query: Pool["query"] = (text, values) => {
    if (/exchange\(|append_settlements?\(/.test(text)) {
      items.push(...sentItems(text, values));
      bytes.push(JSON.stringify(values).length);
    }
    return pool.query(text, values);
  };
  return { pool: { ...pool, query }, items, bytes };
}

/** Sends a request of a user, and ends it. @returns whether it was admitted */
async function send({ take }: Replica, user: string): Promise<boolean> {
  const request = ask("ws_1", { subjects: { user } });
  try {
    const lease = await take({ ...request, caller: { ...request.caller, capped: ["user"] } });
    await lease.settle(answered());
    return true;
  } catch (error) {
    assert.ok(error instanceof Failure && error.limit === "user:requests_per_day", String(error));
    return false;
  }
}

/** Sends requests of users with some callers at once. @returns whether each was admitted */
async function sendAll(replica: Replica, users: number, requests: number): Promise<boolean[]> {
  const admitted: boolean[] = [];
  let next = 0;
  const callers = Array.from({ length: CALLERS }, async () => {
    for (let i = next++; i < users; i = next++)
      for (let n = 0; n < requests; n++) admitted.push(await send(replica, `u-${i}`));
  });
  await Promise.all(callers);
  return admitted;
}

test("admits thousands of users under one template, each up to its cap, with items of a bounded size", async (t) => {
  const database = await testDatabase(t);
  const { pool, items, bytes } = watched(database.pool);
  await makeAccount(pool, "ws_1", { granted: 10 ** 12 });
  await pool.query("insert into caps values ('ws_1', 'c', 'user:*', 'requests', 'day', $1, 'refuse', null, now())", [
    AMOUNT,
  ]);
  const replica = await makeReplica(t, pool, { url: database.url });

  const greedy = Array.from({ length: 2 * AMOUNT }, () => send(replica, "greedy"));
  assert.equal((await sendAll(replica, USERS, 1)).includes(false), false);
  assert.equal((await sendAll(replica, BUSY.users, BUSY.requests)).includes(false), false);
  assert.equal((await Promise.all(greedy)).filter((isAdmitted) => isAdmitted).length, AMOUNT);
  assert.deepEqual([await send(replica, "greedy"), await send(replica, "u-1")], [false, true]);

  await replica.admission.report("ws_1");
  await checkBooks(database.pool);
  const total = USERS + BUSY.users * BUSY.requests + AMOUNT + 1;
  const [sums] = await database.pool.query(
    `select (select count(*)::int from subject_periods) as subjects,
       (select sum(requests[2])::int from subject_periods) as counted,
       (select sum(requests)::int from usage_subjects where unit = 'day') as answered,
       (select count(*)::int from generations) as generations`,
  );
  assert.deepEqual(sums, { subjects: USERS + 1, counted: total, answered: total, generations: total });

  const most = (name: "asks" | "posts" | "subjects") => Math.max(...items.map((item) => item[name]?.length ?? 0));
  assert.ok(most("asks") <= 256 && most("posts") <= 256, `${most("asks")} asks, ${most("posts")} posts`);
  assert.ok(most("subjects") <= 1_024 + 256, `${most("subjects")} subjects`);
  assert.ok(Math.max(...bytes) <= 512 * 1024, `${Math.max(...bytes)} bytes`);
  const asked = items.reduce((sum, { asks = [] }) => sum + asks.length, 0);
  assert.ok(asked < total - BUSY.users, `${asked} requests of ${total} asked`);
});
