import { type Invitation, MemberService } from "../../../gen/chorus/admin/v1/members_pb.js";
import { MemberRoleSchema } from "../../../gen/chorus/v1/options_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { day, timeText } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { useAction } from "../parts/use-action.ts";
import { members } from "../rpc.ts";
import { can } from "../session/session.ts";

interface Props {
  invitations: readonly Invitation[];
  /** @param sentence what happened */
  done: (sentence: string) => void;
}

/** Invitations that nobody has used yet. */
export function InvitationTable({ invitations, done }: Props) {
  const { busy, error, run } = useAction();
  const withdraw = async ({ id }: Invitation) => {
    await members.withdrawInvitation({ id });
    done("Withdrew the invitation.");
  };
  const columns: Column<Invitation>[] = [
    { title: "For", class: "name", cell: ({ note }) => note || <span class="soft">without a note</span> },
    { title: "Role", cell: ({ role }) => wordOf(MemberRoleSchema, role) },
    { title: "Until", cell: ({ expiresAt }) => <span title={timeText(expiresAt)}>{day(expiresAt)}</span> },
  ];
  if (can(MemberService.method.withdrawInvitation)) {
    const cell = (invitation: Invitation) => (
      <button type="button" class="quiet small danger" disabled={busy} onClick={() => run(() => withdraw(invitation))}>
        Withdraw
      </button>
    );
    columns.push({ title: "", class: "actions", cell });
  }
  return (
    <Card title="Open invitations" flush>
      {error !== undefined && <FailureNote error={error} />}
      <DataTable label="Open invitations" columns={columns} rows={invitations} keyOf={({ id }) => id} />
    </Card>
  );
}
