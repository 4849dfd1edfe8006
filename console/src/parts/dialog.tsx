import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface Props {
  title: string;
  /** Called when Escape closes it. */
  close: () => void;
  /** True keeps it open on Escape: what it shows would be lost. */
  sticky?: boolean;
  children: ComponentChildren;
}

/** A modal dialog; it is open as long as it is there. The focus stays inside, and goes back to where it was. */
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
    // What had the focus is gone with what the dialog showed before.
    if (shown.current !== title) heading.current?.focus();
    shown.current = title;
  }, [title]);
  const leave = (event: Event) => {
    event.preventDefault();
    if (!sticky) close();
    // Browsers let a second Escape close a dialog in spite of all.
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
