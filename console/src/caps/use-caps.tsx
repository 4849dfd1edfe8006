import { Plus } from "lucide";
import { useEffect, useState } from "preact/hooks";
import { type Cap, CapService } from "../../../gen/chorus/admin/v1/caps_pb.js";
import { useLoad } from "../load.ts";
import { ConfirmDialog } from "../parts/form-dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import { usePager } from "../parts/pager.tsx";
import { toast } from "../parts/toasts.tsx";
import { caps } from "../rpc.ts";
import { can, currentRole } from "../session/session.ts";
import { SetCap } from "./cap-form.tsx";
import { isTemplate, listCaps, listCapsOf } from "./list.ts";
import { nameOf } from "./words.ts";

/** A cap was set or cleared, which may be in other lists on the page. */
const changes = new EventTarget();

/** Whether the session may change the caps of a subject: developers only those of their own keys. */
function mayChange(subject: string): boolean {
  if (!can(CapService.method.setCap)) return false;
  return currentRole() !== "developer" || (subject.startsWith("key:") && !isTemplate(subject));
}

/** Loads the lists of caps on the page again. */
export function capsHaveChanged(): void {
  changes.dispatchEvent(new Event("change"));
}

/**
 * Loads caps, and sets and clears them. `button` and `clear` are absent if the session may not change these caps.
 * @param subject whose caps: such as `user:u-4711`, or `user:*` for those of all users
 * @param whose the subject in words, such as "each user"
 */
export function useCaps(subject: string, whose: string) {
  const pager = usePager(subject);
  const [isSetting, setIsSetting] = useState(false);
  const [cleared, setCleared] = useState<Cap>();
  const list = useLoad(
    (signal) =>
      isTemplate(subject) ? listCaps(subject.slice(0, -1), pager.token, signal) : listCapsOf(subject, signal),
    `${subject} ${pager.token}`,
  );
  useEffect(() => {
    changes.addEventListener("change", list.reload);
    return () => changes.removeEventListener("change", list.reload);
  }, []);
  const done = (sentence: string) => {
    toast(sentence);
    setIsSetting(false);
    setCleared(undefined);
    capsHaveChanged();
  };
  const isChangeable = mayChange(subject);
  const button = isChangeable && (
    <button type="button" class="small" onClick={() => setIsSetting(true)}>
      <Icon of={Plus} />
      Set a cap for {whose}
    </button>
  );
  const dialogs = (
    <>
      {isSetting && <SetCap subject={subject} whose={whose} close={() => setIsSetting(false)} done={done} />}
      {cleared && (
        <ConfirmDialog
          title="Clear the cap?"
          action="Clear the cap"
          run={async () => {
            await caps.clearCap({ id: cleared.id });
            done("Cleared the cap.");
          }}
          close={() => setCleared(undefined)}
        >
          <p>{`It no longer limits ${cleared.subject}: ${nameOf(cleared.figure, cleared.period).toLowerCase()}.`}</p>
        </ConfirmDialog>
      )}
    </>
  );
  return { list, pager, clear: isChangeable ? setCleared : undefined, button, dialogs };
}
