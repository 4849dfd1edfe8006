import { type Caller, SCOPES } from "../../admission/authenticate.ts";
import type { OidcConfig } from "../../config/oidc.ts";
import type { Clock } from "../../contract/clock.ts";
import type { Role } from "../../contract/roles.ts";
import { MEMBER_TAG } from "../../contract/subjects.ts";
import type { Pool, Query } from "../../store/pool.ts";
import { type Actor, WHOLE_SERVICE } from "../shared/audit.ts";
import { createSessions, type NewSession, type Session, type SessionRow, type Sessions } from "../sign-in/sessions.ts";
import { isOperator } from "./claims.ts";
import { insertPlaygroundKey } from "./keys.ts";
import { storePerson } from "./person.ts";
import type { SignedIn } from "./provider.ts";
import { seal } from "./seal.ts";

/** Most sessions of a person. One more ends the oldest. */
const MAX_SESSIONS = 50;

/** A signed-in person. */
export interface PersonSession extends Session {
  readonly person: { readonly id: string; readonly name: string; readonly email: string };
  /** Identity for the services of operators; undefined: the person is none. */
  readonly operator: Actor | undefined;
  /** The shown workspace, and the identity for requests from its playground; undefined: not a member (any more). */
  readonly shown: { readonly role: Role; readonly caller: Caller } | undefined;
  /** All workspaces of the person, by name. */
  readonly workspaces: readonly Membership[];
  readonly confirmation: Confirmation;
}

/** What is known of the last time that the provider was asked, in milliseconds since 1970. */
export interface Confirmation {
  readonly confirmedAt: number;
  /** Before this time, no replica asks again. */
  readonly retryAt: number;
  /** Whether a replica asks now. */
  readonly asking: boolean;
  readonly subject: string;
}

interface Membership {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
}

interface Row extends SessionRow {
  person_id: string;
  name: string;
  email: string;
  subject: string;
  operator: boolean;
  workspace_id: string | null;
  workspaces: Membership[] | null;
  key_id: string | null;
  capped: string[] | null;
  keeps_text: boolean;
  confirmed_at: Date;
  retry_at: Date;
  asking: boolean;
}

/**
 * Manages the sessions of people in the table `person_sessions`. What the provider says of a person at sign-in opens
 * one. It has at most one workspace at a time, which the console shows.
 */
export function createPersonSessions(pool: Pool, config: OidcConfig, clock: Clock): Sessions<PersonSession, SignedIn> {
  return createSessions<Row, PersonSession, SignedIn>(pool, clock, {
    prefix: "ps_",
    insert: (query, session) => insertSession(query, config, session),
    read: readRows,
    touch: (query, hashes, now) =>
      query("update person_sessions set used_at = $2 where secret_hash = any ($1::bytea[])", [hashes, now]),
    remove: (query, hash) => query("delete from person_sessions where secret_hash = $1 returning 1", [hash]),
    sessionOf,
  });
}

function readRows(query: Query, hashes: Buffer[], now: Date, usedAfter: Date): Promise<Row[]> {
  return query<Row>(
    `select s.secret_hash, s.person_id, p.name, p.email, p.subject, s.operator, s.workspace_id, k.id as key_id,
       capped_kinds(s.workspace_id, k.id) as capped, keeps_text(s.workspace_id, k.id) as keeps_text,
       s.confirmed_at, s.retry_at, s.asking, s.used_at, s.expires_at,
       (select jsonb_agg(jsonb_build_object('id', w.id, 'name', w.name, 'role', m.role) order by w.name)
        from members m join workspaces w on w.id = m.workspace_id where m.person_id = s.person_id) as workspaces
     from person_sessions s join people p on p.id = s.person_id
       left join api_keys k on k.workspace_id = s.workspace_id and k.person_id = s.person_id and k.playground
     where s.secret_hash = any ($1::bytea[]) and s.expires_at > $2 and s.used_at > $3`,
    [hashes, now, usedAfter],
  );
}

async function insertSession(query: Query, config: OidcConfig, session: NewSession<SignedIn>): Promise<Row> {
  const { token, secret, hash, now, expiresAt } = session;
  const person = await storePerson(query, config, token.claims, now);
  await query("delete from person_sessions where expires_at < $1", [now]);
  await query(
    `delete from person_sessions where secret_hash in
       (select secret_hash from person_sessions where person_id = $1 order by created_at desc
        offset ${MAX_SESSIONS - 1})`,
    [person],
  );
  const [first] = await query<{ id: string }>(
    `select w.id from members m join workspaces w on w.id = m.workspace_id where m.person_id = $1
     order by w.name limit 1`,
    [person],
  );
  const operator = isOperator(token.claims, config.operators);
  await query(
    `insert into person_sessions (secret_hash, person_id, workspace_id, operator, tokens, confirmed_at, retry_at,
       created_at, used_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, $6, $6, $6, $7)`,
    [hash, person, first?.id ?? null, operator, seal(secret, JSON.stringify(token.tokens)), now, expiresAt],
  );
  if (first) await insertPlaygroundKey(query, first.id, person, now);
  const [row] = await readRows(query, [hash], now, new Date(0));
  if (!row) throw new Error("no session was written");
  return row;
}

function sessionOf(row: Row): PersonSession {
  const { person_id: id, name, email, subject, workspace_id: workspaceId, asking } = row;
  const workspaces = row.workspaces ?? [];
  const member = workspaces.find((one) => one.id === workspaceId);
  return {
    person: { id, name, email },
    actor: member
      ? { kind: "member", id, workspaceId: member.id, role: member.role }
      : { kind: "member", id, workspaceId: WHOLE_SERVICE, role: "viewer" },
    operator: row.operator ? { kind: "operator", id } : undefined,
    shown: member && row.key_id !== null ? { role: member.role, caller: callerOf(row, member, row.key_id) } : undefined,
    workspaces,
    confirmation: {
      confirmedAt: row.confirmed_at.getTime(),
      retryAt: row.retry_at.getTime(),
      asking,
      subject,
    },
    expiresAt: row.expires_at,
  };
}

function callerOf({ person_id, capped, keeps_text }: Row, { id, name, role }: Membership, keyId: string): Caller {
  return {
    workspaceId: id,
    workspace: name,
    keyId,
    scopes: SCOPES,
    ...(role === "developer" ? { fixedTags: { [MEMBER_TAG]: person_id } } : {}),
    ...(capped ? { capped } : {}),
    ...(keeps_text ? { keepsText: true } : {}),
  };
}
