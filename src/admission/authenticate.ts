import { Failure } from "../failure.ts";
import { orOverloaded, type Pool } from "../store/pool.ts";
import { createBatcher } from "./batch.ts";
import { hashSecret } from "./secret.ts";

/** What a key may be used for. */
export const SCOPES = ["generate", "metrics"] as const;
export type Scope = (typeof SCOPES)[number];

/** Whoever sends a request with a good key. */
export interface Caller {
  readonly workspaceId: string;
  /** Name of the workspace. */
  readonly workspace: string;
  readonly keyId: string;
  readonly scopes: readonly Scope[];
}

/**
 * Age in milliseconds up to which a look-up is trusted, counted from its start. With the time of a look-up itself this keeps the promise
 * that a revoked key stops working everywhere within one second, without any message between replicas.
 */
const GOOD_MS = 500;

/** From this age on, in milliseconds, a key in use is looked up again in the background, so that its callers never wait for it. */
const REFRESH_MS = 250;

/** Most keys remembered, and as many secrets that are no keys: about 5 MB together. */
const REMEMBERED = 10_000;

/** A longer text is no secret; it is not even hashed. */
export const MAX_SECRET_LENGTH = 512;

interface LookUp {
  /** When it began, in milliseconds. */
  began: number;
  /** Undefined when the secret is no key. */
  key?: { caller: Caller; expiresAt: number };
}

export interface Authenticator {
  /**
   * Tells who sends a request.
   * @throws Failure `unauthenticated`, with one wording for a secret that is absent, unknown, revoked or expired; `overloaded` when the
   * database cannot be asked.
   */
  authenticate(secret: string | undefined): Promise<Caller>;
  /** Forgets a key, so that a change to it takes effect here at once. */
  forget(hash: Buffer): void;
}

/**
 * Makes a cache over the table of keys. Good keys and other texts are remembered apart, so that a flood of made-up keys cannot push out
 * the good ones, and look-ups share statements, so that the flood costs one statement at a time.
 * @param clock the time in milliseconds since 1970
 */
export function createAuthenticator(pool: Pool, clock: () => number): Authenticator {
  const good = new Map<string, LookUp>();
  const bad = new Map<string, LookUp>();
  const underWay = new Map<string, { began: number; result: Promise<LookUp> }>();
  const lookUp = createBatcher((_: string, hashes: Buffer[]) => readKeys(pool, hashes, clock), {
    maxItems: 1_000,
    maxWaiting: 10_000,
  });
  const isFresh = (began: number, ms: number): boolean => clock() - began < ms && clock() >= began;

  function remember(id: string, found: LookUp): LookUp {
    good.delete(id);
    bad.delete(id);
    const map = found.key ? good : bad;
    map.set(id, found);
    // A key in use is written anew at least every half second, so the first entry is the one that has been idle for longest.
    const [oldest] = map.keys();
    if (map.size > REMEMBERED && oldest !== undefined) map.delete(oldest);
    return found;
  }

  function load(id: string, hash: Buffer): Promise<LookUp> {
    const other = underWay.get(id);
    if (other && isFresh(other.began, GOOD_MS)) return other.result;
    const result = orOverloaded(lookUp("keys", hash))
      .then((found) => remember(id, found))
      .finally(() => underWay.get(id)?.result === result && underWay.delete(id));
    underWay.set(id, { began: clock(), result });
    return result;
  }

  return {
    async authenticate(secret) {
      if (!secret || secret.length > MAX_SECRET_LENGTH) throw new Failure("unauthenticated");
      const hash = hashSecret(secret);
      const id = hash.toString("latin1");
      let found = good.get(id) ?? bad.get(id);
      if (!found || !isFresh(found.began, GOOD_MS)) found = await load(id, hash);
      else if (found.key && !isFresh(found.began, REFRESH_MS)) load(id, hash).catch(() => undefined); // the next caller who waits hears of it
      if (!found.key || found.key.expiresAt <= clock()) throw new Failure("unauthenticated");
      return found.key.caller;
    },
    forget(hash) {
      good.delete(hash.toString("latin1"));
    },
  };
}

async function readKeys(pool: Pool, hashes: Buffer[], clock: () => number): Promise<LookUp[]> {
  const began = clock();
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
    if (!row) return { began };
    const caller = Object.freeze({
      workspaceId: row.workspace_id,
      workspace: row.workspace,
      keyId: row.id,
      scopes: Object.freeze(row.scopes),
    });
    return { began, key: { caller, expiresAt: row.expires_at?.getTime() ?? Number.POSITIVE_INFINITY } };
  });
}
