import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { InvitationSchema } from "../../../gen/chorus/admin/v1/members_pb.js";
import { MemberRoleSchema } from "../../../gen/chorus/v1/options_pb.js";
import { createSecret, hashSecret, isWellFormed } from "../../admission/secret.ts";
import type { Clock } from "../../contract/clock.ts";
import { Failure, invalid } from "../../contract/failure.ts";
import { numberOf } from "../../contract/json-names.ts";
import { randomHex } from "../../contract/random-hex.ts";
import type { Pool, Query } from "../../store/pool.ts";
import { record } from "../shared/audit.ts";
import { checkLabel } from "../shared/fields.ts";
import { findWorkspace } from "../workspaces/workspace.ts";
import { type MemberAdmin, readRole } from "./member.ts";

/** Time in which an invitation can be used, in milliseconds. */
const LIFE_MS = 7 * 86_400_000;

/** Most open invitations of a workspace. */
const MAX_OPEN = 100;

interface InvitationRow {
  id: string;
  role: string;
  note: string;
  created_at: Date;
  expires_at: Date;
}

/**
 * Creates a link that makes one person a member. As in a sign-in link, the secret is in the fragment of the path, which
 * browsers do not send.
 */
export function inviteMember(pool: Pool, clock: Clock, hasProvider: boolean): MemberAdmin["inviteMember"] {
  return async ({ workspace, role: number, note }, actor) => {
    const role = readRole(number);
    checkLabel("note", note);
    if (!hasProvider) {
      const message =
        "Nobody can sign in to use an invitation. Configure an OpenID provider first (CHORUS_OIDC_ISSUER).";
      throw invalid("workspace", message);
    }
    const secret = createSecret("in_");
    const now = new Date(clock());
    const row = {
      id: `inv_${randomHex()}`,
      role,
      note,
      created_at: now,
      expires_at: new Date(now.getTime() + LIFE_MS),
    };
    await pool.tx(async (query) => {
      const { id } = await findWorkspace(query, actor, workspace);
      await query("delete from invitations where workspace_id = $1 and expires_at < $2", [id, now]);
      const [{ open = 0n } = {}] = await query<{ open: bigint }>(
        "select count(*) as open from invitations where workspace_id = $1",
        [id],
      );
      if (open >= MAX_OPEN)
        throw invalid("workspace", `A workspace may have ${MAX_OPEN} open invitations. Withdraw one first.`);
      await query(
        `insert into invitations (workspace_id, id, secret_hash, role, note, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7)`,
        [id, row.id, hashSecret(secret), role, note, row.created_at, row.expires_at],
      );
      await record(query, actor, id, "invitation.create", { id: row.id, role, note, expires_at: row.expires_at });
    });
    return { invitation: invitationMessage(row), path: `/console#invitation=${secret}` };
  };
}

export function withdrawInvitation(pool: Pool): MemberAdmin["withdrawInvitation"] {
  return async ({ workspace, id }, actor) => {
    await pool.tx(async (query) => {
      const found = await findWorkspace(query, actor, workspace);
      const rows = await query("delete from invitations where workspace_id = $1 and id = $2 returning 1", [
        found.id,
        id.replaceAll("\0", ""),
      ]);
      const message = "There is no open invitation with this identifier. Identifiers begin with inv_.";
      if (rows.length === 0) throw new Failure("unknown_entity", { field: "id", message });
      await record(query, actor, found.id, "invitation.withdraw", { id });
    });
    return {};
  };
}

/** Open invitations, newest first. */
export async function listInvitations(query: Query, workspaceId: string, now: number) {
  const rows = await query<InvitationRow>(
    `select id, role, note, created_at, expires_at from invitations
     where workspace_id = $1 and expires_at > $2 order by created_at desc, id`,
    [workspaceId, new Date(now)],
  );
  return rows.map(invitationMessage);
}

/**
 * Uses an invitation up: the person becomes a member.
 * @returns the workspace; undefined for an invitation that is unknown, used, withdrawn or expired
 * @throws Failure `invalid_request` for a person who is a member; the invitation can still be used
 */
export async function acceptInvitation(
  pool: Pool,
  secret: string,
  person: string,
  now: number,
): Promise<string | undefined> {
  if (!isWellFormed(secret, "in_")) return undefined;
  return pool.tx(async (query) => {
    const [invitation] = await query<{ workspace: string; id: string; role: string }>(
      `delete from invitations where secret_hash = $1 and expires_at > $2
       returning workspace_id as workspace, id, role`,
      [hashSecret(secret), new Date(now)],
    );
    if (!invitation) return undefined;
    const { workspace, id } = invitation;
    const role = readRole(numberOf(MemberRoleSchema, invitation.role));
    const added = await query(
      `insert into members (workspace_id, person_id, role, by_group, created_at) values ($1, $2, $3, false, $4)
       on conflict do nothing returning 1`,
      [workspace, person, role, new Date(now)],
    );
    if (added.length === 0)
      throw invalid("token", "You are a member of this workspace already. The invitation can still be used.");
    const actor = { kind: "member", id: person, workspaceId: workspace, role } as const;
    await record(query, actor, workspace, "invitation.accept", { id, role });
    return workspace;
  });
}

function invitationMessage({
  id,
  role,
  note,
  created_at,
  expires_at,
}: InvitationRow): MessageInitShape<typeof InvitationSchema> {
  const times = { createdAt: timestampFromDate(created_at), expiresAt: timestampFromDate(expires_at) };
  return { id, role: numberOf(MemberRoleSchema, role), note, ...times };
}
