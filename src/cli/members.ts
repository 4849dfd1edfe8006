import type { Command } from "commander";
import {
  type Invitation,
  InvitationSchema,
  type Member,
  MemberSchema,
  MemberService,
  RemoveMemberResponseSchema,
  SetMemberRoleResponseSchema,
  WithdrawInvitationResponseSchema,
} from "../../gen/chorus/admin/v1/members_pb.js";
import { MemberRoleSchema } from "../../gen/chorus/v1/options_pb.js";
import { wordOf } from "../contract/json-names.ts";
import { operatorClient } from "./clients.ts";
import { enumOf, OWN_WORKSPACE, readPages, show, showLink, wantsJson } from "./command.ts";
import { messageJson, printJson, printTable, timeText } from "./print.ts";

const WORKSPACE = "--workspace <workspace>";
const PERSON = "identifier of the person, such as per_…";

interface OfWorkspace {
  workspace?: string;
}

/** `chorus members`: the people of a workspace. */
export function addMembers(program: Command): void {
  const members = program.command("members").description("list, invite, change and remove the people of a workspace");
  addList(members);
  addInvite(members);
  addWithdraw(members);
  addSetRole(members);
  addRemove(members);
}

function addList(members: Command): void {
  members
    .command("list")
    .description("list members and open invitations")
    .option(WORKSPACE, OWN_WORKSPACE)
    .action(async ({ workspace = "" }: OfWorkspace, command: Command) => {
      const client = await operatorClient(MemberService, command);
      const invitations: Invitation[] = [];
      const { entries } = await readPages("members", async (page) => {
        const found = await client.listMembers({ workspace, ...page });
        invitations.push(...found.invitations);
        return found;
      });
      if (wantsJson(command)) {
        printJson({
          members: entries.map((member) => messageJson(MemberSchema, member)),
          invitations: invitations.map((invitation) => messageJson(InvitationSchema, invitation)),
        });
      } else {
        printMembers(entries);
        if (invitations.length > 0) printInvitations(invitations);
      }
    });
}

function addInvite(members: Command): void {
  members
    .command("invite")
    .description("create a link that makes one person a member, once and within seven days")
    .argument("<role>", "owner, developer, billing or viewer")
    .option(WORKSPACE, OWN_WORKSPACE)
    .option("--note <text>", "for whom it is")
    .action(async (role: string, { workspace = "", note = "" }: OfWorkspace & { note?: string }, command: Command) => {
      const client = await operatorClient(MemberService, command);
      const number = enumOf("The role", MemberRoleSchema, role);
      const { invitation, path } = await client.inviteMember({ workspace, role: number, note });
      await showLink(command, path, invitation ? { invitation: messageJson(InvitationSchema, invitation) } : {});
    });
}

function addWithdraw(members: Command): void {
  members
    .command("withdraw")
    .description("withdraw an invitation that nobody has used")
    .argument("<id>", "identifier of the invitation, such as inv_…")
    .option(WORKSPACE, OWN_WORKSPACE)
    .action(async (id: string, { workspace = "" }: OfWorkspace, command: Command) => {
      const response = await (await operatorClient(MemberService, command)).withdrawInvitation({ workspace, id });
      show(command, WithdrawInvitationResponseSchema, response, () => console.log("The invitation is withdrawn."));
    });
}

function addSetRole(members: Command): void {
  members
    .command("set-role")
    .description("change the role of a member; one who becomes billing or viewer loses their keys")
    .argument("<person>", PERSON)
    .argument("<role>", "owner, developer, billing or viewer")
    .option(WORKSPACE, OWN_WORKSPACE)
    .action(async (person: string, text: string, { workspace = "" }: OfWorkspace, command: Command) => {
      const role = enumOf("The role", MemberRoleSchema, text);
      const client = await operatorClient(MemberService, command);
      const response = await client.setMemberRole({ workspace, person, role });
      show(command, SetMemberRoleResponseSchema, response, ({ member }) => printMembers(member ? [member] : []));
    });
}

function addRemove(members: Command): void {
  members
    .command("remove")
    .description("remove a member and revoke their keys; chorus keys take-over keeps a key")
    .argument("<person>", PERSON)
    .option(WORKSPACE, OWN_WORKSPACE)
    .action(async (person: string, { workspace = "" }: OfWorkspace, command: Command) => {
      const response = await (await operatorClient(MemberService, command)).removeMember({ workspace, person });
      show(command, RemoveMemberResponseSchema, response, ({ revokedKeys }) =>
        console.log(`The member is removed; ${revokedKeys} of their keys ${revokedKeys === 1 ? "is" : "are"} revoked.`),
      );
    });
}

function printMembers(members: readonly Member[]): void {
  const rows = members.map(({ person, role, byGroup, keys, createdAt, seenAt }) => [
    person?.id ?? "",
    person?.name || "-",
    person?.email || "-",
    wordOf(MemberRoleSchema, role),
    byGroup ? "group" : "invitation",
    String(keys),
    timeText(createdAt),
    timeText(seenAt),
  ]);
  printTable(["ID", "NAME", "E-MAIL", "ROLE", "BY", "KEYS", "SINCE (UTC)", "LAST CONFIRMED"], rows);
}

function printInvitations(invitations: readonly Invitation[]): void {
  console.log();
  const rows = invitations.map(({ id, role, note, expiresAt }) => [
    id,
    wordOf(MemberRoleSchema, role),
    note || "-",
    timeText(expiresAt),
  ]);
  printTable(["INVITATION", "ROLE", "NOTE", "EXPIRES (UTC)"], rows);
}
