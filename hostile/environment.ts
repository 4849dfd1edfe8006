import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { placement } from "../bench/server.ts";
import { hashSecret } from "../src/admission/secret.ts";
import { parseTiers } from "../src/config/tiers.ts";
import { makeAccount } from "../test/helpers/books.ts";
import type { Lifetime } from "../test/helpers/lifetime.ts";
import { type DatabaseServer, startServer } from "../test/helpers/server.ts";
import { startService, type TestService } from "../test/helpers/service.ts";
import { startChild } from "./child.ts";
import type { Attacker, AttackScenario } from "./scenario.ts";

/** What all scenarios share: Postgres and the vendor. */
export interface Environment extends AsyncDisposable {
  readonly database: DatabaseServer;
  /** Environment of a service that uses the vendor. */
  readonly vendorEnv: Readonly<Record<string, string>>;
  /** The same for a vendor that is reached by a name and closes each connection. */
  readonly closingVendorEnv: Readonly<Record<string, string>>;
}

export async function startEnvironment(): Promise<Environment> {
  await using stack = new AsyncDisposableStack();
  const vendor = stack.use(startChild("vendor.ts"));
  const vendorEnv = await vendor.ask<Record<string, string>>("address");
  const closingVendorEnv = await vendor.ask<Record<string, string>>("closingAddress");
  const database = await startServer(lifetime(stack));
  const running = stack.move();
  return { database, vendorEnv, closingVendorEnv, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

/** A lifetime that ends with the stack. */
export function lifetime(stack: AsyncDisposableStack): Lifetime {
  return { onTestFinished: (undo) => stack.defer(undo) };
}

/** Starts a service with the default configuration and what the scenario changes. Its data folder is removed. */
export async function startHostedService(
  stack: AsyncDisposableStack,
  { database, vendorEnv, closingVendorEnv }: Environment,
  { env = {}, openFiles, newConnections = false, nameServer }: AttackScenario,
): Promise<TestService> {
  const dataDir = await mkdtemp(join(tmpdir(), "chorus-hostile-"));
  stack.defer(() => rm(dataDir, { recursive: true, force: true }));
  const limit = openFiles === undefined ? [] : ["prlimit", `--nofile=${openFiles}`];
  const names = nameServer === undefined ? [] : await withNameServer(dataDir, nameServer);
  return startService(lifetime(stack), {
    databaseUrl: database.url,
    dataDir,
    launcher: [...names, ...limit, ...placement("server")],
    // As `npm start` starts it. Empty: the default, which is not that of tests.
    env: {
      ...(newConnections ? closingVendorEnv : vendorEnv),
      CHORUS_TIERS: "",
      CHORUS_MAX_LOOP_DELAY_MS: "",
      CHORUS_WARM_UP: "",
      LOG_LEVEL: "info",
      NODE_OPTIONS: "--disable-warning=ExperimentalWarning --use-largepages=silent",
      ...env,
    },
  });
}

/** The command that runs the command after it, on a machine with this name server only. */
async function withNameServer(folder: string, address: string): Promise<string[]> {
  const file = join(folder, "resolv.conf");
  await writeFile(file, `nameserver ${address}\n`);
  const script = `mount --bind "$0" /etc/resolv.conf && exec "$@"`;
  return ["unshare", "--mount", "sh", "-c", script, file];
}

const MICRO = 1_000_000;
let workspaces = 0;

/** Creates a workspace. @returns its identifier, and the secrets and identifiers of its keys */
export async function createWorkspace(
  { pool }: DatabaseServer,
  { credits = 0, tier = "free", limits, keys = 1 }: Attacker,
): Promise<{ id: string; secrets: string[]; keyIds: string[] }> {
  const id = `ws_hostile_${process.pid}_${workspaces++}`;
  const secrets = Array.from({ length: keys }, (_, i) => `ck_${id}_${i}`);
  const [secret = ""] = secrets;
  const figures = limits ?? (tier === "free" ? freeLimits() : {});
  await makeAccount(pool, id, { secret, purchased: credits * MICRO, limits: figures });
  const [first] = await pool.query<{ id: string }>("select id from api_keys where workspace_id = $1", [id]);
  const keyIds = [first?.id ?? "", ...secrets.slice(1).map((_, i) => `${first?.id}_${i}`)];
  for (const [i, secret] of secrets.entries()) {
    if (i === 0) continue;
    await pool.query(
      `insert into api_keys (workspace_id, id, secret_hash, prefix, scopes) values ($1, $2, $3, 'ck_', '{generate}')`,
      [id, keyIds[i], hashSecret(secret)],
    );
  }
  return { id, secrets, keyIds };
}

function freeLimits(): Record<string, number> {
  return { ...parseTiers(undefined)[0]?.limits };
}

/** Calls a method of the operator. @throws Error with the response if it fails */
export async function callAdmin(service: TestService, method: string, body: object): Promise<Record<string, string>> {
  const response = await fetch(`${service.rpcUrl}/chorus.admin.v1.${method}`, {
    method: "POST",
    headers: { authorization: `Bearer ${service.operatorToken}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  });
  if (!response.ok) throw new Error(`${method}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Record<string, string>;
}
