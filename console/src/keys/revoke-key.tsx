import type { Key } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { timeText } from "../format.ts";
import { Dialog } from "../parts/dialog.tsx";
import { DialogButtons } from "../parts/dialog-buttons.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { useAction } from "../parts/use-action.ts";
import { keys } from "../rpc.ts";

/** Revokes a key after showing when it was last used. */
export function RevokeKey({ of: key, close, done }: { of: Key; close: () => void; done: (sentence: string) => void }) {
  const { busy, error, run } = useAction();
  const name = key.name || key.prefix;
  const revoke = async () => {
    await keys.revokeKey({ id: key.id });
    done(`Revoked the key ${name}. It is refused within a second.`);
  };
  return (
    <Dialog title={`Revoke ${name}?`} close={close}>
      <p>Programs that use it will be refused with status 401 within a second. A revoked key cannot be brought back.</p>
      <p class="soft">
        {key.use?.lastUsedAt
          ? `It was last used at ${timeText(key.use.lastUsedAt).slice(0, 16)}.`
          : "It was never used."}
      </p>
      {error !== undefined && <FailureNote error={error} />}
      <DialogButtons
        close={close}
        keep="Keep it"
        action="Revoke the key"
        doing="Revoking…"
        busy={busy}
        isDanger
        run={() => run(revoke)}
      />
    </Dialog>
  );
}
