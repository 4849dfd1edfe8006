import { useState } from "preact/hooks";
import { Dialog } from "../parts/dialog.tsx";
import { DialogButtons } from "../parts/dialog-buttons.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { toast } from "../parts/toasts.tsx";
import { useAction } from "../parts/use-action.ts";
import { activity } from "../rpc.ts";

/** A button that deletes the text of a request, after a question. */
export function DeleteText({ id, deleted }: { id: string; deleted: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const { busy, error, run } = useAction();
  const remove = async () => {
    await activity.deleteRunText({ texts: { case: "id", value: id } });
    setOpen(false);
    toast("Deleted the text of the request.");
    deleted();
  };
  return (
    <>
      <button type="button" class="quiet small danger" onClick={() => setOpen(true)}>
        Delete the text
      </button>
      {isOpen && (
        <Dialog title="Delete the text?" close={() => setOpen(false)}>
          <p>Prompt, drafts and answer of this request cannot be brought back. How it was answered stays.</p>
          {error !== undefined && <FailureNote error={error} />}
          <DialogButtons
            close={() => setOpen(false)}
            keep="Keep it"
            action="Delete"
            doing="Deleting…"
            busy={busy}
            isDanger
            run={() => run(remove)}
          />
        </Dialog>
      )}
    </>
  );
}
