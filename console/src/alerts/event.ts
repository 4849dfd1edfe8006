import { amount } from "../format.ts";
import { pathOf } from "../route.ts";

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

/** Milliseconds of requests that a share of failures is about. */
const WINDOW_MS = 600_000;

/** The page of the workspace that shows what an event is about; undefined if none does. @param at time of the event */
export function causeOf(json: string, at: Date): { text: string; address: string } | undefined {
  const { alert, subject = "" }: Data = JSON.parse(json).data ?? {};
  if (alert === "failure_share") {
    const [from, to] = [new Date(at.getTime() - WINDOW_MS).toISOString(), at.toISOString()];
    return { text: "Failed requests", address: pathOf("activity", { from, to, outcome: "failed" }) };
  }
  if (alert === "spend_share") return { text: "Limits", address: pathOf("limits", {}, "spend") };
  if (/^(user|tag):/.test(subject)) return { text: "Its use", address: pathOf("subjects", { subject }) };
  return undefined;
}

interface Data {
  readonly alert?: string;
  readonly value?: number;
  readonly threshold?: number;
  /** Of an alert on a spend limit; undefined in events of earlier versions. */
  readonly period?: string;
  /** Of an alert on a cap. */
  readonly subject?: string;
  readonly limit?: string;
}

function textOf({ alert, value, threshold, period, subject, limit }: Data): string {
  if (alert === undefined || value === undefined || threshold === undefined) return "";
  if (alert === "credit_left") return `${amount(value)} credits left, threshold ${amount(threshold)}`;
  const figure =
    alert === "spend_share"
      ? `of ${period === undefined ? "a spend limit" : `the spend limit of the ${period}`} used`
      : alert === "cap_share"
        ? `of ${limit} used by ${subject}`
        : "of requests failed";
  return `${percentOf(Number(value.toFixed(3)))}\u00a0% ${figure}, threshold ${percentOf(threshold)}\u00a0%`;
}

/** A share as a percentage with at most four decimals: 0.8 becomes "80". */
export function percentOf(share: number): string {
  return String(Number((share * 100).toFixed(4)));
}
