/** How much of a limit is used: `half` from 50 %, `near` from 80 %, `full` from 100 %. */
export type Fill = "low" | "half" | "near" | "full";

/** @param limit 0 is always full */
export function fillOf(used: number, limit: number): Fill {
  const share = limit > 0 ? used / limit : 1;
  return share >= 1 ? "full" : share >= 0.8 ? "near" : share >= 0.5 ? "half" : "low";
}

const WORDS: Record<Fill, string> = { low: "", half: "over 50 %", near: "over 80 %", full: "reached" };

/** Says how full a limit is; nothing below 50 %. */
export function FillTag({ fill }: { fill: Fill }) {
  return WORDS[fill] ? <span class={`tag ${fill === "full" ? "bad" : "warn"}`}>{WORDS[fill]}</span> : null;
}

interface Props {
  used: number;
  limit: number;
  label: string;
  /** `progress` towards something that is wanted; default: `limit`. */
  tone?: "limit" | "progress";
}

/** A bar that shows the used part of a limit, or how much of a way is done. */
export function Meter({ used, limit, label, tone = "limit" }: Props) {
  const share = limit > 0 ? Math.min(1, used / limit) : 1;
  return (
    // biome-ignore lint/a11y/useSemanticElements: the look of <meter> differs between browsers
    <div
      class={`meter ${tone === "limit" ? fillOf(used, limit) : ""}`}
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
