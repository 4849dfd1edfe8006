import type { ComponentChildren } from "preact";
import { Dialog } from "./dialog.tsx";
import { DialogButtons } from "./dialog-buttons.tsx";
import { FailureNote } from "./failure-note.tsx";
import { useAction } from "./use-action.ts";

interface Words {
  title: string;
  close: () => void;
  /** The words of the button that closes, of the one that acts, and of that while it does. */
  keep?: string;
  action: string;
  doing?: string;
  children: ComponentChildren;
}

interface FormProps extends Words {
  submit: () => Promise<void>;
  /** Whether it cannot be submitted yet. */
  disabled?: boolean;
  isDanger?: boolean;
  /** Whether only its buttons close it while it acts. */
  isSticky?: boolean;
}

/** A form in a dialog. Shows why it failed, above its buttons. */
export function FormDialog({ title, close, submit, isSticky = false, children, ...buttons }: FormProps) {
  const { busy, error, run } = useAction();
  return (
    <Dialog title={title} close={close} sticky={isSticky && busy}>
      <form class="form" onSubmit={(event) => run(submit, event)}>
        {children}
        {error !== undefined && <FailureNote error={error} />}
        <DialogButtons close={close} busy={busy} {...buttons} />
      </form>
    </Dialog>
  );
}

/** Asks before a change that cannot be undone. The children say what happens. */
export function ConfirmDialog({ title, close, run, children, ...words }: Words & { run: () => Promise<void> }) {
  const { busy, error, run: start } = useAction();
  return (
    <Dialog title={title} close={close}>
      {children}
      {error !== undefined && <FailureNote error={error} />}
      <DialogButtons close={close} busy={busy} isDanger run={() => start(run)} {...words} />
    </Dialog>
  );
}
