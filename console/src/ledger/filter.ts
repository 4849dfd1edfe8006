import { LedgerEntryKind } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { boundsOf, type Period } from "../parts/period.tsx";

const { GRANT, PURCHASE, ADJUSTMENT, SETTLEMENT } = LedgerEntryKind;

/** What the page can show: the value in the address, the label, and the kinds of movements; none: all kinds. */
const SHOWN: Readonly<Record<string, readonly [label: string, ...kinds: LedgerEntryKind[]]>> = {
  "": ["Bookings and settlements"],
  bookings: ["Bookings", GRANT, PURCHASE, ADJUSTMENT],
  grant: ["Grants", GRANT],
  purchase: ["Purchases", PURCHASE],
  adjustment: ["Adjustments", ADJUSTMENT],
  settlement: ["Settlements", SETTLEMENT],
  hours: ["Settlements by hour", SETTLEMENT],
  all: ["With holds and releases"],
};

export const OPTIONS = Object.entries(SHOWN).map(([value, [label]]) => [value, label] as const);

/** The value of `OPTIONS` in an address. */
export function shownOf(query: URLSearchParams): string {
  const value = query.get("show") ?? "";
  return Object.hasOwn(SHOWN, value) ? value : "";
}

export interface LedgerFilter {
  readonly period: Period;
  /** A value of `OPTIONS`. */
  readonly show: string;
}

/** The filter as fields of a request. Only earlier versions wrote holds and releases. */
export function requestOf({ period, show }: LedgerFilter) {
  const [, ...kinds] = SHOWN[show] ?? [""];
  return { ...boundsOf(period), chargesOnly: show !== "all", kinds };
}
