import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";
import { ScopeSchema } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { numberOf } from "../../../src/contract/json-names.ts";
import { Choice } from "../parts/choice.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { DialogButtons } from "../parts/dialog-buttons.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Field } from "../parts/field.tsx";
import { LAST_DAY } from "../parts/period.tsx";
import { useAction } from "../parts/use-action.ts";
import { keys } from "../rpc.ts";
import { currentRole } from "../session/session.ts";
import { ForbidText } from "./forbid-text.tsx";
import { KeyName } from "./key-name.tsx";
import { NewSecret } from "./new-secret.tsx";

const SCOPES = [
  ["generate", "Generate", "sends prompts"],
  ["metrics", "Metrics", "reads limits and usage"],
] as const;

/** A developer's key has no scope that shows the use of others. */
function scopesOf(role: string) {
  return SCOPES.filter(([scope]) => role !== "developer" || scope !== "metrics");
}

const LIVES = [
  ["", "Never"],
  ["7", "In 7 days"],
  ["30", "In 30 days"],
  ["90", "In 90 days"],
  ["365", "In a year"],
  ["date", "On a day…"],
] as const;

interface Props {
  close: () => void;
  /** Called when the secret has been stored. @param sentence what happened */
  done: (sentence: string) => void;
  /** Called when the key exists; its secret is still shown. */
  created: () => void;
}

interface Created {
  readonly name: string;
  readonly secret: string;
  readonly scopes: readonly string[];
}

/** Asks for name, scopes and expiry, then shows the secret once. */
export function CreateKey({ close, done, created }: Props) {
  const [key, setKey] = useState<Created>();
  const action = useAction();
  if (key) {
    return (
      <Dialog title="The secret of the new key" close={close} sticky>
        <NewSecret secret={key.secret} mayGenerate={key.scopes.includes("generate")} />
        <div class="buttons">
          <button
            type="button"
            class="primary"
            onClick={() => done(`Created the key ${key.name || "without a name"}.`)}
          >
            I have stored it
          </button>
        </div>
      </Dialog>
    );
  }
  const show = (next: Created) => {
    setKey(next);
    created();
  };
  return (
    <Dialog title="Create a key" close={close} sticky={action.busy}>
      <KeyForm action={action} close={close} show={show} />
    </Dialog>
  );
}

interface FormProps {
  action: ReturnType<typeof useAction>;
  close: () => void;
  show: (created: Created) => void;
}

function KeyForm({ action: { busy, error, run }, close, show }: FormProps) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly string[]>(() => scopesOf(currentRole()).map(([scope]) => scope));
  const [life, setLife] = useState("");
  const [date, setDate] = useState("");
  const [forbidsText, setForbidsText] = useState(false);

  const submit = async () => {
    const end = endOf(life, date);
    const { secret } = await keys.createKey({
      name: name.trim(),
      scopes: scopes.map((scope) => numberOf(ScopeSchema, scope)),
      ...(end ? { expiresAt: timestampFromDate(end) } : {}),
      forbidsText,
    });
    show({ name: name.trim(), secret, scopes });
  };
  return (
    <form class="form" onSubmit={(event) => run(submit, event)}>
      <KeyName id="key-name" name={name} change={setName} placeholder="What will use it?" />
      <Scopes scopes={scopes} change={setScopes} />
      <Expiry life={life} setLife={setLife} date={date} setDate={setDate} />
      <ForbidText isSet={forbidsText} change={setForbidsText} />
      {error !== undefined && <FailureNote error={error} />}
      <DialogButtons close={close} action="Create" doing="Creating…" busy={busy} disabled={scopes.length === 0} />
    </form>
  );
}

function Scopes({ scopes, change }: { scopes: readonly string[]; change: (scopes: readonly string[]) => void }) {
  const toggle = (scope: string, isChecked: boolean) =>
    change(isChecked ? [...scopes, scope] : scopes.filter((one) => one !== scope));
  return (
    <fieldset class="field">
      <legend>Scopes</legend>
      {scopesOf(currentRole()).map(([scope, title, help]) => (
        <label key={scope} class="check">
          <input
            type="checkbox"
            checked={scopes.includes(scope)}
            onChange={(event) => toggle(scope, event.currentTarget.checked)}
          />
          {title} <span class="soft">{help}</span>
        </label>
      ))}
      {scopes.length === 0 && <p class="help">Choose at least one.</p>}
    </fieldset>
  );
}

interface ExpiryProps {
  /** First member of an entry of `LIVES`. */
  life: string;
  setLife: (life: string) => void;
  /** Day of expiry if `life` is `date`, as YYYY-MM-DD. */
  date: string;
  setDate: (date: string) => void;
}

function Expiry({ life, setLife, date, setDate }: ExpiryProps) {
  return (
    <>
      <Choice<string> id="key-life" label="Expires" value={life} options={LIVES} change={setLife} />
      {life === "date" && (
        <Field id="key-date" label="Last day, UTC">
          <input
            id="key-date"
            type="date"
            required
            min={new Date().toISOString().slice(0, 10)}
            max={LAST_DAY}
            value={date}
            onInput={(event) => setDate(event.currentTarget.value)}
          />
        </Field>
      )}
    </>
  );
}

function endOf(life: string, date: string): Date | undefined {
  if (life === "") return undefined;
  if (life !== "date") return new Date(Date.now() + Number(life) * 86_400_000);
  return new Date(new Date(`${date}T00:00:00Z`).getTime() + 86_400_000);
}
