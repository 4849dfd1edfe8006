import { useState } from "preact/hooks";
import type { Key } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { FormDialog } from "../parts/form-dialog.tsx";
import { keys } from "../rpc.ts";
import { currentRole } from "../session/session.ts";
import { ForbidText } from "./forbid-text.tsx";
import { KeyName } from "./key-name.tsx";

/** Changes the name of a key, and whether the text of its requests may be kept. */
export function ChangeKey({ of: key, close, done }: { of: Key; close: () => void; done: (sentence: string) => void }) {
  const [name, setName] = useState(key.name);
  const [forbidsText, setForbidsText] = useState(key.forbidsText);
  const submit = async () => {
    const more = forbidsText === key.forbidsText ? {} : { forbidsText };
    await keys.updateKey({ id: key.id, name: name.trim(), ...more });
    done(`Saved the key ${name.trim() || "without a name"}.`);
  };
  return (
    <FormDialog title="Change the key" close={close} submit={submit} action="Save">
      <KeyName id="new-name" name={name} change={setName} />
      <ForbidText
        isSet={forbidsText}
        change={setForbidsText}
        isFixed={key.forbidsText && currentRole() === "developer"}
      />
    </FormDialog>
  );
}
