import type { ComponentChildren } from "preact";

interface Props {
  title?: string;
  /** Below the title: a figure or an explanation. */
  text?: ComponentChildren;
  /** Beside the title: links, buttons or a legend. */
  actions?: ComponentChildren;
  /** True for a card that a table fills to its edges. */
  flush?: boolean;
  class?: string;
  /** Target of links within the page. */
  id?: string;
  children: ComponentChildren;
}

/** A titled area on the page. */
export function Card({ title, text, actions, flush = false, class: more = "", id, children }: Props) {
  return (
    <section class={`card ${flush ? "flush" : ""} ${more}`} {...(id ? { id } : {})}>
      {title && (
        <header>
          <h2>{title}</h2>
          {actions}
          {text && <p class="text">{text}</p>}
        </header>
      )}
      {children}
    </section>
  );
}
