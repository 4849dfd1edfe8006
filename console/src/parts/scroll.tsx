import type { ComponentChildren } from "preact";

interface Props {
  label: string;
  /** Whether the head of the table stays in view, on a screen that is wide enough for the table. */
  isSticky?: boolean;
  children: ComponentChildren;
}

/** A table that may be wider than the screen: it scrolls separately from the page, also by keyboard. */
export function Scroll({ label, isSticky, children }: Props) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it the keyboard could not scroll the table
    <section class={isSticky ? "scroll sticky" : "scroll"} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
