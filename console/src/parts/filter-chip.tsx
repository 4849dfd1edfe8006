import { X } from "lucide";
import type { ComponentChildren } from "preact";
import { IconButton } from "./icon-button.tsx";

interface Props {
  /** What its button does, for screen readers. */
  label: string;
  remove: () => void;
  children: ComponentChildren;
}

/** A filter that a link or a choice has set, in the toolbar of a page, with a button that removes it. */
export function FilterChip({ label, remove, children }: Props) {
  return (
    <span class="chip filter">
      {children}
      <IconButton icon={X} label={label} run={remove} />
    </span>
  );
}
