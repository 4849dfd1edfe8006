import { cutTo, type Period, periodOf } from "../parts/period.tsx";

/** Most days of which the service sums up all workspaces: one less than its 800 points, because a day can be cut. */
export const MOST_DAYS = 799;

/** The period that an address names, or the end of one that is too long. */
export function servicePeriodOf(query: URLSearchParams): Period {
  return cutTo(MOST_DAYS, periodOf(query));
}
