import type { ComponentChildren } from "preact";

/** A table that may be wider than the screen: it scrolls separately from the page, also by keyboard. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it the keyboard could not scroll the table
    <section class="scroll" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
