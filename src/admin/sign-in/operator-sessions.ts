import { hashSecret } from "../../admission/secret.ts";
import type { Clock } from "../../contract/clock.ts";
import { Failure } from "../../contract/failure.ts";
import type { Pool } from "../../store/pool.ts";
import { createSessions, type Session, type SessionRow, type Sessions } from "./sessions.ts";
import { tokenId } from "./tokens.ts";

interface Row extends SessionRow {
  /** Of the token that opened the session. */
  token_hash: Buffer;
}

/** Most sessions of operators. One more ends the oldest. */
const MAX_SESSIONS = 50;

/**
 * Manages sessions of the operator's side of the console in the table `operator_sessions`. An operator token opens one,
 * and ends its sessions when it is replaced.
 */
export function createOperatorSessions(pool: Pool, clock: Clock = Date.now): Sessions<Session> {
  return createSessions<Row, Session>(pool, clock, {
    prefix: "os_",
    async insert(query, { token, hash, now, expiresAt }) {
      const tokenHash = hashSecret(token);
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
      return { secret_hash: hash, token_hash: tokenHash, used_at: now, expires_at: expiresAt };
    },
    read: (query, hashes, now, usedAfter) =>
      query<Row>(
        `select s.* from operator_sessions s join operator_tokens o on o.secret_hash = s.token_hash
         where s.secret_hash = any ($1::bytea[]) and s.expires_at > $2 and s.used_at > $3`,
        [hashes, now, usedAfter],
      ),
    touch: (query, hashes, now) =>
      query("update operator_sessions set used_at = $2 where secret_hash = any ($1::bytea[])", [hashes, now]),
    remove: (query, hash) => query("delete from operator_sessions where secret_hash = $1 returning 1", [hash]),
    sessionOf: ({ token_hash, expires_at }) => ({
      actor: { kind: "operator", id: tokenId(token_hash) },
      expiresAt: expires_at,
    }),
  });
}

/** The failure for every token that is not an operator's. */
export function refusedOperatorToken(): Failure {
  return new Failure("unauthenticated", {
    message: "The operator token is not valid. A lost one is replaced with chorus operators replace-token.",
  });
}
