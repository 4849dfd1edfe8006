import { useState } from "preact/hooks";
import type { Key } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { Dialog } from "../parts/dialog.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Field } from "../parts/field.tsx";
import { useAction } from "../parts/use-action.ts";
import { keys } from "../rpc.ts";

/** Renames a key. */
export function RenameKey({ of: key, close, done }: { of: Key; close: () => void; done: (sentence: string) => void }) {
  const [name, setName] = useState(key.name);
  const { error, run } = useAction();
  const submit = async () => {
    await keys.updateKey({ id: key.id, name: name.trim() });
    done(`The key is now called ${name.trim() || "nothing"}.`);
  };
  return (
    <Dialog title="Rename the key" close={close}>
      <form class="form" onSubmit={(event) => run(submit, event)}>
        <Field id="new-name" label="Name">
          <input
            id="new-name"
            type="text"
            maxLength={200}
            autocomplete="off"
            data-autofocus
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </Field>
        {error !== undefined && <FailureNote error={error} />}
        <div class="buttons">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Rename
          </button>
        </div>
      </form>
    </Dialog>
  );
}
