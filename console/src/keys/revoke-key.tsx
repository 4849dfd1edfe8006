import type { Key } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { timeText } from "../format.ts";
import { ConfirmDialog } from "../parts/form-dialog.tsx";
import { keys } from "../rpc.ts";

/** Revokes a key after showing when it was last used. */
export function RevokeKey({ of: key, close, done }: { of: Key; close: () => void; done: (sentence: string) => void }) {
  const name = key.name || key.prefix;
  const revoke = async () => {
    await keys.revokeKey({ id: key.id });
    done(`Revoked the key ${name}. It is refused within a second.`);
  };
  return (
    <ConfirmDialog
      title={`Revoke ${name}?`}
      close={close}
      keep="Keep it"
      action="Revoke the key"
      doing="Revoking…"
      run={revoke}
    >
      <p>Programs that use it will be refused with status 401 within a second. A revoked key cannot be brought back.</p>
      <p class="soft">
        {key.use?.lastUsedAt
          ? `It was last used at ${timeText(key.use.lastUsedAt).slice(0, 16)}.`
          : "It was never used."}
      </p>
    </ConfirmDialog>
  );
}
