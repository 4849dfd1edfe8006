import { Failure } from "../failure.ts";
import { orOverloaded, type Pool } from "../store/pool.ts";
import { createBatcher } from "./batch.ts";
import { hashSecret } from "./secret.ts";

/** What a key may be used for. */
export const SCOPES = ["generate", "metrics"] as const;
export type Scope = (typeof SCOPES)[number];

/** The sender of a request with a valid key. */
export interface Caller {
  readonly workspaceId: string;
  /** Name of the workspace. */
  readonly workspace: string;
  readonly keyId: string;
  readonly scopes: readonly Scope[];
}

/**
 * Age up to which a cached look-up is used, in milliseconds from its start. Including the time of the look-up, a
 * revoked key stops working on all replicas within one second.
 */
const MAX_AGE_MS = 500;

/**
 * Age from which a key in use is looked up again in the background, in milliseconds, so that its callers do not wait.
 */
const REFRESH_MS = 250;

/** Largest number of cached keys, and of cached secrets that are no keys. About 5 MB together. */
const MAX_CACHED = 10_000;

/** A longer text is rejected without a look-up. */
export const MAX_SECRET_LENGTH = 512;

interface LookUp {
  /** When the look-up started, in milliseconds. */
  startedAt: number;
  /** Undefined when the secret is not a valid key. */
  key?: { caller: Caller; expiresAt: number };
}

export interface Authenticator {
  /**
   * Finds the caller that a secret belongs to.
   * @throws Failure `unauthenticated`, with the same message for a secret that is absent, unknown, revoked or expired;
   *   `overloaded` when the database is unavailable.
   */
  authenticate(secret: string | undefined): Promise<Caller>;
  /** Removes a key from the cache, so that a change to it takes effect in this process at once. */
  forget(hash: Buffer): void;
}

/**
 * Creates a cache over the table of keys. Valid keys and other secrets are cached apart, so that a flood of invented
 * keys cannot evict the valid ones. Look-ups are batched, so that the flood costs one statement at a time.
 * @param clock the time in milliseconds since 1970
 */
export function createAuthenticator(pool: Pool, clock: () => number): Authenticator {
  const valid = new Map<string, LookUp>();
  const invalid = new Map<string, LookUp>();
  const pending = new Map<string, { startedAt: number; result: Promise<LookUp> }>();
  const lookUp = createBatcher((_: string, hashes: Buffer[]) => readKeys(pool, hashes, clock), {
    maxItems: 1_000,
    maxWaiting: 10_000,
  });
  const isFresh = (startedAt: number, ms: number): boolean => clock() - startedAt < ms && clock() >= startedAt;

  function cache(id: string, found: LookUp): LookUp {
    valid.delete(id);
    invalid.delete(id);
    const map = found.key ? valid : invalid;
    map.set(id, found);
    // A key in use is cached again at least every half second, so the first entry is the one idle for longest.
    const [oldest] = map.keys();
    if (map.size > MAX_CACHED && oldest !== undefined) map.delete(oldest);
    return found;
  }

  function load(id: string, hash: Buffer): Promise<LookUp> {
    const earlier = pending.get(id);
    if (earlier && isFresh(earlier.startedAt, MAX_AGE_MS)) return earlier.result;
    const result = orOverloaded(lookUp("keys", hash))
      .then((found) => cache(id, found))
      .finally(() => pending.get(id)?.result === result && pending.delete(id));
    pending.set(id, { startedAt: clock(), result });
    return result;
  }

  return {
    async authenticate(secret) {
      if (!secret || secret.length > MAX_SECRET_LENGTH) throw new Failure("unauthenticated");
      const hash = hashSecret(secret);
      const id = hash.toString("latin1");
      let found = valid.get(id) ?? invalid.get(id);
      if (!found || !isFresh(found.startedAt, MAX_AGE_MS)) found = await load(id, hash);
      // A failure is ignored here: the next caller that has to wait for the look-up gets it.
      else if (found.key && !isFresh(found.startedAt, REFRESH_MS)) load(id, hash).catch(() => undefined);
      if (!found.key || found.key.expiresAt <= clock()) throw new Failure("unauthenticated");
      return found.key.caller;
    },
    forget(hash) {
      valid.delete(hash.toString("latin1"));
    },
  };
}

async function readKeys(pool: Pool, hashes: Buffer[], clock: () => number): Promise<LookUp[]> {
  const startedAt = clock();
  const rows = await pool.query<{
    secret_hash: Buffer;
    workspace_id: string;
    workspace: string;
    id: string;
    scopes: Scope[];
    expires_at: Date | null;
  }>(
    `select k.secret_hash, k.workspace_id, w.name as workspace, k.id, k.scopes, k.expires_at
     from api_keys k join workspaces w on w.id = k.workspace_id
     where k.secret_hash = any ($1::bytea[]) and k.revoked_at is null`,
    [hashes],
  );
  const found = new Map(rows.map((row) => [row.secret_hash.toString("latin1"), row]));
  return hashes.map((hash) => {
    const row = found.get(hash.toString("latin1"));
    if (!row) return { startedAt };
    const caller = Object.freeze({
      workspaceId: row.workspace_id,
      workspace: row.workspace,
      keyId: row.id,
      scopes: Object.freeze(row.scopes),
    });
    return { startedAt, key: { caller, expiresAt: row.expires_at?.getTime() ?? Number.POSITIVE_INFINITY } };
  });
}
