/** How much of a limit is used: `half` from 50 %, `near` from 80 %, `full` from 100 %. */
export type Fill = "low" | "half" | "near" | "full";

/** @param limit 0 is always full */
export function fillOf(used: number, limit: number): Fill {
  const share = limit > 0 ? used / limit : 1;
  return share >= 1 ? "full" : share >= 0.8 ? "near" : share >= 0.5 ? "half" : "low";
}

/** Labels of the levels; empty below 50 %. */
export const FILL_WORDS: Record<Fill, string> = { low: "", half: "over 50 %", near: "over 80 %", full: "reached" };

/** A bar that shows the used part of a limit. */
export function Meter({ used, limit, label }: { used: number; limit: number; label: string }) {
  const share = limit > 0 ? Math.min(1, used / limit) : 1;
  return (
    // biome-ignore lint/a11y/useSemanticElements: the look of <meter> differs between browsers
    <div
      class={`meter ${fillOf(used, limit)}`}
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(share * 100)}
    >
      <div style={{ width: `${share * 100}%` }} />
    </div>
  );
}
