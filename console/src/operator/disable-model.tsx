import { useId, useState } from "preact/hooks";
import type { DisabledModel, ModelState } from "../../../gen/chorus/admin/v1/operations_pb.js";
import { describe } from "../failure.ts";
import { ago } from "../format.ts";
import { FormDialog } from "../parts/form-dialog.tsx";
import { Note } from "../parts/note.tsx";
import { TextField } from "../parts/text-field.tsx";
import { toast } from "../parts/toasts.tsx";
import { useAction } from "../parts/use-action.ts";
import { operations } from "./rpc.ts";

interface Props {
  of: ModelState;
  /** Opens a dialog. */
  ask: (to: "test" | "disable") => void;
  done: () => void;
}

/** The buttons of a model. */
export function Actions({ of: { name, disabled }, ask, done }: Props) {
  const { busy, run } = useAction();
  const enable = () =>
    operations.enableModel({ model: name }).then(
      () => {
        toast(`Enabled ${name}. Requests call it again.`);
        done();
      },
      (error) => toast(`Not enabled. ${describe(error).text}`, "bad"),
    );
  return (
    <>
      <button type="button" class="small" aria-label={`Test ${name}`} onClick={() => ask("test")}>
        Test
      </button>{" "}
      {disabled ? (
        <button type="button" class="small" aria-label={`Enable ${name}`} disabled={busy} onClick={() => run(enable)}>
          Enable
        </button>
      ) : (
        <button type="button" class="small" aria-label={`Disable ${name}`} onClick={() => ask("disable")}>
          Disable…
        </button>
      )}
    </>
  );
}

/** Disables a model, after it has said what follows. */
export function DisableDialog({ of, all, close }: { of: ModelState; all: readonly ModelState[]; close: () => void }) {
  const id = useId();
  const [reason, setReason] = useState("");
  const left = all.filter(({ name, disabled }) => name !== of.name && !disabled);
  const disable = async () => {
    await operations.disableModel({ model: of.name, reason: reason.trim() });
    toast(`Disabled ${of.name}. No request calls it.`);
    close();
  };
  return (
    <FormDialog
      title={`Disable ${of.name}?`}
      close={close}
      submit={disable}
      keep="Keep it"
      action="Disable"
      doing="Disabling…"
      isDanger
    >
      <p>No new request calls it, on all replicas and after restarts, until it is enabled. Running calls go on.</p>
      {left.length === 0 ? (
        <Note tone="bad">It is the last one. Without it, no request is answered.</Note>
      ) : (
        left.every(({ tier }) => tier !== of.tier) && (
          <Note tone="warn">It is the last {of.tier} model. Those of the other tier answer in its place.</Note>
        )
      )}
      <TextField id={id} label="Reason, for other operators" maxLength={200} value={reason} change={setReason} />
    </FormDialog>
  );
}

/** Since when, by whom and why a model is disabled. */
export function Disabled({ of: { at, actorId, reason } }: { of: DisabledModel }) {
  return (
    <div class="soft small">
      {at && ago(at)} by {actorId}
      {reason && `: ${reason}`}
    </div>
  );
}
