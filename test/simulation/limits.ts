import type { Ask, Item } from "../../src/admission/escrow/exchange.ts";
import type { Refusal } from "../../src/admission/escrow/refusal.ts";
import { type Account, capacityOf, reservedOf } from "./account.ts";

const LIMITLESS = Number.POSITIVE_INFINITY;

/** Fewest requests for which headroom is reserved in advance. */
const FEW = 4;

/**
 * The rules of check_rate_limits.sql and check_credit.sql.
 * @param of whether all that is reserved counts, or what running requests hold
 * @returns why a request is refused; undefined: it is admitted
 */
export function refusalOf(
  account: Account,
  { hold, input }: Pick<Ask, "hold" | "input">,
  of: "reserved" | "in use",
): Refusal | undefined {
  const { limits, granted, purchased } = account;
  const { all, perUnit } = reservedOf(account);
  const inUse = of === "in use";
  const over = (used: number, limit: number | undefined) => limit !== undefined && used > limit;
  // What no wait changes comes first.
  for (const unit of ["month", "day", "minute"] as const) {
    const never = (name: string): Refusal => ({ refusal: "rate_limited", limit: `${name}_per_${unit}`, never: true });
    if (over(1, limits.requests?.[unit])) return never("requests");
    if (over(input, limits.input?.[unit])) return never("input_tokens");
    if (over(1, limits.output?.[unit])) return never("output_tokens");
  }
  if (over(1, limits.running)) return { refusal: "rate_limited", limit: "concurrent_requests", never: true };
  for (const unit of ["month", "day", "minute"] as const) {
    const reserved = (part: "requests" | "input") => (inUse ? 0 : perUnit[part][unit]);
    const refuse = (name: string): Refusal => ({ refusal: "rate_limited", limit: `${name}_per_${unit}` });
    if (over(account.requests[unit] + reserved("requests") + 1, limits.requests?.[unit])) return refuse("requests");
    if (over(account.input[unit] + reserved("input") + input, limits.input?.[unit])) return refuse("input_tokens");
    if (over(account.output[unit] + 1, limits.output?.[unit])) return refuse("output_tokens");
  }
  const grants = [...account.grants.values()];
  const running = inUse ? grants.reduce((sum, grant) => sum + grant.runningNow, 0) : all.running;
  if (running >= (limits.running ?? LIMITLESS)) return { refusal: "rate_limited", limit: "concurrent_requests" };
  const held = inUse ? grants.reduce((sum, grant) => sum + grant.held, 0) : all.credit;
  for (const unit of ["month", "week", "day"] as const) {
    const limit = limits.spend?.[unit] ?? LIMITLESS;
    if (hold > granted && account.spent[unit] + hold - granted > limit) return { refusal: "spend_limit_reached" };
  }
  if (hold > granted + purchased) return { refusal: "insufficient_credit" };
  if (held + hold > capacityOf(account)) return { refusal: "rate_limited", limit: "held_credit" };
  return undefined;
}

/** Number of requests for which headroom is reserved in advance: 0 at the edge. */
export function spareOf(account: Account, { spare }: Item, live: number): number {
  if (spare.n === 0) return 0;
  const { all, perUnit } = reservedOf(account);
  let n = spare.n;
  const share = (left: number, size: number): void => {
    if (size > 0) n = Math.min(n, Math.floor(left / (2 * live * size)));
  };
  share(capacityOf(account) - all.credit, spare.credit);
  share((account.limits.running ?? LIMITLESS) - all.running, 1);
  for (const unit of ["minute", "day", "month"] as const) {
    for (const [part, size] of [
      ["requests", 1],
      ["input", spare.input],
      ["output", spare.output],
    ] as const) {
      share((account.limits[part]?.[unit] ?? LIMITLESS) - account[part][unit] - perUnit[part][unit], size);
    }
  }
  return n < Math.min(FEW, spare.n) ? 0 : n;
}
