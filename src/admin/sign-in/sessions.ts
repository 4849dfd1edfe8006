import { randomBytes } from "node:crypto";
import { type Caller, SCOPES } from "../../admission/authenticate.ts";
import { createBatcher } from "../../admission/batch.ts";
import { createSecret, hashSecret, isWellFormed } from "../../admission/secret.ts";
import { Failure } from "../../failure.ts";
import { orOverloaded, type Pool, type Query } from "../../store/pool.ts";
import { type Actor, record } from "../audit.ts";
import { takeSignInLink } from "../workspaces/sign-in-link.ts";
import { tokenId } from "./tokens.ts";

/** Longest duration of a session, and longest time without a request, in milliseconds. */
export const SESSION_MS = 8 * 3_600_000;
export const IDLE_MS = 3_600_000;

/** Interval at which the last use of a session is stored, in milliseconds. */
export const TOUCH_MS = 60_000;

/** Most sessions of a workspace. One more ends the oldest. */
const MAX_SESSIONS = 50;

/** Name of the key that requests from the playground count under. */
const CONSOLE_KEY = "console";

/** A signed-in owner. */
export interface Session {
  /** Identity for the services of owners. */
  readonly actor: Actor;
  /** Identity for requests from the playground. */
  readonly caller: Caller;
  readonly expiresAt: Date;
}

/** A new session and its secret, which is not stored. */
export interface OpenedSession {
  readonly session: Session;
  readonly secret: string;
}

/** Sessions of the console. Every method throws Failure `overloaded` when the database is unavailable. */
export interface Sessions {
  /**
   * Opens a session for the owner of a workspace.
   * @param token owner token, or the secret of a sign-in link, which is used up
   * @throws Failure `unauthenticated`, with one message for every token that is not valid, and one for every link
   */
  open(token: string): Promise<OpenedSession>;
  /**
   * Finds the session of a secret, and restarts its idle timeout.
   * @throws Failure `unauthenticated`, with one message for a session that is absent, unknown, idle for too long or
   * ended, and for one whose owner token has been replaced or has expired. A new owner token also ends the sessions of
   * links.
   */
  authenticate(secret: string | undefined): Promise<Session>;
  /** Ends a session on every replica at once. Does nothing when there is no such session. */
  close(secret: string | undefined): Promise<void>;
}

/**
 * Manages sessions in the table `sessions`. The process caches none, because they must work and end on every replica at
 * once.
 * @param clock the time in milliseconds since 1970
 */
export function createSessions(pool: Pool, clock: () => number = Date.now): Sessions {
  // Concurrent look-ups share a statement, which bounds the load of many invalid secrets.
  const lookUp = createBatcher((_: string, hashes: Buffer[]) => readSessions(pool, hashes, clock()), {
    maxItems: 1_000,
    maxWaiting: 10_000,
  });
  const find = (secret: string) => orOverloaded(lookUp("sessions", hashSecret(secret)));

  return {
    async open(token) {
      const secret = createSecret("cs_");
      const hash = hashSecret(token);
      const byLink = isWellFormed(token, "li_");
      const session = await orOverloaded(
        pool.tx(async (query) => {
          const find = byLink ? takeSignInLink : findOwner;
          const workspaceId = await find(query, hash, clock());
          return workspaceId && insertSession(query, { workspaceId, hash, byLink }, secret, clock());
        }),
      );
      if (!session) throw byLink ? refusedLink() : refusedToken();
      return { session, secret };
    },

    async authenticate(secret) {
      const found = secret && isWellFormed(secret, "cs_") ? await find(secret) : undefined;
      if (!found) throw notSignedIn();
      return found;
    },

    async close(secret) {
      // Looked up first, because look-ups of invented secrets share a statement.
      if (!secret || !isWellFormed(secret, "cs_") || !(await find(secret))) return;
      const hash = hashSecret(secret);
      await orOverloaded(
        pool.tx(async (query) => {
          const [deleted] = await query<{ workspace_id: string; token_hash: Buffer }>(
            "delete from sessions where secret_hash = $1 returning workspace_id, token_hash",
            [hash],
          );
          if (!deleted) return;
          const actor = { kind: "owner", id: tokenId(deleted.token_hash), workspaceId: deleted.workspace_id } as const;
          await record(query, actor, deleted.workspace_id, "session.end", {});
        }),
      );
    },
  };
}

/** @returns the identifier of the workspace; undefined when there is no such owner token */
async function findOwner(query: Query, tokenHash: Buffer, now: number): Promise<string | undefined> {
  const [owner] = await query<{ id: string }>(
    `select workspace_id as id from owner_tokens
     where secret_hash = $1 and (expires_at is null or expires_at > $2) for share`,
    [tokenHash, new Date(now)],
  );
  return owner?.id;
}

/** @param by the owner token or link that opens the session */
async function insertSession(
  query: Query,
  by: { workspaceId: string; hash: Buffer; byLink: boolean },
  secret: string,
  now: number,
): Promise<Session | undefined> {
  await query("delete from sessions where expires_at < $1", [new Date(now)]);
  await query(
    `delete from sessions where secret_hash in
       (select secret_hash from sessions where workspace_id = $1 order by created_at desc offset ${MAX_SESSIONS - 1})`,
    [by.workspaceId],
  );
  await query(
    `insert into sessions (secret_hash, workspace_id, token_hash, by_link, created_at, used_at, expires_at)
     values ($1, $2, $3, $4, $5, $5, $6)`,
    [hashSecret(secret), by.workspaceId, by.hash, by.byLink, new Date(now), new Date(now + SESSION_MS)],
  );
  // The key cannot authenticate, because no secret has these random bytes as its hash.
  await query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at, console)
     values ($1, $2, $3, '', $4, $5, $6, true) on conflict (workspace_id) where console do nothing`,
    [
      by.workspaceId,
      `key_${randomBytes(12).toString("hex")}`,
      randomBytes(32),
      CONSOLE_KEY,
      [...SCOPES],
      new Date(now),
    ],
  );
  const actor = { kind: "owner", id: tokenId(by.hash), workspaceId: by.workspaceId } as const;
  await record(query, actor, by.workspaceId, "session.start", {});
  const [row] = await readRows(query, [hashSecret(secret)], now);
  return row && sessionOf(row);
}

interface Row {
  secret_hash: Buffer;
  token_hash: Buffer;
  workspace_id: string;
  workspace: string;
  key_id: string;
  used_at: Date;
  expires_at: Date;
}

function readRows(query: Query, hashes: Buffer[], now: number): Promise<Row[]> {
  return query<Row>(
    `select s.secret_hash, s.token_hash, s.workspace_id, w.name as workspace, k.id as key_id, s.used_at, s.expires_at
     from sessions s
       left join owner_tokens o on o.workspace_id = s.workspace_id and o.secret_hash = s.token_hash
         and (o.expires_at is null or o.expires_at > $2)
       join workspaces w on w.id = s.workspace_id
       join api_keys k on k.workspace_id = s.workspace_id and k.console
     where s.secret_hash = any ($1::bytea[]) and s.expires_at > $2 and s.used_at > $3
       and (s.by_link or o.workspace_id is not null)`,
    [hashes, new Date(now), new Date(now - IDLE_MS)],
  );
}

async function readSessions(pool: Pool, hashes: Buffer[], now: number): Promise<(Session | undefined)[]> {
  const rows = await readRows(pool.query, hashes, now);
  const stale = rows.filter(({ used_at }) => now - used_at.getTime() >= TOUCH_MS).map((row) => row.secret_hash);
  if (stale.length > 0) {
    await pool.query("update sessions set used_at = $2 where secret_hash = any ($1::bytea[])", [stale, new Date(now)]);
  }
  const found = new Map(rows.map((row) => [row.secret_hash.toString("latin1"), sessionOf(row)]));
  return hashes.map((hash) => found.get(hash.toString("latin1")));
}

function sessionOf({ token_hash, workspace_id: workspaceId, workspace, key_id: keyId, expires_at }: Row): Session {
  return {
    actor: { kind: "owner", id: tokenId(token_hash), workspaceId },
    caller: { workspaceId, workspace, keyId, scopes: SCOPES },
    expiresAt: expires_at,
  };
}

/** The failure for every session that does not exist or has ended. */
export function notSignedIn(): Failure {
  return new Failure("unauthenticated", { message: "Nobody is signed in, or the session has ended. Sign in." });
}

/** The failure for every owner token that is not valid. */
export function refusedToken(): Failure {
  return new Failure("unauthenticated", {
    message: "The owner token is not valid. An operator can create a new one; the earlier one then stops working.",
  });
}

/** The failure for every link that cannot be used. */
export function refusedLink(): Failure {
  return new Failure("unauthenticated", {
    message: "The sign-in link was used before or has expired. Get another one: chorus owners link WORKSPACE",
  });
}
