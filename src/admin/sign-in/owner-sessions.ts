import { randomBytes } from "node:crypto";
import { type Caller, SCOPES } from "../../admission/authenticate.ts";
import { hashSecret, isWellFormed } from "../../admission/secret.ts";
import type { Clock } from "../../contract/clock.ts";
import { Failure } from "../../contract/failure.ts";
import type { Pool, Query } from "../../store/pool.ts";
import { createSessions, type NewSession, type Session, type SessionRow, type Sessions } from "./sessions.ts";
import { tokenId } from "./tokens.ts";

/** Most sessions of a workspace. One more ends the oldest. */
const MAX_SESSIONS = 50;

/** Name of the key that requests from the playground count under. */
export const CONSOLE_KEY = "console";

/** A signed-in owner. */
export interface OwnerSession extends Session {
  /** Identity for requests from the playground. */
  readonly caller: Caller;
}

interface Row extends SessionRow {
  /** Of the token that opened the session. */
  token_hash: Buffer;
  workspace_id: string;
  workspace: string;
  key_id: string;
  capped: string[] | null;
  keeps_text: boolean;
}

/**
 * Manages sessions of the console in the table `sessions`. An owner token opens one, or the secret of a sign-in link,
 * which is used up. A session ends when its owner token is replaced or expires; one of a link, when the workspace gets
 * a new owner token.
 */
export function createOwnerSessions(pool: Pool, clock: Clock = Date.now): Sessions<OwnerSession> {
  return createSessions<Row, OwnerSession>(pool, clock, {
    prefix: "cs_",
    insert: insertSession,
    read: readRows,
    touch: (query, hashes, now) =>
      query("update sessions set used_at = $2 where secret_hash = any ($1::bytea[])", [hashes, now]),
    remove: (query, hash) => query("delete from sessions where secret_hash = $1 returning 1", [hash]),
    sessionOf: ({ token_hash, workspace_id: workspaceId, workspace, key_id: keyId, capped, ...row }) => ({
      actor: { kind: "owner", id: tokenId(token_hash), workspaceId },
      caller: {
        ...{ workspaceId, workspace, keyId, scopes: SCOPES },
        ...(capped ? { capped } : {}),
        ...(row.keeps_text ? { keepsText: true } : {}),
      },
      expiresAt: row.expires_at,
    }),
  });
}

function readRows(query: Query, hashes: Buffer[], now: Date, usedAfter: Date): Promise<Row[]> {
  return query<Row>(
    `select s.secret_hash, s.token_hash, s.workspace_id, w.name as workspace, k.id as key_id, s.used_at, s.expires_at,
       capped_kinds(s.workspace_id, k.id) as capped, keeps_text(s.workspace_id, k.id) as keeps_text
     from sessions s
       left join owner_tokens o on o.workspace_id = s.workspace_id and o.secret_hash = s.token_hash
         and (o.expires_at is null or o.expires_at > $2)
       join workspaces w on w.id = s.workspace_id
       join api_keys k on k.workspace_id = s.workspace_id and k.console
     where s.secret_hash = any ($1::bytea[]) and s.expires_at > $2 and s.used_at > $3
       and (s.by_link or o.workspace_id is not null)`,
    [hashes, now, usedAfter],
  );
}

/** Opens a session with an owner token, or the secret of a link. */
async function insertSession(query: Query, { token, hash, now, expiresAt }: NewSession<string>): Promise<Row> {
  const tokenHash = hashSecret(token);
  const byLink = isWellFormed(token, "li_");
  const workspaceId = await (byLink ? takeLink : findToken)(query, tokenHash, now);
  const refused = byLink ? refusedLink : refusedToken;
  if (workspaceId === undefined) throw refused();
  await query("delete from sessions where expires_at < $1", [now]);
  await query(
    `delete from sessions where secret_hash in
       (select secret_hash from sessions where workspace_id = $1 order by created_at desc offset ${MAX_SESSIONS - 1})`,
    [workspaceId],
  );
  await query(
    `insert into sessions (secret_hash, workspace_id, token_hash, by_link, created_at, used_at, expires_at)
     values ($1, $2, $3, $4, $5, $5, $6)`,
    [hash, workspaceId, tokenHash, byLink, now, expiresAt],
  );
  // The key cannot authenticate, because no secret has these random bytes as its hash.
  await query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at, console)
     values ($1, $2, $3, '', $4, $5, $6, true) on conflict (workspace_id) where console do nothing`,
    [workspaceId, `key_${randomBytes(12).toString("hex")}`, randomBytes(32), CONSOLE_KEY, [...SCOPES], now],
  );
  const [row] = await readRows(query, [hash], now, new Date(0));
  if (!row) throw refused();
  return row;
}

/** @returns the identifier of the workspace; undefined when there is no such owner token */
async function findToken(query: Query, hash: Buffer, now: Date): Promise<string | undefined> {
  const [owner] = await query<{ id: string }>(
    `select workspace_id as id from owner_tokens
     where secret_hash = $1 and (expires_at is null or expires_at > $2) for share`,
    [hash, now],
  );
  return owner?.id;
}

/** Uses a link up. @returns the identifier of its workspace; undefined when the link is unknown, used or expired */
async function takeLink(query: Query, hash: Buffer, now: Date): Promise<string | undefined> {
  const [link] = await query<{ id: string }>(
    "delete from sign_in_links where secret_hash = $1 and expires_at > $2 returning workspace_id as id",
    [hash, now],
  );
  return link?.id;
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
