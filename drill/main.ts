/**
 * Runs the guide docs/more-than-one-machine.md on this machine: three replicas behind HAProxy, PgBouncer in transaction
 * mode, a primary with a synchronous standby. Loses the primary and a replica under load, promotes the standby, and
 * checks that every answer was charged once.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { checkBooks, makeAccount } from "../test/helpers/books.ts";
import { spawnCli } from "../test/helpers/cli.ts";
import { type Lifetime, lifetimeOf } from "../test/helpers/lifetime.ts";
import { checkCharges, startFaultyVendor, startLoad } from "../test/helpers/load.ts";
import { startService, type TestService } from "../test/helpers/service.ts";
import { type Machines, startMachines } from "./machines.ts";
import { startProbe } from "./probe.ts";

/** Time under load before the faults, and after the service is back, in milliseconds. */
const BEFORE_MS = 5_000;
const AFTER_MS = 10_000;
/** Longest wait until no hold is left after the load, in milliseconds. */
const HOLDS_MS = 40_000;
const CLIENTS = 30;
const CREDIT = 1_000_000_000;

/** No limits: what is tested is that nothing is lost. */
const TIERS = '[{"name":"free","purchased":0,"limits":{}}]';

const SENDERS = [
  { workspaceId: "ws_mixed", mix: { unary: 0.5, stream: 0.4, leave: 0.1, keyed: 0 } },
  { workspaceId: "ws_keyed", mix: { unary: 0, stream: 0, leave: 0, keyed: 1 } },
];

async function drill(t: Lifetime): Promise<void> {
  say("Starting Postgres with a synchronous standby, HAProxy and PgBouncer.");
  const machines = await startMachines();
  t.onTestFinished(async () => machines[Symbol.asyncDispose]());
  const migration = await spawnCli(["migrate"], machines.replicaEnv(1));
  if (migration.code !== 0) throw new Error(migration.stderr);
  say(`chorus migrate: ${migration.stdout.trim().split("\n").at(-1)}`);
  const { pool } = machines;
  for (const id of ["ws_mixed", "ws_keyed", "ws_probe"]) await makeAccount(pool, id, { secret: id, granted: CREDIT });
  const vendor = await startFaultyVendor();
  t.onTestFinished(() => vendor.close());

  const start = async (number: number, dataDir: string): Promise<TestService> => {
    const { DATABASE_URL: databaseUrl = "", ...env } = machines.replicaEnv(number);
    return startService(t, { databaseUrl, dataDir, env: { ...vendor.env, ...env, CHORUS_TIERS: TIERS } });
  };
  const folders = await Promise.all([1, 2, 3].map(() => makeFolder(t)));
  const replicas = await Promise.all(folders.map((folder, i) => start(i + 1, folder)));
  const probe = startProbe(machines.url, "ws_probe");
  t.onTestFinished(() => probe.stop());
  await probe.answered(0);
  say(`Three replicas are ready. ${CLIENTS} callers send requests.`);
  const load = startLoad(t, () => [machines], SENDERS, CLIENTS);
  await sleep(BEFORE_MS);

  say("The primary and the second replica lose their power. The standby is promoted.");
  const lostAt = performance.now();
  await Promise.all([machines.losePrimary(), replicas[1]?.stop("SIGKILL")]);
  const promotedAt = performance.now();
  await machines.promoteStandby();
  const backAt = await probe.answered(lostAt);
  say(`Back ${seconds(backAt - lostAt)} after the loss, ${seconds(backAt - promotedAt)} after the promotion began.`);
  replicas[1] = await start(2, folders[1] ?? "");
  await sleep(AFTER_MS);
  await load.finish();
  await probe.stop();
  say(`A revoked key was refused everywhere after ${seconds(await revoke(machines, replicas))}.`);
  await check(machines, replicas, load);
}

/** Revokes a key in use. @returns the time until no replica accepts it, in milliseconds */
async function revoke({ pool }: Machines, replicas: readonly TestService[]): Promise<number> {
  const accepted = async () => {
    const statuses = await Promise.all(
      replicas.map(({ url }) => fetch(`${url}/v1/quotas`, { headers: { "x-api-key": "ws_probe" } })),
    );
    return statuses.some(({ status }) => status === 200);
  };
  if (!(await accepted())) throw new Error("The key was not accepted before it was revoked.");
  await pool.query("update api_keys set revoked_at = now() where workspace_id = 'ws_probe'");
  const from = performance.now();
  while (await accepted()) await sleep(5);
  return performance.now() - from;
}

async function check({ pool }: Machines, replicas: readonly TestService[], load: ReturnType<typeof startLoad>) {
  const from = performance.now();
  while ((await pool.query("select from grants")).length > 0) {
    if (performance.now() - from > HOLDS_MS) throw new Error("Holds of the lost replica were not released.");
    await sleep(100);
  }
  say(`The last hold was released ${seconds(performance.now() - from)} after the load.`);
  for (const replica of replicas) {
    if ((await replica.stop()) !== 0) throw new Error(`A replica did not stop cleanly:\n${replica.output()}`);
  }
  for (const replica of replicas) {
    const error = /^.*"level":(50|60).*$/m.exec(replica.output())?.[0];
    if (error) throw new Error(`A replica has logged an error: ${error}`);
  }
  await checkBooks(pool);
  const counts = await checkCharges(pool, load, true);
  say(`Each answer was charged once, nothing was lost, and the books agree: ${JSON.stringify(counts)}`);
  const failed = load.seen.filter(({ outcome }) => outcome === "lost" || outcome === "refused").length;
  say(`${failed} of ${load.seen.length + load.keyed.size} requests were refused or lost their connection.`);
}

async function makeFolder(t: Lifetime): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-drill-data-"));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

/** Prints a line with the time since the start. */
function say(line: string): void {
  console.log(`${seconds(performance.now()).padStart(7)}  ${line}`);
}

let undo: (() => Promise<void>) | undefined;
try {
  await drill(
    lifetimeOf((stop) => {
      undo = stop;
    }),
  );
} catch (error) {
  console.error(error instanceof Error ? (process.env.DEBUG ? error : error.message) : error);
  process.exitCode = 1;
} finally {
  await undo?.();
}
