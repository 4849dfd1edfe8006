import { createSecret, hashSecret } from "../../admission/secret.ts";
import { createSecretCache, hashName } from "../../admission/secret-cache.ts";
import { Failure } from "../../failure.ts";
import type { Notifications } from "../../store/notifications.ts";
import { orOverloaded, type Pool, type Query } from "../../store/pool.ts";
import { type Actor, record } from "../audit.ts";
import { checkExpiry } from "../fields.ts";
import { findWorkspace } from "../workspaces/workspaces.ts";

export interface Owners {
  /**
   * Finds the operator or owner of a token. A token that is replaced or deleted stops working on all replicas within a
   * second.
   * @param needs `operator` when an owner token is not enough
   * @throws Failure `unauthenticated`, with one message for a token that is absent, unknown, replaced or expired;
   * `missing_scope` for an owner where an operator is needed; `overloaded` when the database is unavailable
   */
  authenticate(token: string | undefined, needs: "operator" | "owner"): Promise<Actor>;
  /**
   * Creates the owner token of a workspace. The earlier one stops working in this process at once, and sessions that it
   * or a sign-in link opened end. The secret is in the result and is not stored.
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
 * @param notifications report changes of tokens; without them, a token in use is looked up every quarter of a second
 */
export function createOwners(pool: Pool, clock: () => number = Date.now, notifications?: Notifications): Owners {
  const cache = createSecretCache((hashes) => readTokens(pool, hashes), clock, notifications);

  return {
    async authenticate(token, needs) {
      const actor = (await cache.find(token))?.actor;
      if (!actor) throw unauthenticated();
      if (actor.kind === "owner" && needs === "operator") {
        throw new Failure("missing_scope", { message: "Only an operator may do this; an owner token is not enough." });
      }
      return actor;
    },

    async createToken(actor, request) {
      checkExpiry(request.expiresAt, clock());
      const token = createSecret("ow_");
      const { workspace, replaced } = await orOverloaded(
        pool.tx((query) => replaceToken(query, actor, request, hashSecret(token))),
      );
      if (replaced) cache.forget(replaced);
      return { id: tokenId(hashSecret(token)), token, workspace };
    },
  };
}

/** @returns the identifier of the workspace, and the hash of its earlier token if there was one */
async function replaceToken(
  query: Query,
  actor: Actor,
  { workspace, expiresAt = null }: { workspace: string; expiresAt?: Date | null },
  hash: Buffer,
): Promise<{ workspace: string; replaced: Buffer | undefined }> {
  const { id } = await findWorkspace(query, actor, workspace);
  // Concurrent changes wait here, so that each sees the token that it replaces.
  await query("select from workspaces where id = $1 for no key update", [id]);
  const [earlier] = await query<{ hash: Buffer }>(
    "select secret_hash as hash from owner_tokens where workspace_id = $1",
    [id],
  );
  await query(
    `insert into owner_tokens (workspace_id, secret_hash, expires_at) values ($1, $2, $3)
     on conflict (workspace_id) do update
       set secret_hash = excluded.secret_hash, created_at = now(), expires_at = excluded.expires_at`,
    [id, hash, expiresAt],
  );
  // The owner ends every way in with a new token.
  await query("delete from sign_in_links where workspace_id = $1", [id]);
  await query("delete from sessions where workspace_id = $1 and by_link", [id]);
  await record(query, actor, id, "owner_token.create", { id: tokenId(hash), expires_at: expiresAt });
  return { workspace: id, replaced: earlier?.hash };
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

function unauthenticated(): Failure {
  return new Failure("unauthenticated", {
    message: "The call needs a valid operator or owner token, as Authorization: Bearer <token>.",
  });
}

/** Identifies a token in the audit. Eight bytes of a hash reveal nothing about a random secret. */
export function tokenId(hash: Buffer): string {
  return `tok_${hash.toString("hex", 0, 8)}`;
}
