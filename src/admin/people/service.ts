import type { Authenticator } from "../../admission/authenticate.ts";
import type { Clock } from "../../contract/clock.ts";
import { Failure, invalid } from "../../contract/failure.ts";
import type { Pool, Query } from "../../store/pool.ts";
import { type Actor, record } from "../shared/audit.ts";
import { pageOf, readPageToken, sizeOfPage } from "../shared/page.ts";
import { findWorkspace } from "../workspaces/workspace.ts";
import { inviteMember, listInvitations, withdrawInvitation } from "./invitations.ts";
import { fitKeys, revokeKeys } from "./keys.ts";
import { COLUMNS, type MemberAdmin, type MemberRow, memberMessage, readRole } from "./member.ts";

/** What the management of members needs. */
interface MemberParts {
  readonly pool: Pool;
  /** Forgets the keys of a member that was changed. Other replicas apply the change within a second. */
  readonly cache: Pick<Authenticator, "forget">;
  /** Whether people can sign in. */
  readonly hasProvider: boolean;
  readonly clock: Clock;
}

/** Manages the members of workspaces for operators and owners. */
export function createMemberAdmin(parts: MemberParts): MemberAdmin {
  const { pool, hasProvider, clock } = parts;
  return {
    async listMembers({ workspace, pageSize, pageToken }, actor) {
      const size = sizeOfPage(pageSize);
      const [id = "", name = ""] = readPageToken(pageToken, /^(per_\w+) (.*)$/s) ?? [];
      const { id: workspaceId } = await findWorkspace(pool.query, actor, workspace);
      const found = await pool.query<MemberRow & { place: string }>(
        `select ${COLUMNS}, lower(p.name) as place from members m join people p on p.id = m.person_id
         where m.workspace_id = $1 and (lower(p.name), p.id) > ($2, $3) order by lower(p.name), p.id limit $4`,
        [workspaceId, name.replaceAll("\0", ""), id, size + 1],
      );
      const { rows, nextPageToken } = pageOf(found, size, (row) => `${row.id} ${row.place}`);
      const invitations = pageToken === "" ? await listInvitations(pool.query, workspaceId, clock()) : [];
      return { members: rows.map(memberMessage), nextPageToken, invitations };
    },

    inviteMember: inviteMember(pool, clock, hasProvider),

    withdrawInvitation: withdrawInvitation(pool),

    async setMemberRole({ workspace, person, role: number }, actor) {
      const role = readRole(number);
      const member = await change(parts, { workspace, person, actor }, async (query, workspaceId, before) => {
        if (before.byGroup) {
          const message = "A group of the identity provider gives this role. Change the groups of the person there.";
          throw invalid("person", message);
        }
        if (role !== "owner") await keepAnOwner(query, workspaceId, before, "role");
        await query("update members set role = $3 where workspace_id = $1 and person_id = $2", [
          workspaceId,
          before.id,
          role,
        ]);
        const of = { workspaceId, person: before.id, role };
        const keys = await fitKeys(query, of, new Date(clock()));
        const details = { person: before.id, from: before.role, role, revoked_keys: keys };
        await record(query, actor, workspaceId, "member.set_role", details);
        return { ...before, role, keys: before.keys - keys.length };
      });
      return { member: memberMessage(member) };
    },

    async removeMember({ workspace, person }, actor) {
      return change(parts, { workspace, person, actor }, async (query, workspaceId, { id, role, ...rest }) => {
        await keepAnOwner(query, workspaceId, { id, role, ...rest }, "person");
        await query("delete from members where workspace_id = $1 and person_id = $2", [workspaceId, id]);
        const keys = await revokeKeys(query, workspaceId, id, new Date(clock()));
        await record(query, actor, workspaceId, "member.remove", { person: id, revoked_keys: keys });
        return { revokedKeys: keys.length };
      });
    },
  };
}

/**
 * Changes a membership, and applies that to the member's keys at once. Changes of a workspace wait for each other, so
 * that two owners cannot remove each other.
 * @throws Failure `unknown_entity`
 */
async function change<T>(
  { pool, cache }: MemberParts,
  { workspace, person, actor }: { workspace: string; person: string; actor: Actor },
  make: (query: Query, workspaceId: string, before: MemberRow) => Promise<T>,
): Promise<T> {
  const { changed, keys } = await pool.tx(async (query) => {
    const { id } = await findWorkspace(query, actor, workspace);
    await query("select from workspaces where id = $1 for no key update", [id]);
    // Not by e-mail address, which some providers let people choose.
    const [member] = await query<MemberRow>(
      `select ${COLUMNS} from members m join people p on p.id = m.person_id where m.workspace_id = $1 and p.id = $2`,
      [id, person.replaceAll("\0", "")],
    );
    if (!member) {
      const message = "There is no such member. Identifiers begin with per_; list the members to see them.";
      throw new Failure("unknown_entity", { field: "person", message });
    }
    const changed = await make(query, id, member);
    const keys = await query<{ hash: Buffer }>(
      "select secret_hash as hash from api_keys where workspace_id = $1 and person_id = $2",
      [id, member.id],
    );
    return { changed, keys };
  });
  for (const { hash } of keys) cache.forget(hash);
  return changed;
}

async function keepAnOwner(query: Query, workspaceId: string, { id, role }: MemberRow, field: string): Promise<void> {
  if (role !== "owner") return;
  const others = await query(
    "select from members where workspace_id = $1 and role = 'owner' and person_id <> $2 limit 1",
    [workspaceId, id],
  );
  if (others.length === 0)
    throw invalid(field, "This is the last owner of the workspace. Make somebody else an owner first.");
}
