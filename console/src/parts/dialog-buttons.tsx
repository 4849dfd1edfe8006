import type { ComponentChildren } from "preact";

interface Props {
  /** Closes the dialog and changes nothing, so not while it acts. */
  close: () => void;
  /** The words of the button that closes. Default: Cancel. */
  keep?: string;
  /** The words of the button that acts, and those while it does. */
  action: string;
  doing?: string;
  busy?: boolean;
  /** Whether it cannot act yet. */
  disabled?: boolean;
  /** Whether it takes away what cannot be had back. */
  isDanger?: boolean;
  /** Acts; without it, the button submits the form that the buttons are in. */
  run?: () => void;
  /** Other buttons, before these two. */
  children?: ComponentChildren;
}

/** The row of buttons at the end of a dialog: one that closes it, and one that acts. */
export function DialogButtons({ close, keep = "Cancel", action, doing = action, run, children, ...rest }: Props) {
  const { busy = false, disabled = false, isDanger = false } = rest;
  return (
    <div class="buttons">
      {children}
      <button type="button" disabled={busy} onClick={close}>
        {keep}
      </button>
      <button
        type={run ? "button" : "submit"}
        class={isDanger ? "primary danger" : "primary"}
        disabled={busy || disabled}
        onClick={run}
      >
        {busy ? doing : action}
      </button>
    </div>
  );
}
