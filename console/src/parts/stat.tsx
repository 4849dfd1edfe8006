import { ArrowDownRight, ArrowUpRight } from "lucide";
import type { ComponentChildren } from "preact";
import { Icon } from "./icon.tsx";
import { Skeleton } from "./skeleton.tsx";
import { Sparkline } from "./sparkline.tsx";

interface Props {
  label: string;
  /** Undefined while it loads. */
  value: string | undefined;
  unit?: string | undefined;
  /** Below the figure. */
  children?: ComponentChildren;
  /** One value per interval. */
  course?: readonly (number | null)[] | undefined;
}

/** A figure on a card. Belongs into a `dl` with the class `stats`. */
export function Stat({ label, value, unit, children, course }: Props) {
  return (
    <div class="card stat">
      <dt>{label}</dt>
      {value === undefined ? (
        <dd>
          <Skeleton lines={2} />
        </dd>
      ) : (
        <>
          <dd class="value">
            {value} {unit && <small>{unit}</small>}
          </dd>
          <dd class="change">{children}</dd>
        </>
      )}
      {course && (
        <dd>
          <Sparkline values={course} />
        </dd>
      )}
    </div>
  );
}

interface ChangeProps {
  now: number | undefined;
  /** The figure of the period before; undefined if it is not known. */
  before: number | undefined;
  /** Whether more is better, worse, or neither. */
  more?: "better" | "worse" | undefined;
}

/** How a figure differs from the one of the previous period. */
export function Change({ now, before, more }: ChangeProps) {
  if (now === undefined || before === undefined) return null;
  if (before === 0) return <>{now === 0 ? "same as previous" : "nothing in the previous period"}</>;
  const share = now / before - 1;
  const percent = Math.round(Math.abs(share) * 100);
  if (percent === 0) return <>same as previous</>;
  const isUp = share > 0;
  const tone = more && (isUp === (more === "better") ? "better" : "worse");
  return (
    <>
      <span class={tone ?? ""}>
        <Icon of={isUp ? ArrowUpRight : ArrowDownRight} />
        <span class="hidden">{isUp ? "up" : "down"} </span>
        {percent > 999 ? "over 999" : percent} %
      </span>
      vs. previous
    </>
  );
}
