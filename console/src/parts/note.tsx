import { CircleAlert, Info, TriangleAlert } from "lucide";
import type { ComponentChildren } from "preact";
import { Icon } from "./icon.tsx";

const ICONS = { info: Info, warn: TriangleAlert, bad: CircleAlert };

interface Props {
  tone?: keyof typeof ICONS;
  /** `alert` interrupts a screen reader; `status` waits. */
  role?: "alert" | "status";
  children: ComponentChildren;
}

/** A message that stays on the page. */
export function Note({ tone = "info", role, children }: Props) {
  return (
    <div class={`note ${tone}`} {...(role ? { role } : {})}>
      <Icon of={ICONS[tone]} />
      <div>{children}</div>
    </div>
  );
}
