import { Pencil, Users } from "lucide";
import type { Member } from "../../../gen/chorus/admin/v1/members_pb.js";
import { MemberRoleSchema } from "../../../gen/chorus/v1/options_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { ago, count, day, timeText } from "../format.ts";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { IconButton } from "../parts/icon-button.tsx";

interface Actions {
  /** Changes the role; without it there is no button. */
  change?: (member: Member) => void;
  remove?: (member: Member) => void;
}

/** The name of a member, else what is known. */
export function nameOf({ person }: Member): string {
  return person?.name || person?.email || person?.id || "";
}

/** Members with their roles and what gives them. */
export function MemberTable({ members, ...actions }: Actions & { members: readonly Member[] }) {
  if (members.length === 0) {
    return (
      <Empty title="There is no member yet." icon={Users}>
        <p>Invite somebody, or give a role to a group of the identity provider.</p>
      </Empty>
    );
  }
  const columns: Column<Member>[] = [
    { title: "Name", class: "name", cell: (member) => <Name of={member} /> },
    { title: "Role", cell: ({ role }) => wordOf(MemberRoleSchema, role) },
    { title: "By", cell: ({ byGroup }) => (byGroup ? "group" : "invitation") },
    { title: "Keys", figure: true, cell: ({ keys }) => count(keys) },
    {
      title: "Last confirmed",
      cell: ({ seenAt }) => <span title={timeText(seenAt)}>{seenAt ? ago(seenAt) : ""}</span>,
    },
  ];
  if (actions.change) columns.push({ title: "", class: "actions", cell: (of) => <Buttons of={of} {...actions} /> });
  return <DataTable label="Members" columns={columns} rows={members} keyOf={({ person }) => person?.id ?? ""} />;
}

function Name({ of: member }: { of: Member }) {
  const name = nameOf(member);
  const { email = "" } = member.person ?? {};
  return (
    <span>
      {name}{" "}
      <span class="soft small more">
        {email && email !== name ? `${email}, since` : "since"} {day(member.createdAt)}
      </span>
    </span>
  );
}

function Buttons({ of: member, change, remove }: Actions & { of: Member }) {
  const name = nameOf(member);
  return (
    <span>
      {!member.byGroup && (
        <IconButton
          icon={Pencil}
          label={`Change the role of ${name}`}
          title="Change the role"
          run={() => change?.(member)}
        />
      )}
      <button type="button" class="quiet small danger" onClick={() => remove?.(member)} aria-label={`Remove ${name}`}>
        Remove
      </button>
    </span>
  );
}
