/** How full a limit is: from 50, 80 and 100 % on it says so, in words and in colour. */
export type Fill = "low" | "half" | "near" | "full";

/** @param limit may be 0, which is always full */
export function fillOf(used: number, limit: number): Fill {
  const share = limit > 0 ? used / limit : 1;
  return share >= 1 ? "full" : share >= 0.8 ? "near" : share >= 0.5 ? "half" : "low";
}

/** Words for a fill; empty while there is nothing to say. */
export const FILL_WORDS: Record<Fill, string> = { low: "", half: "over 50 %", near: "over 80 %", full: "reached" };

/** A bar for what is used of a limit. */
export function Meter({ used, limit, label }: { used: number; limit: number; label: string }) {
  const share = limit > 0 ? Math.min(1, used / limit) : 1;
  return (
    // biome-ignore lint/a11y/useSemanticElements: browsers draw <meter> each in their own way
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
