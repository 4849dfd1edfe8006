import { useState } from "preact/hooks";
import { MemberRole } from "../../../gen/chorus/v1/options_pb.js";
import { Copy } from "../parts/copy.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { FormDialog } from "../parts/form-dialog.tsx";
import { Note } from "../parts/note.tsx";
import { TextField } from "../parts/text-field.tsx";
import { members } from "../rpc.ts";
import { RoleField } from "./role-field.tsx";

interface Props {
  close: () => void;
  /** @param sentence what happened */
  done: (sentence: string) => void;
}

/** Asks for a role, then shows the link once. */
export function InviteMember({ close, done }: Props) {
  const [link, setLink] = useState("");
  if (!link) return <Form close={close} show={(path) => setLink(location.origin + path)} />;
  return (
    <Dialog title="The invitation" close={close} sticky>
      <Note tone="warn">
        <p>
          <strong>Send it now.</strong> The link is not shown again. The first person who opens it and signs in becomes
          a member, within seven days.
        </p>
      </Note>
      <pre class="secret" data-secret>
        {link}
      </pre>
      <Copy text={link} label="Copy the link" />
      <div class="buttons">
        <button type="button" class="primary" onClick={() => done("Created the invitation.")}>
          I have sent it
        </button>
      </div>
    </Dialog>
  );
}

function Form({ close, show }: { close: () => void; show: (path: string) => void }) {
  const [role, setRole] = useState(MemberRole.DEVELOPER);
  const [note, setNote] = useState("");
  const submit = async () => show((await members.inviteMember({ role, note: note.trim() })).path);
  return (
    <FormDialog
      title="Invite somebody"
      close={close}
      submit={submit}
      action="Create the link"
      doing="Creating…"
      isSticky
    >
      <RoleField role={role} choose={setRole} />
      <TextField id="note" label="Note" maxLength={200} placeholder="For whom is it?" value={note} change={setNote} />
    </FormDialog>
  );
}
