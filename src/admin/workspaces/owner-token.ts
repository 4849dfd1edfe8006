import { createSecret, hashSecret } from "../../admission/secret.ts";
import type { Clock } from "../../contract/clock.ts";
import type { Pool, Query } from "../../store/pool.ts";
import { record } from "../shared/audit.ts";
import { readExpiry } from "../shared/fields.ts";
import { type Tokens, tokenId } from "../sign-in/tokens.ts";
import { findWorkspace, readWorkspace, type WorkspaceAdmin } from "./workspace.ts";

/**
 * Creates the owner token of a workspace. The earlier one stops working in this process at once, and sessions that it
 * or a sign-in link opened end. The secret is in the response and is not stored.
 * @param tokens forgets the earlier token
 */
export function createOwnerToken(
  pool: Pool,
  tokens: Pick<Tokens, "forget">,
  clock: Clock,
): WorkspaceAdmin["createOwnerToken"] {
  return async ({ workspace: nameOrId, expiresAt }, actor) => {
    const expiry = readExpiry(expiresAt, clock());
    const token = createSecret("ow_");
    const hash = hashSecret(token);
    const { workspace, earlier } = await pool.tx(async (query) => {
      const { id } = await findWorkspace(query, actor, nameOrId);
      const earlier = await replaceToken(query, id, hash, expiry);
      await record(query, actor, id, "owner_token.create", { id: tokenId(hash), expires_at: expiry });
      return { workspace: await readWorkspace(query, id), earlier };
    });
    if (earlier) tokens.forget(earlier);
    return { token, id: tokenId(hash), workspace, ...(expiresAt ? { expiresAt } : {}) };
  };
}

/** @returns the hash of the earlier token; undefined when there was none */
async function replaceToken(query: Query, id: string, hash: Buffer, expiry: Date | null): Promise<Buffer | undefined> {
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
    [id, hash, expiry],
  );
  // The owner ends every way in with a new token.
  await query("delete from sign_in_links where workspace_id = $1", [id]);
  await query("delete from sessions where workspace_id = $1 and by_link", [id]);
  return earlier?.hash;
}
