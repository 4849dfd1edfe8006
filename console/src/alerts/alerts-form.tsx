import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Alerts } from "../../../gen/chorus/admin/v1/alerts_pb.js";
import { Choice } from "../parts/choice.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Field } from "../parts/field.tsx";
import { CREDITS, spaced, TextField } from "../parts/text-field.tsx";
import { useAction } from "../parts/use-action.ts";
import { type Draft, draftOf, isMail } from "./thresholds.ts";

const PERCENT = {
  unit: "%",
  pattern: "100|(?!0+(\\.0*)?\\s*$)\\d{1,2}(\\.\\d{1,4})?",
  title: "A percentage above 0, such as 80",
};

const THRESHOLDS = [
  { name: "creditBelow", label: "Credit below", help: "Less credit than this is left.", unit: "credits", ...CREDITS },
  { name: "spendShare", label: "Spend limit used", help: "This share of a spend limit is used.", ...PERCENT },
  {
    name: "failureShare",
    label: "Requests failed",
    help: "This share of the last ten minutes has failed, of 20 requests or more.",
    ...PERCENT,
  },
  {
    name: "capShare",
    label: "Cap used",
    help: "A key, user or tag has used this share of a cap: once in each period.",
    ...PERCENT,
  },
] as const;

const FORMATS = [
  ["event", "Signed JSON, for a program"],
  ["slack", "Message, for a channel"],
] as const;
const HELP = {
  event: "Events of Standard Webhooks.",
  slack: "For incoming webhooks of Slack, Mattermost, Rocket.Chat or Discord.",
};

/** At most 32 limits, as the service allows. */
const LIMITS =
  "\\s*((key|user|tag\\.[a-z0-9_.\\-]{1,32}):(credits|requests|input_tokens|output_tokens)" +
  "_(per_day|per_week|per_month|total)[\\s,]*){0,32}";

interface Props {
  /** The alerts in force; undefined if there are none. */
  set: Alerts | undefined;
  /** What became of the last test, beside the address. */
  result: ComponentChildren;
  save: (draft: Draft) => Promise<void>;
  test: () => Promise<void>;
  /** Asks whether to make a new secret. */
  renew: () => void;
  /** Asks whether to remove the alerts. */
  remove: () => void;
}

/** Shows and edits the address and the thresholds. */
export function AlertsForm({ set, result, save, test, renew, remove }: Props) {
  const [edits, setEdits] = useState<Partial<Draft>>({});
  const { busy, error, run, forget } = useAction();
  const saved = draftOf(set);
  const draft = { ...saved, ...edits };
  const isChanged = Object.entries(saved).some(([name, text]) => draft[name as keyof Draft].trim() !== text);
  const hasThreshold = THRESHOLDS.some(({ name }) => draft[name].trim() !== "");
  const edit = (name: keyof Draft, text: string) => setEdits((before) => ({ ...before, [name]: text }));

  const submit = async () => {
    await save(draft);
    setEdits({});
  };
  const cancel = () => {
    setEdits({});
    forget();
  };
  return (
    <form class="form" onSubmit={(event) => run(submit, event)}>
      <Target text={draft.target} edit={(text) => edit("target", text)} />
      {result}
      {!isMail(draft.target) && (
        <Choice
          id="format"
          label="Format"
          help={HELP[draft.format]}
          value={draft.format}
          options={FORMATS}
          change={(format) => edit("format", format)}
        />
      )}
      <Thresholds draft={draft} edit={edit} />
      {draft.capShare.trim() !== "" && <CapLimits text={draft.capLimits} edit={(text) => edit("capLimits", text)} />}
      {!hasThreshold && <p class="help">Set at least one threshold.</p>}
      {error !== undefined && <FailureNote error={error} />}
      <div class="buttons start">
        <button type="submit" class={isChanged ? "primary" : ""} disabled={busy || !isChanged || !hasThreshold}>
          Save
        </button>
        {isChanged ? (
          <button type="button" class="quiet" onClick={cancel}>
            Cancel
          </button>
        ) : (
          set && (
            <Actions
              busy={busy}
              test={() => run(test)}
              renew={isMail(set.webhookUrl) ? undefined : renew}
              remove={remove}
            />
          )
        )}
      </div>
    </form>
  );
}

/** The field for where alerts are sent. */
function Target({ text, edit }: { text: string; edit: (text: string) => void }) {
  const help = isMail(text) ? (
    <>Up to five addresses. Each alert is one mail to all of them.</>
  ) : (
    <>
      Each event is sent to a webhook by POST.{" "}
      <a href="/docs/guides/alerts">What it contains and how to check its signature</a>
    </>
  );
  return (
    <TextField
      id="target"
      label="Webhook URL or e-mail addresses"
      help={help}
      inputMode="url"
      required
      autocapitalize="none"
      spellcheck={false}
      placeholder="https://example.com/hook or ann@example.com, bob@example.com"
      value={text}
      change={edit}
    />
  );
}

/** The fields of the thresholds. */
function Thresholds({ draft, edit }: { draft: Draft; edit: (name: keyof Draft, text: string) => void }) {
  return (
    <div class="cards four">
      {THRESHOLDS.map(({ name, label, help, unit, pattern, title }) => (
        <Field key={name} id={name} label={label} help={help}>
          <span class="affix">
            <input
              id={name}
              type="text"
              inputMode="decimal"
              autocomplete="off"
              placeholder="No alert"
              pattern={spaced(pattern)}
              title={title}
              aria-describedby={`${name}-help`}
              value={draft[name]}
              onInput={(event) => edit(name, event.currentTarget.value)}
            />
            <span>{unit}</span>
          </span>
        </Field>
      ))}
    </div>
  );
}

/** The field that restricts alerts on caps to some of them. */
function CapLimits({ text, edit }: { text: string; edit: (text: string) => void }) {
  return (
    <TextField
      id="cap-limits"
      label="Only of these caps"
      help="Limits as refusals name them, separated by commas; empty for every cap of a day, week, month or all time."
      spellcheck={false}
      placeholder="user:credits_per_day, tag.team:requests_total"
      pattern={LIMITS}
      title="Limits such as user:credits_per_day"
      value={text}
      change={edit}
    />
  );
}

interface ActionsProps {
  busy: boolean;
  test: () => void;
  /** Undefined if events are not signed. */
  renew: (() => void) | undefined;
  remove: () => void;
}

/** What can be done with the alerts in force. */
function Actions({ busy, test, renew, remove }: ActionsProps) {
  return (
    <>
      <button type="button" disabled={busy} onClick={test}>
        Send a test
      </button>
      {renew && (
        <button type="button" class="quiet" disabled={busy} onClick={renew}>
          New secret
        </button>
      )}
      <button type="button" class="quiet danger" disabled={busy} onClick={remove}>
        Remove
      </button>
    </>
  );
}
