import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface Props {
  title: string;
  /** Called when Escape closes it. */
  close: () => void;
  /** True ignores Escape, for dialogs whose content would be lost. */
  sticky?: boolean;
  children: ComponentChildren;
}

/**
 * A modal dialog, open while it is rendered. It keeps the focus inside and restores the previous focus when it closes.
 */
export function Dialog({ title, close, sticky = false, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const shown = useRef(title);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
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
    <dialog ref={element} onCancel={leave} onClose={leave} aria-labelledby={id}>
      <h2 id={id} ref={heading} tabIndex={-1}>
        {title}
      </h2>
      {children}
    </dialog>
  );
}
