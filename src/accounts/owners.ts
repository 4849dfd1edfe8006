import { MAX_SECRET_LENGTH } from "../admission/authenticate.ts";
import { createSecret, hashSecret } from "../admission/secret.ts";
import { Failure } from "../failure.ts";
import { orOverloaded, type Pool } from "../store/pool.ts";
import { type Actor, record } from "./audit.ts";
import { checkExpiry } from "./validation.ts";
import { findWorkspace } from "./workspaces.ts";

export interface Owners {
  /**
   * Finds the operator or owner of a token.
   * @param needs `operator` when an owner token is not enough
   * @throws Failure `unauthenticated`, with one message for a token that is absent, unknown, replaced or expired;
   * `missing_scope` for an owner where an operator is needed; `overloaded` when the database is unavailable
   */
  authenticate(token: string | undefined, needs: "operator" | "owner"): Promise<Actor>;
  /**
   * Creates the owner token of a workspace, which replaces the earlier one at once. The secret is in the result and is
   * not stored.
   * @param request.workspace name or identifier
   * @param request.expiresAt a time in the future; undefined: never
   * @throws Failure `invalid_request` with `expires_at`; `unknown_entity`; `overloaded`
   */
  createToken(
    actor: Actor,
    request: { workspace: string; expiresAt?: Date },
  ): Promise<{ id: string; token: string; workspace: string }>;
}

/**
 * Manages tokens in the tables `operator_tokens` and `owner_tokens`.
 * @param clock the time in milliseconds since 1970
 */
export function createOwners(pool: Pool, clock: () => number = Date.now): Owners {
  return {
    async authenticate(token, needs) {
      if (!token || token.length > MAX_SECRET_LENGTH) throw unauthenticated();
      // The look-up compares hashes, so its duration reveals nothing about a token.
      const hash = hashSecret(token);
      const [row] = await orOverloaded(
        pool.query<{ owned: string | null }>(
          `select null as owned from operator_tokens where secret_hash = $1
           union all select workspace_id from owner_tokens
             where secret_hash = $1 and (expires_at is null or expires_at > $2)`,
          [hash, new Date(clock())],
        ),
      );
      if (!row) throw unauthenticated();
      const id = tokenId(hash);
      if (row.owned === null) return { kind: "operator", id };
      if (needs === "operator") {
        throw new Failure("missing_scope", { message: "Only an operator may do this; an owner token is not enough." });
      }
      return { kind: "owner", id, workspaceId: row.owned };
    },

    async createToken(actor, { workspace, expiresAt }) {
      checkExpiry(expiresAt, clock());
      const token = createSecret("ow_");
      const hash = hashSecret(token);
      const id = tokenId(hash);
      return orOverloaded(
        pool.tx(async (query) => {
          const found = await findWorkspace(query, actor, workspace);
          await query(
            `insert into owner_tokens (workspace_id, secret_hash, expires_at) values ($1, $2, $3)
             on conflict (workspace_id) do update
               set secret_hash = excluded.secret_hash, created_at = now(), expires_at = excluded.expires_at`,
            [found.id, hash, expiresAt ?? null],
          );
          await record(query, actor, found.id, "owner_token.create", { id, expires_at: expiresAt ?? null });
          return { id, token, workspace: found.id };
        }),
      );
    },
  };
}

function unauthenticated(): Failure {
  return new Failure("unauthenticated", {
    message: "The call needs a valid operator or owner token, as Authorization: Bearer <token>.",
  });
}

/** Identifies a token in the audit. Eight bytes of a hash reveal nothing about a random secret. */
export function tokenId(hash: Buffer): string {
  return `tok_${hash.toString("hex", 0, 8)}`;
}
