import { amount } from "../format.ts";

/** An event of an alert as it is displayed. */
export interface AlertEvent {
  /** What happened, such as "Raised". */
  readonly title: string;
  /** The figure and its threshold; empty for a test. */
  readonly text: string;
  /** Name of the workspace; empty for a test. */
  readonly workspace: string;
}

const TITLES: Record<string, string> = {
  "alert.raised": "Raised",
  "alert.cleared": "Cleared",
  "alert.test": "Test",
};

/** @param json the body of the event, as `docs/alerts.md` describes it */
export function eventOf(json: string): AlertEvent {
  const { type, data = {} } = JSON.parse(json);
  return { title: TITLES[type] ?? type, text: textOf(data), workspace: data.workspace ?? "" };
}

interface Data {
  readonly alert?: string;
  readonly value?: number;
  readonly threshold?: number;
  /** Of an alert on a cap. */
  readonly subject?: string;
  readonly limit?: string;
}

function textOf({ alert, value, threshold, subject, limit }: Data): string {
  if (alert === undefined || value === undefined || threshold === undefined) return "";
  if (alert === "credit_left") return `${amount(value)} credits left, threshold ${amount(threshold)}`;
  const figure =
    alert === "spend_share"
      ? "of a spend limit used"
      : alert === "cap_share"
        ? `of ${limit} used by ${subject}`
        : "of requests failed";
  return `${percentOf(Number(value.toFixed(3)))}\u00a0% ${figure}, threshold ${percentOf(threshold)}\u00a0%`;
}

/** A share as a percentage with at most four decimals: 0.8 becomes "80". */
export function percentOf(share: number): string {
  return String(Number((share * 100).toFixed(4)));
}
