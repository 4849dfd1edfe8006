import { createSecret, hashSecret } from "../../admission/secret.ts";
import { createSecretCache, hashName } from "../../admission/secret-cache.ts";
import type { Clock } from "../../contract/clock.ts";
import { Failure } from "../../contract/failure.ts";
import type { Notifications } from "../../store/notifications.ts";
import type { Pool } from "../../store/pool.ts";
import { type Actor, record, WHOLE_SERVICE } from "../shared/audit.ts";

export type Tokens = ReturnType<typeof createTokens>;

/**
 * Looks up tokens in the tables `operator_tokens` and `owner_tokens`.
 * @param notifications report changes of tokens; without them, a token in use is looked up every quarter of a second
 */
export function createTokens(pool: Pool, clock: Clock = Date.now, notifications?: Notifications) {
  const cache = createSecretCache((hashes) => readTokens(pool, hashes), clock, notifications);
  return {
    /**
     * Finds the operator or owner of a token. A token that is replaced or deleted stops working on all replicas within
     * a second.
     * @param needs `operator` when an owner token is not enough
     * @throws Failure `unauthenticated`, with one message for a token that is absent, unknown, replaced or expired;
     * `missing_scope` for an owner where an operator is needed; `overloaded` when the database is unavailable
     */
    async authenticate(token: string | undefined, needs: "operator" | "owner"): Promise<Actor> {
      const actor = (await cache.find(token))?.actor;
      if (!actor) {
        throw new Failure("unauthenticated", {
          message: "The call needs a valid operator or owner token, as Authorization: Bearer <token>.",
        });
      }
      if (actor.kind === "owner" && needs === "operator") {
        throw new Failure("missing_scope", { message: "Only an operator may do this; an owner token is not enough." });
      }
      return actor;
    },
    /** Removes a token from the cache, so that it stops working in this process at once. */
    forget: cache.forget,
  };
}

async function readTokens(
  pool: Pool,
  hashes: Buffer[],
): Promise<ReadonlyMap<string, { actor: Actor; expiresAt: number }>> {
  // The look-up compares hashes, so its duration reveals nothing about a token.
  const rows = await pool.query<{ hash: Buffer; owned: string | null; expires_at: Date | null }>(
    `select secret_hash as hash, null as owned, null::timestamptz as expires_at from operator_tokens
     where secret_hash = any ($1::bytea[])
     union all select secret_hash, workspace_id, expires_at from owner_tokens where secret_hash = any ($1::bytea[])`,
    [hashes],
  );
  return new Map(
    rows.map(({ hash, owned, expires_at }) => {
      const id = tokenId(hash);
      const actor: Actor = owned === null ? { kind: "operator", id } : { kind: "owner", id, workspaceId: owned };
      return [hashName(hash), { actor, expiresAt: expires_at?.getTime() ?? Number.POSITIVE_INFINITY }];
    }),
  );
}

/** Identifies a token in the audit. Eight bytes of a hash reveal nothing about a random secret. */
export function tokenId(hash: Buffer): string {
  return `tok_${hash.toString("hex", 0, 8)}`;
}

/**
 * Replaces all operator tokens with a new one, for an operator who has lost the token and has access to the database.
 * The others stop working on every replica within a second, and sessions that they opened end.
 * @returns the token, which is not stored, and how many it replaces
 */
export function replaceOperatorTokens(pool: Pool): Promise<{ token: string; id: string; replaced: number }> {
  const token = createSecret("op_");
  const hash = hashSecret(token);
  const id = tokenId(hash);
  return pool.tx(async (query) => {
    const others = await query<{ hash: Buffer }>("delete from operator_tokens returning secret_hash as hash");
    await query("insert into operator_tokens (secret_hash) values ($1)", [hash]);
    const replaced = others.map((other) => tokenId(other.hash));
    const actor = { kind: "service", id: "command line" } as const;
    await record(query, actor, WHOLE_SERVICE, "operator_token.replace", { id, replaced });
    return { token, id, replaced: others.length };
  });
}
