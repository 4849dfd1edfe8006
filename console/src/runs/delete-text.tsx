import { useState } from "preact/hooks";
import { ConfirmDialog } from "../parts/form-dialog.tsx";
import { toast } from "../parts/toasts.tsx";
import { activity } from "../rpc.ts";

/** A button that deletes the text of a request, after a question. */
export function DeleteText({ id, deleted }: { id: string; deleted: () => void }) {
  const [isOpen, setOpen] = useState(false);
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
        <ConfirmDialog
          title="Delete the text?"
          close={() => setOpen(false)}
          keep="Keep it"
          action="Delete"
          doing="Deleting…"
          run={remove}
        >
          <p>Prompt, drafts and answer of this request cannot be brought back. How it was answered stays.</p>
        </ConfirmDialog>
      )}
    </>
  );
}
