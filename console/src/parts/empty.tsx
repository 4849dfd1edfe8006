import type { ComponentChildren } from "preact";

/** In place of a list that has nothing in it: what would be here, and how it comes to be. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p>
        <strong>{title}</strong>
      </p>
      {children}
    </div>
  );
}
