import { Plus } from "lucide";
import { useState } from "preact/hooks";
import { type Member, MemberService } from "../../../gen/chorus/admin/v1/members_pb.js";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { Icon } from "../parts/icon.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PagerButtons, usePager } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { toast } from "../parts/toasts.tsx";
import { members } from "../rpc.ts";
import { can } from "../session/session.ts";
import { ChangeMember } from "./change-member.tsx";
import { InvitationTable } from "./invitation-table.tsx";
import { InviteMember } from "./invite-member.tsx";
import { MemberTable } from "./member-table.tsx";

type Open = { what: "invite" } | { what: "change" | "remove"; member: Member } | undefined;

/** Lists the people of the workspace; owners invite, change and remove them. */
export function MembersPage() {
  const [open, setOpen] = useState<Open>();
  const pager = usePager("");
  const list = useLoad(
    (signal) => members.listMembers({ pageSize: 50, pageToken: pager.token }, { signal }),
    pager.token,
  );
  const mayChange = can(MemberService.method.setMemberRole);
  const close = () => setOpen(undefined);
  const done = (sentence: string) => {
    toast(sentence);
    close();
    list.reload();
  };
  return (
    <>
      <PageHead title="Members" lead="People who may use the workspace in the console, by group or by invitation.">
        {can(MemberService.method.inviteMember) && (
          <button type="button" class="primary" onClick={() => setOpen({ what: "invite" })}>
            <Icon of={Plus} />
            Invite
          </button>
        )}
      </PageHead>
      <Pending of={list} what="members" skeleton={<Skeleton tall="20rem" />}>
        {({ members: page, invitations, nextPageToken }) => (
          <>
            <Card flush>
              <MemberTable
                members={page}
                {...(mayChange
                  ? {
                      change: (member: Member) => setOpen({ what: "change", member }),
                      remove: (member: Member) => setOpen({ what: "remove", member }),
                    }
                  : {})}
              />
              <PagerButtons pager={pager} next={nextPageToken} />
            </Card>
            {invitations.length > 0 && <InvitationTable invitations={invitations} done={done} />}
          </>
        )}
      </Pending>
      {open?.what === "invite" && <InviteMember close={close} done={done} />}
      {(open?.what === "change" || open?.what === "remove") && (
        <ChangeMember of={open.member} isRemoval={open.what === "remove"} close={close} done={done} />
      )}
    </>
  );
}
