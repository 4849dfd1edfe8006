import { useState } from "preact/hooks";
import { SpendPeriod } from "../../../gen/chorus/v1/generation_pb.js";
import { Dialog } from "../parts/dialog.tsx";
import { DialogButtons } from "../parts/dialog-buttons.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { CREDITS, TextField } from "../parts/text-field.tsx";
import { useAction } from "../parts/use-action.ts";
import { credits } from "../rpc.ts";

const TITLES: Partial<Record<SpendPeriod, string>> = {
  [SpendPeriod.DAY]: "Daily spend limit",
  [SpendPeriod.WEEK]: "Weekly spend limit, from Monday",
  [SpendPeriod.MONTH]: "Monthly spend limit",
};

interface Props {
  period: SpendPeriod;
  /** The limit that is set, as a decimal number; empty if there is none. */
  set: string;
  close: () => void;
  done: (sentence: string) => void;
}

/** Sets, changes or removes a spend limit. */
export function SetSpendLimit({ period, set, close, done }: Props) {
  const [draft, setDraft] = useState(set);
  const { busy, error, run } = useAction();
  const save = async () => {
    await credits.setSpendLimit({ period, amount: draft.trim() });
    done("Saved the spend limit.");
  };
  const remove = async () => {
    await credits.clearSpendLimit({ period });
    done("Removed the spend limit.");
  };
  return (
    <Dialog title={TITLES[period] ?? "Spend limit"} close={close}>
      <form class="form" onSubmit={(event) => run(save, event)}>
        <TextField
          id="spend-limit"
          label="Credits"
          help="The most purchased credit that may be spent in this period."
          inputMode="decimal"
          data-autofocus
          {...CREDITS}
          required
          value={draft}
          change={setDraft}
        />
        {error !== undefined && <FailureNote error={error} />}
        <DialogButtons close={close} action="Save" busy={busy} disabled={draft.trim() === set}>
          {set !== "" && (
            <button type="button" class="quiet danger" disabled={busy} onClick={() => run(remove)}>
              Remove the limit
            </button>
          )}
        </DialogButtons>
      </form>
    </Dialog>
  );
}
