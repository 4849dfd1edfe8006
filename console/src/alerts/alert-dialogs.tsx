import { Dialog } from "../parts/dialog.tsx";
import { DialogButtons } from "../parts/dialog-buttons.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Secret } from "../parts/secret.tsx";
import { useAction } from "../parts/use-action.ts";

/** Shows the new secret of the signatures, which is not available later. */
export function AlertSecret({ secret, done }: { secret: string; done: () => void }) {
  return (
    <Dialog title="The secret of the signatures" close={done} sticky>
      <Secret secret={secret}>
        It is not shown again. The program behind the webhook uses it to check that an event is from this service.
      </Secret>
      <div class="buttons">
        <button type="button" class="primary" onClick={done}>
          I have stored it
        </button>
      </div>
    </Dialog>
  );
}

interface Props {
  title: string;
  /** What happens. */
  text: string;
  /** Text of the button. */
  action: string;
  run: () => Promise<void>;
  close: () => void;
}

/** Asks before a change that cannot be undone. */
export function ConfirmChange({ title, text, action, run, close }: Props) {
  const { busy, error, run: start } = useAction();
  return (
    <Dialog title={title} close={close}>
      <p>{text}</p>
      {error !== undefined && <FailureNote error={error} />}
      <DialogButtons close={close} action={action} busy={busy} isDanger run={() => start(run)} />
    </Dialog>
  );
}
