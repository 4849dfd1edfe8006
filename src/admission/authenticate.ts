import type { Clock } from "../contract/clock.ts";
import { Failure } from "../contract/failure.ts";
import type { Tags } from "../contract/subjects.ts";
import type { Notifications } from "../store/notifications.ts";
import type { Pool } from "../store/pool.ts";
import { createSecretCache, hashName } from "./secret-cache.ts";

/** What a key may be used for. */
export const SCOPES = ["generate", "metrics"] as const;
export type Scope = (typeof SCOPES)[number];

/** The sender of a request with a valid key. */
export interface Caller {
  readonly workspaceId: string;
  readonly workspace: string;
  readonly keyId: string;
  readonly scopes: readonly Scope[];
  /** Tags that each of its requests has. */
  readonly fixedTags?: Tags;
  /** Whether its requests may name no other tags. */
  readonly forbidsTags?: boolean;
  /** Kinds of its requests' subjects that can have caps: `key`, `user`, `tag:NAME`. */
  readonly capped?: readonly string[];
  /** Whether the text of its requests is kept. */
  readonly keepsText?: boolean;
}

interface Key {
  readonly caller: Caller;
  readonly expiresAt: number;
}

export type Authenticator = ReturnType<typeof createAuthenticator>;

/**
 * Creates a cache over the table of keys.
 * @param notifications report changes of keys; without them, a key in use is looked up every quarter of a second
 */
export function createAuthenticator(pool: Pool, clock: Clock, notifications?: Notifications) {
  const cache = createSecretCache((hashes) => readKeys(pool, hashes), clock, notifications);
  return {
    /**
     * Finds the caller that a secret belongs to.
     * @returns without a promise if the key is cached
     * @throws Failure `unauthenticated`, with the same message for a secret that is absent, unknown, revoked or
     *   expired; `overloaded` when the database is unavailable.
     */
    authenticate(secret: string | undefined): Caller | Promise<Caller> {
      const key = cache.find(secret);
      return key instanceof Promise ? key.then(ownerOf) : ownerOf(key);
    },
    /** Removes a key from the cache, so that a change to it takes effect in this process at once. */
    forget: cache.forget,
  };
}

function ownerOf(key: Key | undefined): Caller {
  if (!key) throw new Failure("unauthenticated");
  return key.caller;
}

async function readKeys(pool: Pool, hashes: Buffer[]): Promise<ReadonlyMap<string, Key>> {
  const rows = await pool.query<{
    secret_hash: Buffer;
    workspace_id: string;
    workspace: string;
    id: string;
    scopes: Scope[];
    expires_at: Date | null;
    fixed_tags: Tags | null;
    forbids_tags: boolean;
    capped: string[] | null;
    keeps_text: boolean;
  }>(
    `select k.secret_hash, k.workspace_id, w.name as workspace, k.id, k.scopes, k.expires_at, k.fixed_tags,
       k.forbids_tags, capped_kinds(k.workspace_id, k.id) as capped, keeps_text(k.workspace_id, k.id) as keeps_text
     from api_keys k join workspaces w on w.id = k.workspace_id
     where k.secret_hash = any ($1::bytea[]) and k.revoked_at is null`,
    [hashes],
  );
  return new Map(
    rows.map((row) => {
      const caller = Object.freeze({
        workspaceId: row.workspace_id,
        workspace: row.workspace,
        keyId: row.id,
        scopes: Object.freeze(row.scopes),
        ...(row.fixed_tags ? { fixedTags: Object.freeze(row.fixed_tags) } : {}),
        ...(row.forbids_tags ? { forbidsTags: true } : {}),
        ...(row.capped ? { capped: Object.freeze(row.capped) } : {}),
        ...(row.keeps_text ? { keepsText: true } : {}),
      });
      return [hashName(row.secret_hash), { caller, expiresAt: row.expires_at?.getTime() ?? Number.POSITIVE_INFINITY }];
    }),
  );
}

/** @throws Failure `missing_scope` with the scope, when the caller's key does not have it */
export function requireScope(caller: Caller, scope: Scope): void {
  if (!caller.scopes.includes(scope)) {
    throw new Failure("missing_scope", {
      message: `The API key lacks the scope "${scope}", which this call needs. Use a key that has it.`,
    });
  }
}
