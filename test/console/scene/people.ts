import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ListMembersResponseSchema } from "../../../gen/chorus/admin/v1/members_pb.js";
import { MemberRole } from "../../../gen/chorus/v1/options_pb.js";
import { ago, DAY, HOUR, later } from "./clock.ts";

/** What the service says of the session of a person, beside the workspace. */
export const person = {
  provider: "Keycloak",
  role: "owner",
  person: { id: "per_1", name: "Ann Moreau", email: "ann@acme.example", operator: false },
  workspaces: [
    { id: "ws_8f2k1m0q", name: "acme", role: "owner" },
    { id: "ws_2", name: "globex", role: "viewer" },
  ],
};

const member = (id: number, name: string, role: MemberRole, byGroup: boolean, keys: number, hours: number) => ({
  person: { id: `per_${id}`, name, email: `${name.split(" ")[0]?.toLowerCase()}@acme.example` },
  role,
  byGroup,
  keys,
  createdAt: ago(id * 11 * DAY),
  seenAt: ago(hours * HOUR),
});

export const members: MessageInitShape<typeof ListMembersResponseSchema> = {
  members: [
    member(1, "Ann Moreau", MemberRole.OWNER, true, 2, 0),
    member(2, "Ben Okafor", MemberRole.DEVELOPER, true, 3, 5),
    member(3, "Chiara Rossi", MemberRole.DEVELOPER, false, 0, 30),
    member(4, "Dilek Aydin", MemberRole.BILLING, true, 0, 75),
    member(5, "Emil Novak", MemberRole.VIEWER, false, 0, 400),
  ],
  invitations: [{ id: "inv_1", role: MemberRole.DEVELOPER, note: "for Farah", expiresAt: later(5 * DAY) }],
};
