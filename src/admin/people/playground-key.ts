import { randomBytes } from "node:crypto";
import { SCOPES } from "../../admission/authenticate.ts";
import type { Query } from "../../store/pool.ts";
import { CONSOLE_KEY } from "../sign-in/owner-sessions.ts";

/** Creates the key that a member's requests from the playground count under, unless there is one. */
export async function insertPlaygroundKey(query: Query, workspaceId: string, person: string, now: Date): Promise<void> {
  // The key cannot authenticate, because no secret has these random bytes as its hash.
  await query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at, person_id, playground)
     values ($1, $2, $3, '', $4, $5, $6, $7, true) on conflict (workspace_id, person_id) where playground do nothing`,
    [workspaceId, `key_${randomBytes(12).toString("hex")}`, randomBytes(32), CONSOLE_KEY, [...SCOPES], now, person],
  );
}
