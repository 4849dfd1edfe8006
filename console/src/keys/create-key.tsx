import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";
import { ScopeSchema } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { numberOf } from "../../../src/json-names.ts";
import { Dialog } from "../parts/dialog.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { keys } from "../rpc.ts";
import { NewSecret } from "./new-secret.tsx";

const SCOPES = [
  ["generate", "Generate", "asks for answers"],
  ["metrics", "Metrics", "reads limits and usage"],
] as const;

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
  /** The dialog has done its work. @param sentence what happened */
  done: (sentence: string) => void;
  /** The key is there, though its secret still shows. */
  created: () => void;
}

/** Asks for name, scopes and expiry, then shows the secret once. */
export function CreateKey({ close, done, created }: Props) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly string[]>(["generate", "metrics"]);
  const [life, setLife] = useState("");
  const [date, setDate] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [secret, setSecret] = useState("");

  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const end = endOf(life, date);
      const made = await keys.createKey({
        name: name.trim(),
        scopes: scopes.map((scope) => numberOf(ScopeSchema, scope)),
        ...(end ? { expiresAt: timestampFromDate(end) } : {}),
      });
      setSecret(made.secret);
      created();
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };

  if (secret) {
    return (
      <Dialog title="The secret of the new key" close={close} sticky>
        <NewSecret secret={secret} mayGenerate={scopes.includes("generate")} />
        <div class="buttons">
          <button
            type="button"
            class="primary"
            onClick={() => done(`Created the key ${name.trim() || "without a name"}.`)}
          >
            I have stored it
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title="Create a key" close={close}>
      <form onSubmit={submit}>
        <label for="key-name">Name</label>
        <input
          id="key-name"
          type="text"
          maxLength={200}
          autocomplete="off"
          value={name}
          placeholder="What will use it?"
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <fieldset>
          <legend>It may</legend>
          {SCOPES.map(([scope, title, help]) => (
            <label key={scope} class="check">
              <input
                type="checkbox"
                checked={scopes.includes(scope)}
                onChange={(event) =>
                  setScopes(event.currentTarget.checked ? [...scopes, scope] : scopes.filter((one) => one !== scope))
                }
              />
              {title} <span class="soft">{help}</span>
            </label>
          ))}
          {scopes.length === 0 && <p class="help">Choose at least one.</p>}
        </fieldset>
        <label for="key-life">It stops working</label>
        <select id="key-life" value={life} onChange={(event) => setLife(event.currentTarget.value)}>
          {LIVES.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
        {life === "date" && (
          <label>
            <span>At the end of (UTC)</span>
            <input
              type="date"
              required
              min={new Date().toISOString().slice(0, 10)}
              value={date}
              onInput={(event) => setDate(event.currentTarget.value)}
            />
          </label>
        )}
        {error !== undefined && <FailureNote error={error} />}
        <div class="buttons">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy || scopes.length === 0}>
            {busy ? "Creating…" : "Create"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function endOf(life: string, date: string): Date | undefined {
  if (life === "") return undefined;
  if (life !== "date") return new Date(Date.now() + Number(life) * 86_400_000);
  return new Date(new Date(`${date}T00:00:00Z`).getTime() + 86_400_000);
}
