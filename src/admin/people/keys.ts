import type { Role } from "../../contract/roles.ts";
import { MEMBER_TAG } from "../../contract/subjects.ts";
import type { Query } from "../../store/pool.ts";

/**
 * Fits the keys that a member holds to a new role. Those of a developer count under the caps of developers; roles
 * without keys lose them. A trigger tells all replicas.
 * @returns identifiers of the keys that were revoked
 */
export async function fitKeys(
  query: Query,
  { workspaceId, person, role }: { workspaceId: string; person: string; role: Role },
  now: Date,
): Promise<string[]> {
  if (role === "billing" || role === "viewer") return revokeKeys(query, workspaceId, person, now);
  if (role === "developer")
    await query(
      `update api_keys set fixed_tags = coalesce(fixed_tags, '{}') || jsonb_build_object($3::text, $2::text)
       where workspace_id = $1 and person_id = $2 and not playground and revoked_at is null`,
      [workspaceId, person, MEMBER_TAG],
    );
  return [];
}

/**
 * Revokes the keys that end with a membership. A trigger tells all replicas.
 * @returns their identifiers
 */
export async function revokeKeys(query: Query, workspaceId: string, person: string, now: Date): Promise<string[]> {
  const rows = await query<{ id: string }>(
    `update api_keys set revoked_at = $3
     where workspace_id = $1 and person_id = $2 and not playground and revoked_at is null returning id`,
    [workspaceId, person, now],
  );
  return rows.map(({ id }) => id);
}
