import { type Timestamp, timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";
import { type Key, Scope } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { hasEnded, listCaps } from "../caps/list.ts";
import { Choice } from "../parts/choice.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { DialogButtons } from "../parts/dialog-buttons.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { useAction } from "../parts/use-action.ts";
import { caps, keys } from "../rpc.ts";
import { NewSecret } from "./new-secret.tsx";

const HOUR = 3_600_000;

/** When the old key stops, in milliseconds from now. */
const ENDS = [
  [0, "At once"],
  [HOUR, "In an hour"],
  [24 * HOUR, "In a day"],
  [168 * HOUR, "In a week"],
] as const;

interface Props {
  of: Key;
  close: () => void;
  /** Called when the secret has been stored. @param sentence what happened */
  done: (sentence: string) => void;
  /** Called when the keys have changed; the secret is still shown. */
  changed: () => void;
}

/** Replaces a key by a new one that may do the same, and lets the old one work for a while. */
export function RotateKey({ of: key, close, done, changed }: Props) {
  const [secret, setSecret] = useState("");
  const [delay, setDelay] = useState<number>(24 * HOUR);
  const [left, setLeft] = useState<unknown>();
  const { busy, error, run } = useAction();
  const name = key.name || key.prefix;
  const rotate = async () => {
    const created = await replace(key);
    await stop(key, delay).catch(setLeft);
    setSecret(created);
    changed();
  };
  if (secret) {
    return (
      <Dialog title="The secret of the new key" close={close} sticky>
        <NewSecret secret={secret} mayGenerate={key.scopes.includes(Scope.GENERATE)} />
        {left !== undefined && <FailureNote error={left} title="The old key still works" />}
        <div class="buttons">
          <button type="button" class="primary" onClick={() => done(`Rotated the key ${name}.`)}>
            I have stored it
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={`Rotate ${name}?`} close={close} sticky={busy}>
      <form class="form" onSubmit={(event) => run(rotate, event)}>
        <p>
          A new key gets the name, scopes, tags, expiry and caps of this one. What it uses of the caps begins at zero.
          Programs need its secret before the old key stops.
        </p>
        <Choice
          id="rotate-end"
          label="The old key stops"
          value={String(delay)}
          options={ENDS.map(([ms, label]) => [String(ms), label])}
          change={(ms) => setDelay(Number(ms))}
        />
        {error !== undefined && <FailureNote error={error} />}
        <DialogButtons close={close} action="Rotate" doing="Rotating…" busy={busy} />
      </form>
    </Dialog>
  );
}

/** Creates a key like another one, with the caps of its own. Without the caps, there is no key. @returns its secret */
async function replace({ id, name, scopes, tags, expiresAt, forbidsText }: Key): Promise<string> {
  const subject = `key:${id}`;
  const own = (await listCaps(subject, "", new AbortController().signal)).caps.filter(
    (cap) => cap.subject === subject && !hasEnded(cap),
  );
  const { key, secret } = await keys.createKey({
    ...{ name, scopes, forbidsText },
    ...(tags ? { tags } : {}),
    ...(expiresAt ? { expiresAt } : {}),
  });
  const created = key?.id ?? "";
  try {
    for (const { figure, period, amount, action, endsAt } of own) {
      const cap = { subject: `key:${created}`, figure, period, amount, action };
      await caps.setCap({ cap: { ...cap, ...(endsAt ? { endsAt } : {}) } });
    }
  } catch (error) {
    await keys.revokeKey({ id: created });
    throw error;
  }
  return secret;
}

/** Lets a key stop after a time, in milliseconds, or earlier if it would stop by itself. */
async function stop({ id, expiresAt }: Key, delay: number): Promise<void> {
  if (delay === 0) {
    await keys.revokeKey({ id });
    return;
  }
  const end = new Date(Date.now() + delay);
  if (!isBefore(expiresAt, end))
    await keys.updateKey({ id, expiry: { case: "expiresAt", value: timestampFromDate(end) } });
}

function isBefore(time: Timestamp | undefined, other: Date): boolean {
  return time !== undefined && timestampDate(time) <= other;
}
