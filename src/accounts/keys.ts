import { randomBytes } from "node:crypto";
import { type Caller, createAuthenticator, SCOPES, type Scope } from "../admission/authenticate.ts";
import { createSecret, hashSecret, prefixOf } from "../admission/secret.ts";
import { Failure, invalid } from "../failure.ts";
import { orOverloaded, type Pool, type Query } from "../store/pool.ts";
import { type Actor, confinedTo, record } from "./audit.ts";
import { type KeyUse, readKeyUse } from "./key-use.ts";
import { pageOf, readPageToken, sizeOfPage } from "./page.ts";
import { checkExpiry, checkLabel } from "./validation.ts";
import { findWorkspace } from "./workspaces.ts";

export type { Caller, Scope } from "../admission/authenticate.ts";

/** An API key as people see it; its secret is not part of it. */
export interface ApiKey {
  id: string;
  workspaceId: string;
  /** Name of the workspace. */
  workspace: string;
  name: string;
  /** The first characters of the secret. */
  prefix: string;
  scopes: Scope[];
  createdAt: Date;
  /** Null: never. */
  expiresAt: Date | null;
  /** Null: not revoked. */
  revokedAt: Date | null;
  /** Whether requests from the console's playground count under it; then it has no secret and cannot be changed. */
  console: boolean;
}

/** A workspace is named by identifier or name. Owners reach the keys of their own workspace alone. */
export interface Keys {
  /**
   * Tells who sends a request, for a request's `X-API-Key`.
   * @throws Failure `unauthenticated` (one wording for absent, unknown, revoked and expired), or `overloaded` when the database is away.
   */
  authenticate(secret: string | undefined): Promise<Caller>;
  /**
   * Makes a key; its secret is in the result and nowhere else.
   * @param request.workspace may be empty for an owner
   * @param request.name for people, up to 200 characters
   * @param request.scopes none means all
   * @param request.expiresAt a time to come; undefined: never
   * @throws Failure `invalid_request` naming the field; `unknown_entity` for an unknown workspace.
   */
  create(
    actor: Actor,
    request: { workspace: string; name?: string; scopes?: readonly string[]; expiresAt?: Date },
  ): Promise<ApiKey & { secret: string }>;
  /**
   * Renames a key, or changes when it stops working, here at once and on every replica within a second.
   * @param request.expiresAt a time to come; null: never; undefined: as it was
   * @throws Failure `invalid_request` naming the field; `unknown_entity`.
   */
  update(actor: Actor, request: { id: string; name?: string; expiresAt?: Date | null }): Promise<ApiKey>;
  /**
   * One page of keys, newest first, revoked and expired ones too.
   * @param request.workspace undefined: all that the actor reaches
   * @param request.pageSize 1 to 1,000; undefined or 0: 100
   * @param request.pageToken `nextPageToken` of the page before
   * @param request.search what the name (in whatever case) or the prefix begins with, or the whole secret
   * @param request.activeOnly leaves out what is revoked or has expired
   * @throws Failure `invalid_request` naming the field; `unknown_entity` for an unknown workspace.
   */
  list(
    actor: Actor,
    request: { workspace?: string; pageSize?: number; pageToken?: string; search?: string; activeOnly?: boolean },
  ): Promise<{ keys: ApiKey[]; nextPageToken: string | undefined }>;
  /** What keys used lately, by identifier. @throws Failure `overloaded` when the database is away. */
  use(keys: readonly ApiKey[]): Promise<ReadonlyMap<string, KeyUse>>;
  /** Revokes a key, here at once and on every replica within a second; once more does nothing. @throws Failure `unknown_entity`. */
  revoke(actor: Actor, id: string): Promise<ApiKey>;
}

const COLUMNS = `k.id, k.workspace_id as "workspaceId", w.name as workspace, k.name, k.prefix, k.scopes,
  k.created_at as "createdAt", k.expires_at as "expiresAt", k.revoked_at as "revokedAt", k.console`;

/**
 * Keys over the table `api_keys`.
 * @param clock the time in milliseconds since 1970
 */
export function createKeys(pool: Pool, clock: () => number = Date.now): Keys {
  const authenticator = createAuthenticator(pool, clock);

  /** Changes a key in one transaction, and forgets what is remembered of it. */
  async function change(
    actor: Actor,
    id: string,
    make: (query: Query, key: ApiKey) => Promise<ApiKey>,
  ): Promise<ApiKey> {
    const { hash, key } = await orOverloaded(
      pool.tx(async (query) => {
        const [row] = await query<ApiKey & { hash: Buffer }>(
          `select ${COLUMNS}, k.secret_hash as hash from api_keys k join workspaces w on w.id = k.workspace_id
           where k.id = $1 and ($2::text is null or k.workspace_id = $2) for update of k`,
          [id.replaceAll("\0", ""), confinedTo(actor) ?? null],
        );
        // The text is not repeated: it may be a secret that was pasted by mistake.
        if (!row)
          throw new Failure("unknown_entity", {
            field: "id",
            message: "There is no key with this identifier. Identifiers begin with key_; list the keys to see them.",
          });
        if (row.console) throw invalid("id", "This is the console's own key, which cannot be changed.");
        const { hash, ...before } = row;
        return { hash, key: await make(query, before) };
      }),
    );
    authenticator.forget(hash);
    return key;
  }

  return {
    authenticate: (secret) => authenticator.authenticate(secret),

    async create(actor, { workspace, name = "", scopes = [], expiresAt }) {
      checkLabel("name", name);
      const granted = scopes.length === 0 ? [...SCOPES] : [...new Set(scopes.map(scopeOf))];
      const now = clock();
      checkExpiry(expiresAt, now);
      const secret = createSecret("ck_");
      return orOverloaded(
        pool.tx(async (query) => {
          const found = await findWorkspace(query, actor, workspace);
          const [key] = await query<ApiKey>(
            `with k as (
               insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at, expires_at)
               values ($1, $2, $3, $4, $5, $6, $7, $8) returning *)
             select ${COLUMNS} from k join workspaces w on w.id = k.workspace_id`,
            [
              found.id,
              `key_${randomBytes(12).toString("hex")}`,
              hashSecret(secret),
              prefixOf(secret),
              name,
              granted,
              new Date(now),
              expiresAt ?? null,
            ],
          );
          if (!key) throw new Failure("unknown_entity", { field: "workspace" });
          const details = { id: key.id, name, scopes: granted, expires_at: key.expiresAt };
          await record(query, actor, found.id, "key.create", details);
          return { ...key, secret };
        }),
      );
    },

    async update(actor, { id, name, expiresAt }) {
      if (name === undefined && expiresAt === undefined) {
        throw invalid("name", "Say what to change: name, expires_at or never_expires.");
      }
      if (name !== undefined) checkLabel("name", name);
      checkExpiry(expiresAt, clock());
      return change(actor, id, async (query, key) => {
        const after = { name: name ?? key.name, expiresAt: expiresAt === undefined ? key.expiresAt : expiresAt };
        await query("update api_keys set name = $2, expires_at = $3 where id = $1", [id, after.name, after.expiresAt]);
        const details = { id, name: after.name, expires_at: after.expiresAt };
        await record(query, actor, key.workspaceId, "key.update", details);
        return { ...key, ...after };
      });
    },

    async list(actor, { workspace, pageSize, pageToken, search = "", activeOnly = false }) {
      checkLabel("search", search);
      const size = sizeOfPage(pageSize);
      const [time, id] = readPageToken(pageToken, /^(\d{1,14}) (key_[0-9a-f]+)$/) ?? [];
      const all = !workspace && !confinedTo(actor);
      const found = all ? undefined : await orOverloaded(findWorkspace(pool.query, actor, workspace ?? ""));
      const keys = await orOverloaded(
        pool.query<ApiKey>(
          `select ${COLUMNS} from api_keys k join workspaces w on w.id = k.workspace_id
           where ($1::text is null or k.workspace_id = $1) and ($2::timestamptz is null or (k.created_at, k.id) < ($2, $3))
             and ($5::text is null or lower(k.name) like lower($5) or k.prefix like $5 or k.secret_hash = $6)
             and ($7::timestamptz is null or (k.revoked_at is null and (k.expires_at is null or k.expires_at > $7)))
           order by k.created_at desc, k.id desc limit $4`,
          [
            found?.id ?? null,
            time === undefined ? null : new Date(Number(time)),
            id ?? "",
            size + 1,
            ...(search === "" ? [null, null] : [beginning(search), hashSecret(search)]),
            activeOnly ? new Date(clock()) : null,
          ],
        ),
      );
      const { rows, nextPageToken } = pageOf(keys, size, (key) => `${key.createdAt.getTime()} ${key.id}`);
      return { keys: rows, nextPageToken };
    },

    async use(keys) {
      // An operator's page may have keys of several workspaces.
      const found = new Map<string, KeyUse>();
      for (const [workspaceId, group] of Map.groupBy(keys, (key) => key.workspaceId)) {
        const ids = group.map(({ id }) => id);
        for (const [id, use] of await readKeyUse(pool, workspaceId, ids, clock())) found.set(id, use);
      }
      return found;
    },

    revoke: (actor, id) =>
      change(actor, id, async (query, key) => {
        if (key.revokedAt) return key;
        const revokedAt = new Date(clock());
        await query("update api_keys set revoked_at = $2 where id = $1", [id, revokedAt]);
        await record(query, actor, key.workspaceId, "key.revoke", { id });
        return { ...key, revokedAt };
      }),
  };
}

/** @throws Failure `missing_scope`, naming the scope, unless the caller's key has it. */
export function requireScope(caller: Caller, scope: Scope): void {
  if (!caller.scopes.includes(scope)) {
    throw new Failure("missing_scope", {
      message: `The API key lacks the scope "${scope}", which this call needs. Use a key that has it.`,
    });
  }
}

/** Pattern of texts that begin with a text (PostgreSQL documentation, section 9.7.1). */
function beginning(text: string): string {
  return `${text.replace(/[\\%_]/g, "\\$&")}%`;
}

function scopeOf(text: string, i: number): Scope {
  const scope = SCOPES.find((known) => known === text);
  if (!scope) throw invalid(`scopes[${i}]`, `A scope is one of ${SCOPES.join(", ")}.`);
  return scope;
}
