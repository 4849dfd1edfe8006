import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { accountOf, checkBooks, makeAccount, makeFolder } from "../helpers/books.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { checkCharges, startFaultyVendor, startLoad } from "../helpers/load.ts";
import { type DatabaseServer, startServer } from "../helpers/server.ts";
import { startOwnService, type TestService } from "../helpers/service.ts";

/** Duration of the faults in seconds; set CHORUS_TEST_CHAOS_SECONDS for a longer search. */
const SECONDS = Number(process.env.CHORUS_TEST_CHAOS_SECONDS ?? 50);

/** Micro-credits. A request holds about 25,000 and costs about 4,000. */
const CREDIT = 1_000_000;

const SENDERS = [
  { workspaceId: "ws_rich", mix: { unary: 0.5, stream: 0.3, leave: 0.2, keyed: 0 } },
  { workspaceId: "ws_keyed", mix: { unary: 0, stream: 0, leave: 0, keyed: 1 } },
  { workspaceId: "ws_poor", mix: { unary: 0.5, stream: 0.3, leave: 0.2, keyed: 0 } },
  { workspaceId: "ws_capped", mix: { unary: 0.6, stream: 0.4, leave: 0, keyed: 0 } },
];
const MOST_RUNNING = 3;
const MOST_A_MINUTE = 40;
const MOST_SPENT = CREDIT / 2;

/** A replica that is restarted with the same data folder, and so with the same journal. */
interface Slot {
  dataDir: string;
  service: TestService | undefined;
  /** Whether callers send it requests, as a load balancer would decide. */
  open: boolean;
}

test("keeps ledger, caps and holds correct and charges each answer once under crashes, stops and hangs", async (t) => {
  const server = await startServer(t);
  const vendor = await startFaultyVendor();
  t.onTestFinished(() => vendor.close());
  const account = async (id: string, rest: object) => makeAccount(server.pool, id, { secret: id, ...rest });
  await account("ws_rich", { granted: 1_000 * CREDIT });
  await account("ws_keyed", { purchased: 1_000 * CREDIT });
  await account("ws_poor", { granted: 40_000 });
  await account("ws_capped", {
    granted: CREDIT / 4,
    purchased: CREDIT,
    limits: { concurrent_requests: MOST_RUNNING, requests_per_minute: MOST_A_MINUTE },
    spendLimits: { day: MOST_SPENT, week: MOST_SPENT + 1, month: MOST_SPENT + 2 },
  });

  const start = (dataDir: string) =>
    startOwnService(t, {
      databaseUrl: server.url,
      dataDir,
      env: { ...vendor.env, LOG_LEVEL: "error", CHORUS_DRAIN_MS: "2000" },
    });
  const slots: Slot[] = await Promise.all(
    [1, 2, 3].map(async () => {
      const dataDir = await makeFolder(t);
      return { dataDir, service: await start(dataDir), open: true };
    }),
  );
  const load = startLoad(
    t,
    () => slots.flatMap(({ service, open }) => (service && open ? [service] : [])),
    SENDERS,
    60,
  );
  const watch = watchCaps(t, server);
  const end = Date.now() + SECONDS * 1_000;
  const faults: Record<string, number> = {};
  const happened = (fault: string) => {
    faults[fault] = (faults[fault] ?? 0) + 1;
  };
  const outputs: TestService[] = [];

  const disturbReplica = async (slot: Slot) => {
    while (Date.now() < end) {
      await sleep(1_000 + Math.random() * 6_000);
      const { service } = slot;
      if (!service) continue;
      const what = pick(["SIGKILL", "SIGKILL", "SIGKILL", "SIGTERM", "pause"]);
      happened(what);
      slot.open = false;
      if (what === "pause") await pause(service, 3_000);
      else {
        outputs.push(service);
        const code = await service.stop(what as NodeJS.Signals);
        if (what === "SIGTERM") assert.equal(code, 0, service.output());
        slot.service = undefined;
        slot.service = await restart(() => start(slot.dataDir));
      }
      slot.open = true;
    }
  };
  /** Pauses a replica until it is declared dead, and lets it continue. */
  const pauseReplica = async (slot: Slot) => {
    while (Date.now() < end) {
      await sleep(3_000);
      happened("long pause");
      slot.open = false;
      if (slot.service) await pause(slot.service, 19_000);
      slot.open = true;
    }
  };
  const disturbDatabase = async () => {
    while (Date.now() < end) {
      await sleep(2_000 + Math.random() * 5_000);
      const what = pick(["crash", "crash", "stop", "freeze", "disconnect"]);
      happened(what);
      if (what === "crash") await server.crash();
      if (what === "stop") await server.stop();
      if (what === "crash" || what === "stop") {
        await sleep(Math.random() * 2_500);
        await server.start();
      }
      if (what === "freeze") {
        await server.freeze();
        await sleep(500 + Math.random() * 4_000);
        server.thaw();
      }
      if (what === "disconnect")
        await retryUntilDone(() =>
          server.pool.query(
            "select pg_terminate_backend(pid) from pg_stat_activity " +
              "where backend_type = 'client backend' and pid <> pg_backend_pid()",
          ),
        );
      await retryUntilDone(() =>
        server.pool.query("select book_credit('ws_poor', 'purchase', $1, 30000)", [`${Math.random()}`]),
      );
    }
  };
  const serviceFaults = slots.map((slot, i) => (i === 0 ? pauseReplica(slot) : disturbReplica(slot)));
  await Promise.all([...serviceFaults, disturbDatabase()]);

  for (const slot of slots) slot.service ??= await start(slot.dataDir);
  await load.finish();
  const ended = Date.now();
  while ((await server.pool.query("select from grants")).length > 0) {
    assert.ok(Date.now() - ended < 30_000, "holds were not released");
    await sleep(100);
  }
  await t.annotate(`the last hold was released ${Date.now() - ended} ms after the load`);
  for (const { service, dataDir } of slots) {
    assert.equal(await service?.stop(), 0);
    assert.deepEqual(await readdir(join(dataDir, "journal")), [], "the journal still has settlements");
  }
  await watch.end();
  await checkBooks(server.pool);
  const counts = await checkCharges(server.pool, load, true);
  await t.annotate(
    `faults: ${JSON.stringify(faults)}; seen: ${JSON.stringify(counts)}; caps checked ${watch.count()} times`,
  );
  for (const { workspaceId } of SENDERS) {
    const { held, running } = await accountOf(server.pool, workspaceId);
    assert.deepEqual({ held, running }, { held: 0n, running: 0 });
  }
  for (const service of [...outputs, ...slots.flatMap(({ service }) => service ?? [])])
    assert.doesNotMatch(service.output(), /"level":(50|60)/);
});

/** Checks continuously that no cap is exceeded, if everything is used that replicas have reserved. */
function watchCaps(t: Lifetime, { pool }: DatabaseServer): { end(): Promise<void>; count(): number } {
  let ending = false;
  let count = 0;
  t.onTestFinished(() => {
    ending = true;
  });
  const checking = (async () => {
    while (!ending) {
      const row = await pool
        .query<{ running: number; requests: number; spent: number; rest: number }>(
          `select g.running::int, (p.requests[1] + g.requests)::int as requests,
             (p.spent_micro[2] + greatest(0, g.credit - a.granted_micro))::int as spent,
             (select min(granted_micro + purchased_micro
                - (select coalesce(sum(credit_micro), 0) from grants where workspace_id = b.workspace_id))
              from accounts b)::float as rest
           from accounts a, periods_at(a.workspace_id, clock_timestamp()) p, lateral (
             select coalesce(sum(running), 0) as running, coalesce(sum(credit_micro), 0) as credit,
               coalesce(sum(requests) filter (where at >= date_trunc('minute', p.at, 'UTC')), 0) as requests
             from grants where workspace_id = a.workspace_id) g
           where a.workspace_id = 'ws_capped'`,
        )
        .then(
          ([row]) => row,
          () => undefined,
        );
      await sleep(50);
      if (!row) continue;
      count += 1;
      assert.ok(row.running <= MOST_RUNNING, `${row.running} running requests`);
      assert.ok(row.requests <= MOST_A_MINUTE, `${row.requests} requests in a minute`);
      assert.ok(row.spent <= MOST_SPENT, `${row.spent} spent or reserved`);
      assert.ok(row.rest >= 0, `${row.rest} left`);
    }
  })();
  checking.catch(() => undefined);
  return {
    async end() {
      ending = true;
      await checking;
    },
    count: () => count,
  };
}

async function pause({ process }: TestService, ms: number): Promise<void> {
  process.kill("SIGSTOP");
  await sleep(ms);
  process.kill("SIGCONT");
}

/** Retries a start that fails because the database is unreachable, as a supervisor would. */
async function restart(start: () => Promise<TestService>): Promise<TestService> {
  for (const until = Date.now() + 60_000; ; await sleep(200)) {
    try {
      return await start();
    } catch (error) {
      if (
        Date.now() > until ||
        !/cannot (start|be reached)|Connection terminated|starting up|ECONN/.test(String(error))
      )
        throw error;
    }
  }
}

async function retryUntilDone(run: () => Promise<unknown>): Promise<void> {
  for (const until = Date.now() + 20_000; ; await sleep(100)) {
    try {
      await run();
      return;
    } catch (error) {
      if (Date.now() > until) throw error;
    }
  }
}

function pick<T>(from: readonly [T, ...T[]]): T {
  return from[Math.floor(Math.random() * from.length)] ?? from[0];
}
