import { X } from "lucide";
import type { ComponentChildren, TargetedPointerEvent } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { IconButton } from "./icon-button.tsx";

interface Props {
  title: string;
  /** Called when Escape, the button or a click beside it closes it. */
  close: () => void;
  /** `drawer` takes the right edge of the screen. */
  kind?: "dialog" | "drawer";
  /** True closes it only with its own buttons, for dialogs that show what would be lost, or are about to. */
  sticky?: boolean;
  children: ComponentChildren;
}

/**
 * A modal dialog, open while it is rendered. The focus goes to the element with `autofocus`, stays inside, and returns
 * when the dialog closes.
 */
export function Dialog({ title, close, kind = "dialog", sticky = false, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const shown = useRef(title);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    const first = element.current?.querySelector<HTMLElement>("[data-autofocus]");
    (first ?? heading.current)?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  useEffect(() => {
    // The focused element belonged to the previous content.
    if (shown.current !== title) heading.current?.focus();
    shown.current = title;
  }, [title]);
  const leave = (event: Event) => {
    event.preventDefault();
    if (!sticky) close();
    // Browsers close a dialog at the second Escape even if `cancel` is prevented.
    else if (event.type === "close") element.current?.showModal();
  };
  return (
    <dialog
      ref={element}
      class={kind}
      onCancel={leave}
      onClose={leave}
      // The dialog has no area of its own: only its backdrop is a target.
      onPointerDown={(event) => event.target === event.currentTarget && isBeside(event) && leave(event)}
      aria-labelledby={id}
    >
      <header>
        <h2 id={id} ref={heading} tabIndex={-1}>
          {title}
        </h2>
        {!sticky && <IconButton icon={X} label="Close" run={close} />}
      </header>
      {children}
    </dialog>
  );
}

/** Whether the pointer is on the backdrop. */
function isBeside({ clientX, clientY, currentTarget }: TargetedPointerEvent<HTMLElement>): boolean {
  const { left, right, top, bottom } = currentTarget.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}
