import { randomBytes } from "node:crypto";
import { Failure, invalid } from "../failure.ts";
import { orOverloaded, type Pool } from "../store/pool.ts";
import { type Caller, createAuthenticator, MAX_SECRET_LENGTH, SCOPES, type Scope } from "./authenticate.ts";
import { createSecret, hashSecret, prefixOf } from "./secret.ts";

export type { Caller, Scope } from "./authenticate.ts";

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
}

export interface Keys {
  /**
   * Tells who sends a request, for a request's `X-API-Key`.
   * @throws Failure `unauthenticated` (one wording for absent, unknown, revoked and expired), or `overloaded` when the database is away.
   */
  authenticate(secret: string | undefined): Promise<Caller>;
  /** @throws Failure `unauthenticated` unless `token` is an operator's; `overloaded` when the database is away. */
  authenticateOperator(token: string | undefined): Promise<void>;
  /**
   * Makes a key; its secret is in the result and nowhere else.
   * @param request.workspace name or identifier
   * @param request.name for people, up to 200 characters
   * @param request.scopes none means all
   * @param request.expiresAt a time to come; undefined: never
   * @throws Failure `invalid_request` naming the field; `not_found` for an unknown workspace.
   */
  create(request: {
    workspace: string;
    name?: string;
    scopes?: readonly string[];
    expiresAt?: Date;
  }): Promise<ApiKey & { secret: string }>;
  /**
   * One page of keys, newest first, revoked and expired ones too.
   * @param request.workspace name or identifier; undefined: all
   * @param request.pageSize 1 to 1,000; undefined or 0: 100
   * @param request.pageToken `nextPageToken` of the page before
   * @throws Failure `invalid_request` naming the field; `not_found` for an unknown workspace.
   */
  list(request: {
    workspace?: string;
    pageSize?: number;
    pageToken?: string;
  }): Promise<{ keys: ApiKey[]; nextPageToken: string | undefined }>;
  /** Revokes a key, here at once and on every replica within a second; once more does nothing. @throws Failure `not_found`. */
  revoke(id: string): Promise<ApiKey>;
}

const COLUMNS = `k.id, k.workspace_id as "workspaceId", w.name as workspace, k.name, k.prefix, k.scopes,
  k.created_at as "createdAt", k.expires_at as "expiresAt", k.revoked_at as "revokedAt"`;

const MAX_NAME = 200;
const MAX_PAGE = 1_000;
const PAGE = 100;

/** The last moment that both JavaScript and the time formats of the interfaces can write. */
const LAST_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * Keys over the tables `api_keys` and `operator_tokens`.
 * @param clock the time in milliseconds since 1970
 */
export function createKeys(pool: Pool, clock: () => number = Date.now): Keys {
  const authenticator = createAuthenticator(pool, clock);

  async function workspaceId(nameOrId: string): Promise<string> {
    const [row] = nameOrId.includes("\0")
      ? []
      : await orOverloaded(
          pool.query<{ id: string }>("select id from workspaces where id = $1 or name = $1", [nameOrId]),
        );
    if (!row)
      throw new Failure("not_found", {
        field: "workspace",
        message: `There is no workspace ${JSON.stringify(nameOrId.slice(0, MAX_NAME))}.`,
      });
    return row.id;
  }

  return {
    authenticate: (secret) => authenticator.authenticate(secret),

    async authenticateOperator(token) {
      // The look-up compares hashes, so how long it takes tells nothing about a token.
      const rows =
        token && token.length <= MAX_SECRET_LENGTH
          ? await orOverloaded(pool.query("select from operator_tokens where secret_hash = $1", [hashSecret(token)]))
          : [];
      if (rows.length === 0)
        throw new Failure("unauthenticated", { message: "The call needs a valid operator token." });
    },

    async create({ workspace, name = "", scopes = [], expiresAt }) {
      if (!workspace) throw invalid("workspace", "Name the workspace that the key is for.");
      if ([...name].length > MAX_NAME || /\p{Cc}/u.test(name)) {
        throw invalid("name", `A name has up to ${MAX_NAME} characters, and no control characters.`);
      }
      const granted = scopes.length === 0 ? [...SCOPES] : [...new Set(scopes.map(scopeOf))];
      const now = clock();
      if (expiresAt && !(expiresAt.getTime() > now && expiresAt.getTime() <= LAST_TIME)) {
        throw invalid("expires_at", "A key expires at a time to come, before the year 10000.");
      }
      const secret = createSecret("ck_");
      const id = `key_${randomBytes(12).toString("hex")}`;
      const [row] = await orOverloaded(
        pool.query<ApiKey>(
          `with k as (
             insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at, expires_at)
             values ($1, $2, $3, $4, $5, $6, $7, $8) returning *)
           select ${COLUMNS} from k join workspaces w on w.id = k.workspace_id`,
          [
            await workspaceId(workspace),
            id,
            hashSecret(secret),
            prefixOf(secret),
            name,
            granted,
            new Date(now),
            expiresAt ?? null,
          ],
        ),
      );
      if (!row) throw new Failure("not_found", { field: "workspace" });
      return { ...row, secret };
    },

    async list({ workspace, pageSize = 0, pageToken }) {
      if (!Number.isInteger(pageSize) || pageSize < 0 || pageSize > MAX_PAGE) {
        throw invalid("page_size", `A page has 1 to ${MAX_PAGE} keys; 0 means ${PAGE}.`);
      }
      const size = pageSize || PAGE;
      const after = pageToken ? readPageToken(pageToken) : undefined;
      const keys = await orOverloaded(
        pool.query<ApiKey>(
          `select ${COLUMNS} from api_keys k join workspaces w on w.id = k.workspace_id
           where ($1::text is null or k.workspace_id = $1) and ($2::timestamptz is null or (k.created_at, k.id) < ($2, $3))
           order by k.created_at desc, k.id desc limit $4`,
          [workspace ? await workspaceId(workspace) : null, after?.createdAt ?? null, after?.id ?? "", size + 1],
        ),
      );
      const last = keys.length > size ? keys[size - 1] : undefined;
      return { keys: keys.slice(0, size), nextPageToken: last && pageTokenAfter(last) };
    },

    async revoke(id) {
      const [row] = await orOverloaded(
        pool.query<ApiKey & { hash: Buffer }>(
          `with k as (update api_keys set revoked_at = coalesce(revoked_at, $2) where id = $1 returning *)
           select ${COLUMNS}, k.secret_hash as hash from k join workspaces w on w.id = k.workspace_id`,
          [id.replaceAll("\0", ""), new Date(clock())],
        ),
      );
      // The text is not repeated: it may be a secret that was pasted by mistake.
      if (!row)
        throw new Failure("not_found", {
          field: "id",
          message: "There is no key with this identifier. Identifiers begin with key_; list the keys to see them.",
        });
      const { hash, ...key } = row;
      authenticator.forget(hash);
      return key;
    },
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

function scopeOf(text: string, i: number): Scope {
  const scope = SCOPES.find((known) => known === text);
  if (!scope) throw invalid(`scopes[${i}]`, `A scope is one of ${SCOPES.join(", ")}.`);
  return scope;
}

function pageTokenAfter({ createdAt, id }: ApiKey): string {
  return Buffer.from(`${createdAt.getTime()} ${id}`).toString("base64url");
}

function readPageToken(token: string): { createdAt: Date; id: string } {
  const [, time, id] = /^(\d{1,14}) (key_[0-9a-f]+)$/.exec(Buffer.from(token, "base64url").toString()) ?? [];
  if (time === undefined || id === undefined)
    throw invalid("page_token", "Send next_page_token of an earlier page as it was, or leave it out.");
  return { createdAt: new Date(Number(time)), id };
}
