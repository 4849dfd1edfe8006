import { randomBytes } from "node:crypto";
import { type Caller, createAuthenticator, SCOPES, type Scope } from "../../admission/authenticate.ts";
import { createSecret, hashSecret, prefixOf } from "../../admission/secret.ts";
import { Failure, invalid } from "../../failure.ts";
import type { Notifications } from "../../store/notifications.ts";
import { orOverloaded, type Pool, type Query } from "../../store/pool.ts";
import { type Actor, confinedTo, record } from "../audit.ts";
import { checkExpiry, checkLabel } from "../fields.ts";
import { pageOf, readPageToken, sizeOfPage } from "../page.ts";
import { findWorkspace } from "../workspaces/workspaces.ts";
import { type KeyUse, readKeyUse } from "./use.ts";

/** An API key without its secret. */
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
  /** Whether this is the key of the console's playground. Such a key has no secret and cannot be changed. */
  console: boolean;
}

interface NewKey {
  /** Identifier or name; may be empty for an owner. */
  workspace: string;
  /** Up to 200 characters. */
  name?: string;
  /** Empty: all scopes. */
  scopes?: readonly string[];
  /** Undefined: never. */
  expiresAt?: Date;
}

interface KeyListRequest {
  /** Identifier or name; undefined: all workspaces that the actor may see. */
  workspace?: string;
  /** 1 to 1,000; undefined or 0: 100. */
  pageSize?: number;
  /** `nextPageToken` of the page before. */
  pageToken?: string;
  /** The start of the name (in any case) or of the prefix, or the whole secret. */
  search?: string;
  /** Leaves out revoked and expired keys. */
  activeOnly?: boolean;
}

interface KeyPage {
  keys: ApiKey[];
  nextPageToken: string | undefined;
}

/**
 * API keys. Owners reach only the keys of their own workspace. Every method throws Failure `overloaded` without a
 * database.
 */
export interface Keys {
  /**
   * Finds the caller of a request by the secret in `X-API-Key`.
   * @throws Failure `unauthenticated`, with one message for absent, unknown, revoked and expired secrets
   */
  authenticate(secret: string | undefined): Promise<Caller>;
  /**
   * Creates a key. The secret is in the result and is not stored.
   * @throws Failure `invalid_request` with the field; `unknown_entity` for an unknown workspace
   */
  create(actor: Actor, request: NewKey): Promise<ApiKey & { secret: string }>;
  /**
   * Renames a key or changes when it expires. Other replicas apply the change within a second.
   * @param request.expiresAt a time in the future; null: never; undefined: no change
   * @throws Failure `invalid_request` with the field; `unknown_entity`
   */
  update(actor: Actor, request: { id: string; name?: string; expiresAt?: Date | null }): Promise<ApiKey>;
  /**
   * Lists keys in pages, newest first, with revoked and expired ones.
   * @throws Failure `invalid_request` with the field; `unknown_entity` for an unknown workspace
   */
  list(actor: Actor, request: KeyListRequest): Promise<KeyPage>;
  /** Reads the recent use of keys, by identifier. */
  use(keys: readonly ApiKey[]): Promise<ReadonlyMap<string, KeyUse>>;
  /**
   * Revokes a key. Other replicas apply it within a second. Revoking it again changes nothing. @throws Failure
   * `unknown_entity`
   */
  revoke(actor: Actor, id: string): Promise<ApiKey>;
}

const COLUMNS = `k.id, k.workspace_id as "workspaceId", w.name as workspace, k.name, k.prefix, k.scopes,
  k.created_at as "createdAt", k.expires_at as "expiresAt", k.revoked_at as "revokedAt", k.console`;

/**
 * Manages keys in the table `api_keys`.
 * @param clock returns milliseconds since 1970
 * @param notifications see `createAuthenticator`
 */
export function createKeys(pool: Pool, clock: () => number = Date.now, notifications?: Notifications): Keys {
  const authenticator = createAuthenticator(pool, clock, notifications);

  async function change(actor: Actor, id: string, make: KeyChange): Promise<ApiKey> {
    const { hash, key } = await orOverloaded(pool.tx((query) => changeKey(query, actor, id, make)));
    authenticator.forget(hash);
    return key;
  }

  return {
    authenticate: (secret) => authenticator.authenticate(secret),
    async create(actor, request) {
      checkLabel("name", request.name ?? "");
      const scopes = request.scopes?.length ? [...new Set(request.scopes.map(scopeOf))] : [...SCOPES];
      const now = clock();
      checkExpiry(request.expiresAt, now);
      return orOverloaded(pool.tx((query) => insertKey(query, actor, { ...request, scopes }, now)));
    },
    async update(actor, { id, name, expiresAt }) {
      if (name === undefined && expiresAt === undefined) {
        throw invalid("name", "Set at least one of name, expires_at and never_expires.");
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
    list: (actor, request) => listKeys(pool, actor, request, clock()),
    async use(keys) {
      // An operator's page may hold keys of several workspaces.
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

async function insertKey(
  query: Query,
  actor: Actor,
  { workspace, name = "", scopes, expiresAt }: NewKey & { scopes: readonly Scope[] },
  now: number,
): Promise<ApiKey & { secret: string }> {
  const secret = createSecret("ck_");
  const { id: workspaceId } = await findWorkspace(query, actor, workspace);
  const [key] = await query<ApiKey>(
    `with k as (
       insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at, expires_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8) returning *)
     select ${COLUMNS} from k join workspaces w on w.id = k.workspace_id`,
    [
      workspaceId,
      `key_${randomBytes(12).toString("hex")}`,
      hashSecret(secret),
      prefixOf(secret),
      name,
      scopes,
      new Date(now),
      expiresAt ?? null,
    ],
  );
  if (!key) throw new Failure("unknown_entity", { field: "workspace" });
  const details = { id: key.id, name, scopes, expires_at: key.expiresAt };
  await record(query, actor, workspaceId, "key.create", details);
  return { ...key, secret };
}

/** Changes a key, which is locked until the transaction ends, and returns it as it is afterwards. */
type KeyChange = (query: Query, key: ApiKey) => Promise<ApiKey>;

/** @throws Failure `unknown_entity`, or `invalid_request` for the console's key */
async function changeKey(
  query: Query,
  actor: Actor,
  id: string,
  make: KeyChange,
): Promise<{ hash: Buffer; key: ApiKey }> {
  const [row] = await query<ApiKey & { hash: Buffer }>(
    `select ${COLUMNS}, k.secret_hash as hash from api_keys k join workspaces w on w.id = k.workspace_id
     where k.id = $1 and ($2::text is null or k.workspace_id = $2) for update of k`,
    [id.replaceAll("\0", ""), confinedTo(actor) ?? null],
  );
  if (!row) {
    // The message does not repeat the identifier, because it may be a secret that was pasted by mistake.
    throw new Failure("unknown_entity", {
      field: "id",
      message: "There is no key with this identifier. Identifiers begin with key_; list the keys to see them.",
    });
  }
  if (row.console) throw invalid("id", "This is the console's own key, which cannot be changed.");
  const { hash, ...before } = row;
  return { hash, key: await make(query, before) };
}

async function listKeys(
  pool: Pool,
  actor: Actor,
  { workspace, pageSize, pageToken, search = "", activeOnly = false }: KeyListRequest,
  now: number,
): Promise<KeyPage> {
  checkLabel("search", search);
  const size = sizeOfPage(pageSize);
  const [time, id] = readPageToken(pageToken, /^(\d{1,14}) (key_[0-9a-f]+)$/) ?? [];
  const isAll = !workspace && !confinedTo(actor);
  const found = isAll ? undefined : await orOverloaded(findWorkspace(pool.query, actor, workspace ?? ""));
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
        ...(search === "" ? [null, null] : [prefixPattern(search), hashSecret(search)]),
        activeOnly ? new Date(now) : null,
      ],
    ),
  );
  const { rows, nextPageToken } = pageOf(keys, size, (key) => `${key.createdAt.getTime()} ${key.id}`);
  return { keys: rows, nextPageToken };
}

/** @throws Failure `missing_scope` with the scope, when the caller's key does not have it */
export function requireScope(caller: Caller, scope: Scope): void {
  if (!caller.scopes.includes(scope)) {
    throw new Failure("missing_scope", {
      message: `The API key lacks the scope "${scope}", which this call needs. Use a key that has it.`,
    });
  }
}

/** Pattern for `like` that matches texts with a prefix (PostgreSQL documentation, section 9.7.1). */
function prefixPattern(text: string): string {
  return `${text.replace(/[\\%_]/g, "\\$&")}%`;
}

function scopeOf(text: string, i: number): Scope {
  const scope = SCOPES.find((known) => known === text);
  if (!scope) throw invalid(`scopes[${i}]`, `A scope is one of ${SCOPES.join(", ")}.`);
  return scope;
}
