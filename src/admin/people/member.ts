import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { MemberSchema, MemberService } from "../../../gen/chorus/admin/v1/members_pb.js";
import { MemberRoleSchema } from "../../../gen/chorus/v1/options_pb.js";
import { invalid } from "../../contract/failure.ts";
import { numberOf, readEnum } from "../../contract/json-names.ts";
import { ROLES, type Role } from "../../contract/roles.ts";
import type { Admin } from "../shared/admin.ts";

export type MemberAdmin = Admin<typeof MemberService>;

/** A row of `COLUMNS`. */
export interface MemberRow {
  id: string;
  name: string;
  email: string;
  role: Role;
  byGroup: boolean;
  createdAt: Date;
  seenAt: Date;
  keys: number;
}

/** Of `members m join people p`. */
export const COLUMNS = `p.id, p.name, p.email, m.role, m.by_group as "byGroup", m.created_at as "createdAt",
  p.seen_at as "seenAt",
  (select count(*)::int from api_keys k where k.workspace_id = m.workspace_id and k.person_id = p.id
     and not k.playground and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())) as keys`;

export function memberMessage({ id, name, email, ...row }: MemberRow): MessageInitShape<typeof MemberSchema> {
  return {
    person: { id, name, email },
    role: numberOf(MemberRoleSchema, row.role),
    byGroup: row.byGroup,
    createdAt: timestampFromDate(row.createdAt),
    seenAt: timestampFromDate(row.seenAt),
    keys: row.keys,
  };
}

/** @throws Failure `invalid_request` with `role` */
export function readRole(number: number): Role {
  const word = readEnum("role", MemberRoleSchema, number);
  const role = ROLES.find((known) => known === word);
  if (!role) throw invalid("role", `role must be one of ${ROLES.join(", ")}.`);
  return role;
}
