import { LIMIT_NAMES, MAX_LIMIT } from "../../config/tiers.ts";
import { invalid } from "../../failure.ts";

/** A new value of a limit: a number, no limit, or the tier's value again. Undefined when the request states none. */
export interface LimitChange {
  name: string;
  to: bigint | "unlimited" | "default" | undefined;
}

/** Values by name of the limit; null is no limit. */
type Overrides = Record<string, number | null>;

/**
 * Splits changes into limits to override and limits to reset to the tier's value.
 * @throws Failure `invalid_request` with the field
 */
export function readLimitChanges(changes: readonly LimitChange[]): { set: Overrides; reset: string[] } {
  if (changes.length === 0) throw invalid("overrides", "Name at least one limit to change.");
  const set: Overrides = {};
  const reset: string[] = [];
  const seen = new Set<string>();
  for (const [i, { name, to }] of changes.entries()) {
    const field = `overrides[${i}]`;
    if (!LIMIT_NAMES.some((known) => known === name)) {
      throw invalid(`${field}.name`, `A limit is one of ${LIMIT_NAMES.join(", ")}.`);
    }
    if (seen.has(name)) throw invalid(`${field}.name`, `${name} appears twice. List each limit once.`);
    seen.add(name);
    if (to === undefined) throw invalid(field, `${name} needs a value, unlimited or reset.`);
    if (to === "default") reset.push(name);
    else if (to === "unlimited") set[name] = null;
    else if (to >= 0n && to <= BigInt(MAX_LIMIT)) set[name] = Number(to);
    else throw invalid(`${field}.value`, `${name} must be a whole number from 0 to ${MAX_LIMIT}.`);
  }
  return { set, reset };
}
