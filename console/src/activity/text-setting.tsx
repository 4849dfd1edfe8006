import { useState } from "preact/hooks";
import { type Workspace, WorkspaceService } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { useLoad } from "../load.ts";
import { Choice } from "../parts/choice.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { DialogButtons } from "../parts/dialog-buttons.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { ConfirmDialog } from "../parts/form-dialog.tsx";
import { Note } from "../parts/note.tsx";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { toast } from "../parts/toasts.tsx";
import { useAction } from "../parts/use-action.ts";
import { activity, workspaces } from "../rpc.ts";
import { can } from "../session/session.ts";

const DAYS = [0, 1, 3, 7, 14, 30];

/** A button for owners: whether the text of requests is kept, and for how long. */
export function TextSetting() {
  const [isOpen, setOpen] = useState(false);
  if (!can(WorkspaceService.method.setRunText)) return null;
  const done = (sentence: string) => {
    setOpen(false);
    toast(sentence);
  };
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Text of requests
      </button>
      {isOpen && <Setting close={() => setOpen(false)} done={done} />}
    </>
  );
}

function Setting({ close, done }: { close: () => void; done: (sentence: string) => void }) {
  const workspace = useLoad((signal) => workspaces.getWorkspace({}, { signal }), "");
  return (
    <Dialog title="Text of requests" close={close}>
      <p>
        The prompt, each draft and the answer, encrypted with a key of the operator. Owners can read them on the page of
        a run, developers those of their own keys; the audit log says who read what. A key can forbid it.
      </p>
      <Pending of={workspace} what="the setting" skeleton={<Skeleton tall="6rem" />}>
        {({ workspace: of }) => of && <Form of={of} close={close} done={done} />}
      </Pending>
    </Dialog>
  );
}

function Form({ of, close, done }: { of: Workspace; close: () => void; done: (sentence: string) => void }) {
  const before = of.runTextDays;
  const [days, setDays] = useState(before);
  const [asks, setAsks] = useState(false);
  const { busy, error, run } = useAction();
  const save = async () => {
    await workspaces.setRunText({ days });
    done(days === 0 ? "No text of requests is kept." : `The text of requests is kept for ${daysText(days)}.`);
  };
  const removeAll = async () => {
    const { deleted } = await activity.deleteRunText({ texts: { case: "all", value: true } });
    done(`Deleted the text of ${deleted} ${deleted === 1n ? "request" : "requests"}.`);
  };
  const options = [...new Set([...DAYS, before])].sort((a, b) => a - b);
  return (
    <form class="form" onSubmit={(event) => run(save, event)}>
      <Choice
        id="text-days"
        label="Keep it"
        value={`${days}`}
        options={options.map((option) => [`${option}`, option === 0 ? "Not at all" : `For ${daysText(option)}`])}
        change={(option) => setDays(Number(option))}
      />
      {days < before && (
        <Note tone="warn">
          {days === 0 ? "All texts that are kept are deleted at once." : "Texts that are older are deleted at once."}
        </Note>
      )}
      {error !== undefined && <FailureNote error={error} />}
      <DialogButtons close={close} action="Save" busy={busy} disabled={days === before}>
        {before > 0 && days === before && (
          <button type="button" class="quiet danger" disabled={busy} onClick={() => setAsks(true)}>
            Delete all texts…
          </button>
        )}
      </DialogButtons>
      {asks && (
        <ConfirmDialog title="Delete all texts?" action="Delete all texts" run={removeAll} close={() => setAsks(false)}>
          <p>Prompts, drafts and answers of all requests cannot be brought back.</p>
        </ConfirmDialog>
      )}
    </form>
  );
}

function daysText(days: number): string {
  return days === 1 ? "1 day" : `${days} days`;
}
