import { type IconNode, Inbox } from "lucide";
import type { ComponentChildren } from "preact";
import { Icon } from "./icon.tsx";

/** Replaces an empty list: says what is missing and what to do. */
export function Empty({
  title,
  icon = Inbox,
  children,
}: {
  title: string;
  icon?: IconNode;
  children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <Icon of={icon} />
      <p>
        <strong>{title}</strong>
      </p>
      {children}
    </div>
  );
}
