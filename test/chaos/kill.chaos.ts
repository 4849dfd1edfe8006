import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { test } from "vitest";
import { accountOf, checkBooks, makeAccount, makeFolder } from "../helpers/books.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { type DatabaseServer, startServer } from "../helpers/server.ts";
import { startOwnService, type TestService } from "../helpers/service.ts";
import { startVendor } from "../helpers/vendors.ts";

const CREDIT = 1_000_000_000n;

type Five<T> = [T, T, T, T, T];

interface Answer {
  status: number;
  body: { id?: string; answer?: string; usage?: { credits: number }; code?: string };
}

/** Starts a vendor that a tag in the prompt makes slow, stuck or silent. */
async function startTaggedVendor(t: Lifetime) {
  const vendor = await startVendor("openai", ({ body }) => {
    if (body.includes("[silent]")) return { end: "silent" };
    if (body.includes("[stuck]")) return { text: ["One ", "two ", "three"], betweenMs: 20, end: "hang", after: 2 };
    if (body.includes("[slow]")) return { text: "Slow but sure.", headersMs: 1_200 };
    return { text: "At once." };
  });
  t.onTestFinished(() => vendor.close());
  return vendor;
}

async function send(service: TestService, secret: string, prompt: string): Promise<Answer> {
  const headers = { "x-api-key": secret, "idempotency-key": `key-of-${secret}` };
  const response = await service.post("/v1/generate", { prompt, max_tokens: 50 }, headers);
  return { status: response.status, body: (await response.json()) as Answer["body"] };
}

/** Sends a request again until it is answered, as a caller does that lost the answer. */
async function retry(service: TestService, secret: string, prompt: string): Promise<Answer> {
  for (const until = Date.now() + 30_000; ; await sleep(250)) {
    const answer = await send(service, secret, prompt);
    if (answer.status !== 409 && answer.status !== 503) return answer;
    assert.ok(Date.now() < until, "the idempotency key stayed in use for 30 s");
  }
}

/**
 * Locks the account of a workspace to make statements that use it wait.
 * @returns a function that releases the lock
 */
async function lock({ url }: DatabaseServer, workspaceId: string): Promise<() => Promise<void>> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query("begin");
  await client.query("select from accounts where workspace_id = $1 for update", [workspaceId]);
  return () => client.end();
}

async function until(what: string, holds: () => Promise<boolean>, ms = 10_000): Promise<void> {
  for (const end = Date.now() + ms; !(await holds()); await sleep(10))
    assert.ok(Date.now() < end, `timed out: ${what}`);
}

/** Charges of a workspace in micro-credits: the total and that of each request. */
async function charged({ pool }: DatabaseServer, workspaceId: string): Promise<{ all: bigint; each: bigint[] }> {
  const rows = await pool.query<{ id: string; c: bigint }>(
    "select id, credits_micro as c from generations where workspace_id = $1 and credits_micro > 0",
    [workspaceId],
  );
  return { all: CREDIT - (await accountOf(pool, workspaceId)).granted, each: rows.map(({ c }) => c) };
}

test("releases holds and charges a retry once after kill -9 at each state of a request", async (t) => {
  const server = await startServer(t);
  const vendor = await startTaggedVendor(t);
  const states = {
    taking: "[slow] Killed while its lease is being taken.",
    asking: "[silent] Killed while the vendor works.",
    streaming: "[stuck] Killed while it streams.",
    settling: "[slow] Killed while its settlement is under way.",
    settled: "[slow] Killed when the settlement is done, before the answer is written.",
  };
  for (const state of Object.keys(states))
    await makeAccount(server.pool, `ws_${state}`, { secret: state, granted: CREDIT });
  const dataDir = await makeFolder(t);
  const start = (folder: string) => startOwnService(t, { databaseUrl: server.url, dataDir: folder, env: vendor.env });
  // A locked account stops all statements of a replica, so each state of a statement has a victim.
  const folders = [dataDir, await makeFolder(t), await makeFolder(t), await makeFolder(t), await makeFolder(t)];
  const [victim, taking, settling, settled, other] = (await Promise.all(folders.map(start))) as Five<TestService>;
  const victims = { taking, asking: victim, streaming: victim, settling, settled };

  const lost = (state: keyof typeof states) =>
    send(victims[state], state, states[state]).then(
      ({ status }) => assert.fail(`${state}: ${status}`),
      () => undefined,
    );
  const stream = await victim.post("/v1/generate:stream", { prompt: states.streaming }, { "x-api-key": "streaming" });
  const reader = stream.body?.getReader();
  assert.match(Buffer.from((await reader?.read())?.value ?? []).toString(), /event: delta/);
  const clients = [lost("asking"), lost("settling"), lost("settled")];
  await until("requests that run", async () => {
    const rows = await server.pool.query("select from grants where running_now > 0");
    return rows.length === 4;
  });
  const [ofTaking, ofSettling, ofSettled] = await Promise.all(
    ["ws_taking", "ws_settling", "ws_settled"].map((id) => lock(server, id)),
  );
  const untilWaiting = (count: number) =>
    until(`${count} statements that wait`, async () => {
      const rows = await server.pool.query(
        "select from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'exchange'",
      );
      return rows.length === count;
    });
  // A statement waits for a lock for a second. The settlements begin together, and the third joins them.
  await untilWaiting(2);
  clients.push(lost("taking"));
  await untilWaiting(3);
  for (const { process } of Object.values(victims)) process.kill("SIGSTOP");
  await ofSettled?.();
  await until("the settlement", async () => (await charged(server, "ws_settled")).each.length === 1);
  await Promise.all([victim, taking, settling, settled].map((one) => one.stop("SIGKILL")));
  const killed = Date.now();
  await Promise.all(clients);
  await Promise.all([ofTaking?.(), ofSettling?.()]);

  const next = await start(dataDir);
  const answers = Object.entries({ taking: next, asking: other, settling: next, settled: other }).map(
    async ([state, service]) => {
      const prompt = states[state as keyof typeof states];
      // The retry must send the same prompt, so the vendor's script changes instead.
      if (state === "asking") vendor.always({ text: "At last." });
      const { status, body } = await retry(service, state, prompt);
      assert.equal(status, 200, `${state}: ${body.code}`);
      const { all, each } = await charged(server, `ws_${state}`);
      assert.deepEqual(each, [all], state);
      assert.equal(body.usage?.credits, Number(all) / 1e6, state);
      // Another retry returns the same answer.
      const again = await retry(next, state, prompt);
      assert.equal(again.body.id, body.id);
      assert.equal((await charged(server, `ws_${state}`)).all, all);
    },
  );
  await Promise.all(answers);
  await until(
    "release",
    async () => (await server.pool.query("select from grants")).length === 0,
    30_000 - (Date.now() - killed),
  );
  assert.deepEqual(await charged(server, "ws_streaming"), { all: 0n, each: [] });
  await checkBooks(server.pool);
});

test("writes journaled settlements after a kill and restart, and a retry returns the charged answer", async (t) => {
  const server = await startServer(t);
  const vendor = await startTaggedVendor(t);
  await makeAccount(server.pool, "ws_1", { secret: "waiting", granted: CREDIT });
  const dataDir = await makeFolder(t);
  const start = () => startOwnService(t, { databaseUrl: server.url, dataDir, env: vendor.env });
  const victim = await start();
  const answer = send(victim, "waiting", "[slow] The database goes away meanwhile.");
  await until("the grant", async () => (await server.pool.query("select from grants")).length === 1);
  await server.stop();
  const { status, body } = await answer;
  assert.equal(status, 200);
  assert.ok(body.usage && body.usage.credits > 0);
  assert.deepEqual((await send(victim, "waiting", "Another one.")).status, 503);
  await victim.stop("SIGKILL");
  await server.start();
  assert.deepEqual(await charged(server, "ws_1"), { all: 0n, each: [] });

  const next = await start();
  await until("the settlement", async () => (await charged(server, "ws_1")).each.length === 1);
  const again = await retry(next, "waiting", "[slow] The database goes away meanwhile.");
  assert.deepEqual(again.body.id, body.id);
  assert.deepEqual(again.body.answer, body.answer);
  assert.deepEqual(await charged(server, "ws_1"), {
    all: BigInt(Math.round(body.usage.credits * 1e6)),
    each: [BigInt(Math.round(body.usage.credits * 1e6))],
  });
  await until("the return", async () => (await server.pool.query("select from grants")).length === 0, 30_000);
  await checkBooks(server.pool);
});
