import type { IconNode } from "lucide";
import { h } from "preact";

/** An icon of Lucide, as large as the text. It is decoration: the control that contains it needs a name. */
export function Icon({ of }: { of: IconNode }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      {of.map(([tag, attributes], i) => h(tag, { key: i, ...attributes }))}
    </svg>
  );
}
