import { useState } from "preact/hooks";
import { type SpendLimit, type SpendPeriod, SpendPeriodSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/json-names.ts";
import { amount, roundAmount, timeText } from "../format.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { type Fill, fillOf, Meter } from "../parts/meter.tsx";
import { credits } from "../rpc.ts";

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
export function SpendLimitRow({ period, title, set, state, changed }: Props) {
  const [draft, setDraft] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const input = `limit-${wordOf(SpendPeriodSchema, period)}`;

  const run = async (update: () => Promise<unknown>) => {
    setBusy(true);
    setError(undefined);
    try {
      await update();
      setDraft(undefined);
      changed();
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  const save = (event: Event) => {
    event.preventDefault();
    void run(() => credits.setSpendLimit({ period, amount: (draft ?? "").trim() }));
  };

  return (
    <div class="limit spend">
      <form onSubmit={save}>
        <label for={input}>{title}</label>
        <input
          id={input}
          type="text"
          inputMode="decimal"
          autocomplete="off"
          placeholder="No limit"
          pattern="\d{1,10}(\.\d{1,6})?"
          title="Credits, such as 250 or 0.5"
          required
          value={draft ?? set ?? ""}
          onInput={(event) => setDraft(event.currentTarget.value)}
        />
        <span class="soft">credits</span>
        <button type="submit" disabled={busy || draft === undefined || draft.trim() === (set ?? "")}>
          {set === undefined ? "Set" : "Change"}
        </button>
        {draft !== undefined && draft !== (set ?? "") && (
          <button type="button" onClick={() => setDraft(undefined)}>
            Keep as it is
          </button>
        )}
        {set !== undefined && (
          <button
            type="button"
            disabled={busy}
            onClick={() => run(() => credits.clearSpendLimit({ period }))}
            aria-label={`Remove the limit: ${title}`}
          >
            Remove
          </button>
        )}
      </form>
      {error !== undefined && <FailureNote error={error} />}
      {state && <Spent title={title} state={state} />}
    </div>
  );
}

function Spent({ title, state }: { title: string; state: SpendLimit }) {
  return (
    <>
      <p class="used">
        <strong>{roundAmount(state.used)}</strong> spent of {amount(state.limit)}; {roundAmount(state.remaining)} left
        until {timeText(state.resetsAt).slice(0, 16)}
      </p>
      <Meter used={state.used} limit={state.limit} label={`Spent of the limit: ${title}`} />
      <Warning fill={fillOf(state.used, state.limit)} state={state} />
    </>
  );
}

function Warning({ fill, state }: { fill: Fill; state: SpendLimit }) {
  if (fill === "low") return null;
  const end = timeText(state.resetsAt).slice(0, 16);
  const text = {
    half: "Half of this limit is spent.",
    near: "Over 80 % of this limit is spent. Requests that may cost more than the rest are already refused.",
    full: `This limit is reached. Requests that need purchased credit are refused until ${end}, unless you raise it.`,
  }[fill];
  return <p class={`note ${fill === "full" ? "bad" : "warn"}`}>{text}</p>;
}
