import { randomBytes } from "node:crypto";
import type { OidcConfig } from "../../config/oidc.ts";
import type { Role } from "../../contract/roles.ts";
import type { Query } from "../../store/pool.ts";
import { type Actor, record } from "../shared/audit.ts";
import { type Claims, profileOf, rolesOf } from "./claims.ts";
import { fitKeys, revokeKeys } from "./keys.ts";

/** Who changes memberships when the groups of a person change. */
const BY_GROUPS: Actor = { kind: "service", id: "groups" };

/**
 * Stores what the provider says of a person, and the roles that the person's groups give. A role of a group replaces
 * that of an invitation, and ends with the group.
 * @returns the identifier of the person
 */
export async function storePerson(query: Query, config: OidcConfig, claims: Claims, now: Date): Promise<string> {
  const { name, email } = profileOf(claims);
  const [person] = await query<{ id: string }>(
    `insert into people (id, issuer, subject, name, email, seen_at) values ($1, $2, $3, $4, $5, $6)
     on conflict (issuer, subject) do update
       set name = coalesce(nullif(excluded.name, ''), people.name),
         email = coalesce(nullif(excluded.email, ''), people.email), seen_at = excluded.seen_at
     returning id`,
    [`per_${randomBytes(12).toString("hex")}`, config.issuer, claims.sub, name, email, now],
  );
  if (!person) throw new Error("no person was written");
  await storeGroups(query, person.id, rolesOf(claims, config), now);
  return person.id;
}

async function storeGroups(query: Query, person: string, roles: ReadonlyMap<string, Role>, now: Date): Promise<void> {
  const found = await query<{ id: string; name: string }>("select id, name from workspaces where name = any ($1)", [
    [...roles.keys()],
  ]);
  const ended = await query<{ id: string }>(
    `delete from members where person_id = $1 and by_group and workspace_id <> all ($2)
     returning workspace_id as id`,
    [person, found.map(({ id }) => id)],
  );
  for (const { id } of ended) {
    const keys = await revokeKeys(query, id, person, now);
    await record(query, BY_GROUPS, id, "member.remove", { person, revoked_keys: keys });
  }
  for (const { id, name } of found) {
    const role = roles.get(name) ?? "viewer";
    const changed = await query(
      `insert into members as m (workspace_id, person_id, role, by_group, created_at) values ($1, $2, $3, true, $4)
       on conflict (workspace_id, person_id) do update set role = excluded.role, by_group = true
         where m.role <> excluded.role or not m.by_group
       returning 1`,
      [id, person, role, now],
    );
    if (changed.length === 0) continue;
    const keys = await fitKeys(query, { workspaceId: id, person, role }, now);
    await record(query, BY_GROUPS, id, "member.set_role", { person, role, revoked_keys: keys });
  }
}
