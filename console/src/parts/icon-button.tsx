import { type IconNode, RefreshCw } from "lucide";
import { Icon } from "./icon.tsx";

interface Props {
  icon: IconNode;
  /** What it does, for screen readers. */
  label: string;
  /** What it does, for the pointer. */
  title?: string;
  class?: string;
  disabled?: boolean;
  run: () => void;
}

/** A button that shows an icon only. */
export function IconButton({ icon, label, run, class: looks = "quiet round", ...rest }: Props) {
  return (
    <button type="button" class={looks} aria-label={label} onClick={run} {...rest}>
      <Icon of={icon} />
    </button>
  );
}

/** A button that loads what the page shows again. */
export function Refresh({ run, class: looks = "" }: Pick<Props, "run" | "class">) {
  return <IconButton icon={RefreshCw} label="Refresh" title="Refresh" class={looks} run={run} />;
}
