import { useState } from "preact/hooks";
import type { Member } from "../../../gen/chorus/admin/v1/members_pb.js";
import { MemberRole } from "../../../gen/chorus/v1/options_pb.js";
import { FormDialog } from "../parts/form-dialog.tsx";
import { Note } from "../parts/note.tsx";
import { members } from "../rpc.ts";
import { nameOf } from "./member-table.tsx";
import { RoleField } from "./role-field.tsx";

interface Props {
  of: Member;
  /** True removes the member, false changes the role. */
  isRemoval: boolean;
  close: () => void;
  /** @param sentence what happened */
  done: (sentence: string) => void;
}

/** Changes the role of a member, or removes the member, after saying what becomes of their keys. */
export function ChangeMember({ of: member, isRemoval, close, done }: Props) {
  const [role, setRole] = useState(member.role);
  const name = nameOf(member);
  const person = member.person?.id ?? "";
  const endsKeys = member.keys > 0 && (isRemoval || role === MemberRole.BILLING || role === MemberRole.VIEWER);
  const submit = async () => {
    if (isRemoval) await members.removeMember({ person });
    else await members.setMemberRole({ person, role });
    done(isRemoval ? `Removed ${name}.` : `Changed the role of ${name}.`);
  };
  return (
    <FormDialog
      title={isRemoval ? `Remove ${name}?` : `The role of ${name}`}
      close={close}
      submit={submit}
      action={isRemoval ? "Remove" : "Change"}
      disabled={!isRemoval && role === member.role}
      isDanger={isRemoval}
    >
      {!isRemoval && <RoleField role={role} choose={setRole} />}
      {isRemoval && <p>Access ends at once.</p>}
      {isRemoval && member.byGroup && (
        <p class="soft">A group of the identity provider gives the role, too: end it there, or it comes back.</p>
      )}
      {endsKeys && (
        <Note tone="warn">
          {member.keys === 1 ? "A key of this member is" : `${member.keys} keys of this member are`} revoked. Take over
          those that must stay first, on the page Keys.
        </Note>
      )}
    </FormDialog>
  );
}
