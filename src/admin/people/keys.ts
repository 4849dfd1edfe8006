import { randomBytes } from "node:crypto";
import { SCOPES, type Scope } from "../../admission/authenticate.ts";
import type { Role } from "../../contract/roles.ts";
import { MEMBER_TAG } from "../../contract/subjects.ts";
import type { Query } from "../../store/pool.ts";
import { CONSOLE_KEY } from "../sign-in/owner-sessions.ts";

/**
 * Fits the keys that a member holds to a new role. Those of a developer count under the caps of developers and lose the
 * scope that shows the use of others; roles without keys lose them. A trigger tells all replicas.
 * @returns identifiers of the keys that were revoked
 */
export async function fitKeys(
  query: Query,
  { workspaceId, person, role }: { workspaceId: string; person: string; role: Role },
  now: Date,
): Promise<string[]> {
  if (role === "owner") return [];
  if (role !== "developer") return revokeKeys(query, workspaceId, person, now);
  const revoked = await revokeKeys(query, workspaceId, person, now, ["metrics"]);
  await query(
    `update api_keys set fixed_tags = coalesce(fixed_tags, '{}') || jsonb_build_object($3::text, $2::text),
       scopes = array_remove(scopes, 'metrics')
     where workspace_id = $1 and person_id = $2 and not playground and revoked_at is null`,
    [workspaceId, person, MEMBER_TAG],
  );
  return revoked;
}

/**
 * Revokes the keys that end with a membership. A trigger tells all replicas.
 * @param within only those that have no other scope than these
 * @returns their identifiers
 */
export async function revokeKeys(
  query: Query,
  workspaceId: string,
  person: string,
  now: Date,
  within: readonly Scope[] = SCOPES,
): Promise<string[]> {
  const rows = await query<{ id: string }>(
    `update api_keys set revoked_at = $3
     where workspace_id = $1 and person_id = $2 and not playground and revoked_at is null and scopes <@ $4
     returning id`,
    [workspaceId, person, now, within],
  );
  return rows.map(({ id }) => id);
}

/** Creates the key that a member's requests from the playground count under, unless there is one. */
export async function insertPlaygroundKey(query: Query, workspaceId: string, person: string, now: Date): Promise<void> {
  // The key cannot authenticate, because no secret has these random bytes as its hash.
  await query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at, person_id, playground)
     values ($1, $2, $3, '', $4, $5, $6, $7, true) on conflict (workspace_id, person_id) where playground do nothing`,
    [workspaceId, `key_${randomBytes(12).toString("hex")}`, randomBytes(32), CONSOLE_KEY, [...SCOPES], now, person],
  );
}
