import { useState } from "preact/hooks";
import { CreditService } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { type SpendLimit, type SpendPeriod, SpendPeriodSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { amount, roundAmount, timeText } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Field } from "../parts/field.tsx";
import { type Fill, FillTag, fillOf, Meter } from "../parts/meter.tsx";
import { Note } from "../parts/note.tsx";
import { toast } from "../parts/toasts.tsx";
import { useAction } from "../parts/use-action.ts";
import { credits } from "../rpc.ts";
import { can } from "../session/session.ts";

interface Props {
  period: SpendPeriod;
  title: string;
  /** The configured limit; undefined if there is none. */
  set: string | undefined;
  /** Use of the limit. */
  state: SpendLimit | undefined;
  changed: () => void;
}

/** Shows and edits one spend limit. */
export function SpendLimitForm({ period, title, set, state, changed }: Props) {
  const [draft, setDraft] = useState<string>();
  const { busy, error, run } = useAction();
  const id = `limit-${wordOf(SpendPeriodSchema, period)}`;
  const mayChange = can(CreditService.method.setSpendLimit);
  const isChanged = draft !== undefined && draft.trim() !== (set ?? "");

  const done = (sentence: string) => {
    setDraft(undefined);
    toast(sentence);
    changed();
  };
  const save = async () => {
    await credits.setSpendLimit({ period, amount: (draft ?? "").trim() });
    done("Saved the spend limit.");
  };
  const remove = async () => {
    await credits.clearSpendLimit({ period });
    done("Removed the spend limit.");
  };

  return (
    <Card class="spend">
      <form class="form" onSubmit={(event) => run(save, event)}>
        <Field id={id} label={title}>
          <span class="affix">
            <input
              id={id}
              type="text"
              inputMode="decimal"
              autocomplete="off"
              placeholder="No limit"
              pattern="\d{1,10}(\.\d{1,6})?"
              title="Credits, such as 250 or 0.5"
              required
              readOnly={!mayChange}
              value={draft ?? set ?? ""}
              onInput={(event) => setDraft(event.currentTarget.value)}
            />
            <span>credits</span>
          </span>
        </Field>
        {state && <Spent title={title} state={state} />}
        {error !== undefined && <FailureNote error={error} />}
        {mayChange && (
          <div class="buttons start">
            <button type="submit" class={isChanged ? "primary" : ""} disabled={busy || !isChanged}>
              Save
            </button>
            {isChanged && (
              <button type="button" class="quiet" onClick={() => setDraft(undefined)}>
                Cancel
              </button>
            )}
            {set !== undefined && !isChanged && <Remove title={title} busy={busy} remove={() => run(remove)} />}
          </div>
        )}
      </form>
    </Card>
  );
}

function Remove({ title, busy, remove }: { title: string; busy: boolean; remove: () => void }) {
  return (
    <button
      type="button"
      class="quiet danger"
      disabled={busy}
      onClick={remove}
      aria-label={`Remove the limit: ${title}`}
    >
      Remove
    </button>
  );
}

function Spent({ title, state }: { title: string; state: SpendLimit }) {
  const fill = fillOf(state.used, state.limit);
  return (
    <div class="limit">
      <p>
        <strong>{roundAmount(state.used)}</strong> of {amount(state.limit)} spent <FillTag fill={fill} />
      </p>
      <Meter used={state.used} limit={state.limit} label={`Spent of the limit: ${title}`} />
      <p class="help">
        {roundAmount(state.remaining)} left, resets {timeText(state.resetsAt).slice(0, 16)}
      </p>
      <Warning fill={fill} state={state} />
    </div>
  );
}

function Warning({ fill, state }: { fill: Fill; state: SpendLimit }) {
  if (fill === "low" || fill === "half") return null;
  if (fill === "near") return <Note tone="warn">Requests that may cost more than the rest are already refused.</Note>;
  return (
    <Note tone="bad">
      Requests that need purchased credit are refused until {timeText(state.resetsAt).slice(0, 16)}, unless the limit is
      raised.
    </Note>
  );
}
