import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import {
  type Admission,
  createAdmission,
  type Lease,
  type LeaseRequest,
  type Settlement,
} from "../../src/admission/lease.ts";
import { hashSecret } from "../../src/admission/secret.ts";
import type { Pool } from "../../src/store/pool.ts";
import type { Log } from "../../src/telemetry/log.ts";
import { postOf } from "./exchange.ts";
import { makeGrants } from "./grants.ts";
import type { Lifetime } from "./lifetime.ts";

/** Credits per million tokens, equal to micro-credits per token. */
export const RATES = { input: 100, cached: 10, output: 400 };

export const QUIET: Log = pino({ level: "silent" });

export interface Account {
  /** Secret of the key. Default: any. */
  secret?: string;
  /** Micro-credits. */
  granted?: number | bigint;
  purchased?: number | bigint;
  limits?: Record<string, number>;
  spendLimits?: Record<string, number>;
}

/** Creates a workspace `ws_…` with the API key `key_…` and books its credit. */
export async function makeAccount(pool: Pool, id: string, account: Account = {}): Promise<void> {
  const { secret = randomUUID(), granted = 0, purchased = 0, limits = {}, spendLimits = {} } = account;
  await pool.query("insert into workspaces (id, name) values ($1, $2)", [id, id.replace("_", "-")]);
  await pool.query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, scopes)
     values ($1, $2, $3, 'ck_', '{generate,metrics}')`,
    [id, keyOf(id), hashSecret(secret)],
  );
  // The override removes the limits of tiers, also after a service has written its tiers.
  await pool.query(
    `insert into accounts (workspace_id, tier_override, overrides, limits, spend_limits)
     values ($1, 'unlimited', $2, $2, $3)`,
    [id, JSON.stringify(limits), JSON.stringify(spendLimits)],
  );
  if (granted) await pool.query("select book_credit($1, 'grant', 'first grant', $2)", [id, granted]);
  if (purchased) await pool.query("select book_credit($1, 'purchase', 'first purchase', $2)", [id, purchased]);
}

/** Puts a settlement of a workspace into the log. The database refuses to post one that is larger than the credit. */
export async function logSettlement(pool: Pool, id: string, replica: string, charge: bigint): Promise<void> {
  const { row } = postOf(id, { charge: Number(charge) });
  const posts = [{ ...row, request_id: `req_${id}`, output_tokens: 1, credits_micro: String(charge) }];
  await pool.query("insert into settlement_log values ($1, $2, 1, $3, 1, 0, 0, 1, 1, $4)", [
    id,
    replica,
    charge,
    JSON.stringify(posts),
  ]);
}

export function keyOf(workspaceId: string): string {
  return workspaceId.replace("ws_", "key_");
}

/** A request of a workspace. By default it holds 10 × 100 + 100 × 400 = 41,000 micro-credits. */
export function ask(workspaceId: string, overrides: Partial<LeaseRequest> = {}): LeaseRequest {
  const id = randomUUID().replaceAll("-", "");
  return {
    caller: { workspaceId, workspace: workspaceId, keyId: keyOf(workspaceId), scopes: ["generate"] },
    subjects: {},
    authenticatedAt: performance.now(),
    requestId: `req_${id}`,
    generationId: `gen_${id}`,
    streamed: false,
    shape: "text",
    effort: "auto",
    level: "low",
    inputTokens: 10,
    maxOutputTokens: 100,
    rates: RATES,
    ...overrides,
  };
}

/** An answer that is charged. By default it costs what `ask` holds. */
export function answered(overrides: Partial<Settlement> = {}): Settlement {
  return {
    outcome: "ok",
    outputTokens: 100,
    cachedTokens: 0,
    finishReason: "stop",
    latencyMs: 12.6,
    model: "m",
    ...overrides,
  };
}

/** A failure, which is not charged. */
export const FAILED: Settlement = {
  outcome: "upstream_failed",
  outputTokens: 0,
  cachedTokens: 0,
  latencyMs: 5,
};

export interface Replica {
  id: string;
  admission: Admission;
  /** Confirms the grant of a workspace, as a replica does that has slept or has got a call-back. */
  confirm(workspaceId: string): Promise<void>;
  /** Admits a request that has not been answered before. */
  take(request: LeaseRequest): Promise<Lease>;
}

interface ReplicaOptions {
  id?: string;
  /** Folder of the journal. Default: a new temporary one. */
  folder?: string;
  clock?: () => number;
  /** Address at which it listens for call-backs. Default: it gets none. */
  url?: string;
}

/** Creates the admission of a replica. */
export async function makeReplica(
  t: Lifetime,
  pool: Pool,
  { id = "r1", folder, clock, url }: ReplicaOptions = {},
): Promise<Replica> {
  const grants = await makeGrants(t, { pool, url }, id, { folder, clock });
  const admission = createAdmission(pool, grants, clock);
  return {
    id,
    admission,
    async confirm(workspaceId) {
      grants.callBack(workspaceId);
      await grants.report(workspaceId);
    },
    async take(request) {
      const opened = await admission.open(request);
      assert.ok(!("replay" in opened), "the request was already answered");
      return opened;
    },
  };
}

export async function makeFolder(t: Lifetime): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-journal-"));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export interface Figures {
  granted: bigint;
  purchased: bigint;
  held: bigint;
  running: number;
}

export async function accountOf(pool: Pool, workspaceId: string): Promise<Figures> {
  const [row] = await pool.query<Figures>(
    `select granted_micro as granted, purchased_micro as purchased, u.held, u.running
     from accounts, in_use(workspace_id) u where workspace_id = $1`,
    [workspaceId],
  );
  assert.ok(row, `there is no account ${workspaceId}`);
  return row;
}

/** Fails unless ledger, accounts, grants and usage agree, in one workspace or in all. They agree at any time. */
export async function checkBooks(pool: Pool, workspaceId?: string): Promise<void> {
  assert.deepEqual(await pool.query("select * from check_books($1)", [workspaceId ?? null]), []);
}
