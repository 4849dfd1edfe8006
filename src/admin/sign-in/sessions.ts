import { createBatcher } from "../../admission/batch.ts";
import { createSecret, hashSecret, isWellFormed, type SecretPrefix } from "../../admission/secret.ts";
import type { Clock } from "../../contract/clock.ts";
import { Failure } from "../../contract/failure.ts";
import { WAITING } from "../../overload/bounds.ts";
import type { Pool, Query } from "../../store/pool.ts";
import { type Actor, confinedTo, record, WHOLE_SERVICE } from "../shared/audit.ts";

/** Longest duration of a session, and longest time without a request, in milliseconds. */
export const SESSION_MS = 8 * 3_600_000;
const IDLE_MS = 3_600_000;

/** Interval at which the last use of a session is stored, in milliseconds. */
const TOUCH_MS = 60_000;

/** A signed-in owner, operator or person. */
export interface Session {
  /** Identity for the services of owners or operators. */
  readonly actor: Actor;
  readonly expiresAt: Date;
}

/**
 * Sessions of owners, operators or people. Every method throws Failure `overloaded` when the database is unavailable.
 * `Token` opens a session.
 */
export interface Sessions<S extends Session, Token = string> {
  /**
   * Opens a session.
   * @throws Failure `unauthenticated`, with one message for every token of a kind that is not valid
   */
  open(token: Token): Promise<Opened<S>>;
  /**
   * Finds the session of a secret, and restarts its idle timeout.
   * @throws Failure `unauthenticated`, with one message for a session that is absent, unknown, idle for too long or
   * ended, and for one whose token has been replaced or has expired
   */
  authenticate(secret: string | undefined): Promise<S>;
  /** Ends a session on every replica at once. Does nothing when there is no such session. */
  close(secret: string | undefined): Promise<void>;
}

/** A new session and its secret, which is not stored. */
export interface Opened<S> {
  readonly session: S;
  readonly secret: string;
}

/** Columns that all kinds of sessions have. */
export interface SessionRow {
  secret_hash: Buffer;
  used_at: Date;
  expires_at: Date;
}

/** A session to insert. */
export interface NewSession<Token> {
  readonly token: Token;
  readonly secret: string;
  /** Of the secret. */
  readonly hash: Buffer;
  readonly now: Date;
  readonly expiresAt: Date;
}

/** Statements of one kind of sessions. Hashes are those of the sessions' secrets. */
interface Kind<Row extends SessionRow, S extends Session, Token> {
  readonly prefix: SecretPrefix;
  /** @throws Failure `unauthenticated` when the token is not valid */
  insert(query: Query, session: NewSession<Token>): Promise<Row>;
  /** Reads the sessions that have not ended by `now` and were used after `usedAfter`. */
  read(query: Query, hashes: Buffer[], now: Date, usedAfter: Date): Promise<Row[]>;
  touch(query: Query, hashes: Buffer[], now: Date): Promise<unknown>;
  /** @returns one row when there was such a session */
  remove(query: Query, hash: Buffer): Promise<unknown[]>;
  sessionOf(row: Row): S;
}

/**
 * Manages one kind of sessions. The process caches none, because they must work and end on every replica at once.
 */
export function createSessions<Row extends SessionRow, S extends Session, Token = string>(
  pool: Pool,
  clock: Clock,
  kind: Kind<Row, S, Token>,
): Sessions<S, Token> {
  const readBatch = async (hashes: Buffer[]): Promise<(S | undefined)[]> => {
    const now = clock();
    const rows = await kind.read(pool.query, hashes, new Date(now), new Date(now - IDLE_MS));
    const stale = rows.filter(({ used_at }) => now - used_at.getTime() >= TOUCH_MS).map((row) => row.secret_hash);
    if (stale.length > 0) await kind.touch(pool.query, stale, new Date(now));
    const found = new Map(rows.map((row) => [row.secret_hash.toString("latin1"), kind.sessionOf(row)]));
    return hashes.map((hash) => found.get(hash.toString("latin1")));
  };
  // Concurrent look-ups share a statement, which bounds the load of many invalid secrets.
  const lookUp = createBatcher(readBatch, WAITING.lookUps);
  const find = async (secret: string | undefined) =>
    secret && isWellFormed(secret, kind.prefix) ? lookUp(hashSecret(secret)) : undefined;
  const audit = (query: Query, { actor }: Session, action: string) =>
    record(query, actor, confinedTo(actor) ?? WHOLE_SERVICE, action, {});

  return {
    async open(token) {
      const secret = createSecret(kind.prefix);
      const [now, expiresAt] = [new Date(clock()), new Date(clock() + SESSION_MS)];
      const session = await pool.tx(async (query) => {
        const hash = hashSecret(secret);
        const opened = kind.sessionOf(await kind.insert(query, { token, secret, hash, now, expiresAt }));
        await audit(query, opened, "session.start");
        return opened;
      });
      return { session, secret };
    },

    async authenticate(secret) {
      const session = await find(secret);
      if (session) return session;
      throw new Failure("unauthenticated", { message: "Nobody is signed in, or the session has ended. Sign in." });
    },

    async close(secret) {
      // Looked up first, because look-ups of invented secrets share a statement.
      const session = await find(secret);
      if (!session || !secret) return;
      await pool.tx(async (query) => {
        const removed = await kind.remove(query, hashSecret(secret));
        if (removed.length > 0) await audit(query, session, "session.end");
      });
    },
  };
}
