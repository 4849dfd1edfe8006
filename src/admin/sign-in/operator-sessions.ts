import { createBatcher } from "../../admission/batch.ts";
import { createSecret, hashSecret, isWellFormed } from "../../admission/secret.ts";
import { Failure } from "../../failure.ts";
import { orOverloaded, type Pool } from "../../store/pool.ts";
import { type Actor, record, WHOLE_SERVICE } from "../audit.ts";
import { IDLE_MS, notSignedIn, SESSION_MS, TOUCH_MS } from "./sessions.ts";
import { tokenId } from "./tokens.ts";

/** Most sessions of operators. One more ends the oldest. */
const MAX_SESSIONS = 50;

/** A signed-in operator. */
export interface OperatorSession {
  readonly actor: Actor;
  readonly expiresAt: Date;
}

/** A new session and its secret, which is not stored. */
export interface OpenedOperatorSession {
  readonly session: OperatorSession;
  readonly secret: string;
}

/** Sessions of the operator's side of the console. Every method throws Failure `overloaded` without the database. */
export interface OperatorSessions {
  /** Opens a session. @throws Failure `unauthenticated` for a token that is not an operator's */
  open(token: string): Promise<OpenedOperatorSession>;
  /**
   * Finds the session of a secret, and restarts its idle timeout.
   * @throws Failure `unauthenticated`, with one message for a session that is absent, unknown, idle for too long or
   *   ended, and for one whose operator token has been replaced
   */
  authenticate(secret: string | undefined): Promise<OperatorSession>;
  /** Ends a session on every replica at once. Does nothing when there is no such session. */
  close(secret: string | undefined): Promise<void>;
}

interface Row {
  secret_hash: Buffer;
  token_hash: Buffer;
  used_at: Date;
  expires_at: Date;
}

/**
 * Manages sessions in the table `operator_sessions`. The process caches none, because they must work and end on every
 * replica at once.
 * @param clock the time in milliseconds since 1970
 */
export function createOperatorSessions(pool: Pool, clock: () => number = Date.now): OperatorSessions {
  // Concurrent look-ups share a statement, which bounds the load of many invalid secrets.
  const lookUp = createBatcher((_: string, hashes: Buffer[]) => readSessions(pool, hashes, clock()), {
    maxItems: 1_000,
    maxWaiting: 10_000,
  });
  const find = async (secret: string | undefined) =>
    secret && isWellFormed(secret, "os_") ? orOverloaded(lookUp("sessions", hashSecret(secret))) : undefined;

  return {
    async open(token) {
      const secret = createSecret("os_");
      const [hash, tokenHash] = [hashSecret(secret), hashSecret(token)];
      const [now, expiresAt] = [new Date(clock()), new Date(clock() + SESSION_MS)];
      const actor = { kind: "operator", id: tokenId(tokenHash) } as const;
      await orOverloaded(
        pool.tx(async (query) => {
          const [known] = await query("select from operator_tokens where secret_hash = $1 for share", [tokenHash]);
          if (!known) throw refusedOperatorToken();
          await query("delete from operator_sessions where expires_at < $1", [now]);
          await query(
            `delete from operator_sessions where secret_hash in
               (select secret_hash from operator_sessions order by created_at desc offset ${MAX_SESSIONS - 1})`,
          );
          await query(
            `insert into operator_sessions (secret_hash, token_hash, created_at, used_at, expires_at)
             values ($1, $2, $3, $3, $4)`,
            [hash, tokenHash, now, expiresAt],
          );
          await record(query, actor, WHOLE_SERVICE, "session.start", {});
        }),
      );
      return { session: { actor, expiresAt }, secret };
    },

    async authenticate(secret) {
      return (await find(secret)) ?? Promise.reject(notSignedIn());
    },

    async close(secret) {
      // Looked up first, because look-ups of invented secrets share a statement.
      const session = await find(secret);
      if (!session || !secret) return;
      const hash = hashSecret(secret);
      await orOverloaded(
        pool.tx(async (query) => {
          const deleted = await query("delete from operator_sessions where secret_hash = $1 returning 1", [hash]);
          if (deleted.length > 0) await record(query, session.actor, WHOLE_SERVICE, "session.end", {});
        }),
      );
    },
  };
}

async function readSessions(pool: Pool, hashes: Buffer[], now: number): Promise<(OperatorSession | undefined)[]> {
  const rows = await pool.query<Row>(
    `select s.* from operator_sessions s join operator_tokens o on o.secret_hash = s.token_hash
     where s.secret_hash = any ($1::bytea[]) and s.expires_at > $2 and s.used_at > $3`,
    [hashes, new Date(now), new Date(now - IDLE_MS)],
  );
  const stale = rows.filter(({ used_at }) => now - used_at.getTime() >= TOUCH_MS).map((row) => row.secret_hash);
  if (stale.length > 0) {
    await pool.query("update operator_sessions set used_at = $2 where secret_hash = any ($1::bytea[])", [
      stale,
      new Date(now),
    ]);
  }
  const found = new Map(
    rows.map(({ secret_hash, token_hash, expires_at }): [string, OperatorSession] => {
      const actor = { kind: "operator", id: tokenId(token_hash) } as const;
      return [secret_hash.toString("latin1"), { actor, expiresAt: expires_at }];
    }),
  );
  return hashes.map((hash) => found.get(hash.toString("latin1")));
}

/** The failure for every token that is not an operator's. */
export function refusedOperatorToken(): Failure {
  return new Failure("unauthenticated", {
    message: "The operator token is not valid. A lost one is replaced with chorus operators replace-token.",
  });
}
