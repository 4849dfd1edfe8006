import type { Clock } from "../contract/clock.ts";
import { WAITING } from "../overload/bounds.ts";
import { orOverloaded, type Pool } from "../store/pool.ts";
import { createBatcher } from "./batch.ts";
import type { LimitsLeft } from "./escrow/exchange.ts";
import { type Refusal, refusalFailure } from "./escrow/refusal.ts";
import { maxPriceOf, type Rates } from "./price.ts";
import { type RateLimit, rateLimits } from "./rate-limits.ts";

/** Time for which a workspace counts as able to make requests after one was admitted, in milliseconds. */
const GOOD_MS = 60_000;

/** Most workspaces that are remembered; about 2 MB. */
const MAX_KNOWN = 10_000;

/** Creates what this process knows about the limits and the credit of workspaces. */
export function createStanding(pool: Pool, clock?: Clock) {
  /** Workspaces that can make requests, and when that was last known, the oldest first. */
  const good = new Map<string, number>();
  /** Limits of workspaces that were refused here and may have no grant, the oldest first. */
  const refused = new Map<string, Refused>();
  const lookUp = createBatcher((ids: string[]) => readRefusals(pool, ids, clock), WAITING.lookUps);

  /** Notes whether admission has accepted a request of the workspace. */
  function note(workspaceId: string, isAdmitted: boolean): void {
    remember(good, workspaceId, isAdmitted ? performance.now() : undefined);
  }

  async function ask(workspaceId: string, rates: Rates): Promise<void> {
    const found = await orOverloaded(lookUp(workspaceId));
    const isFree = maxPriceOf(rates, 1, 1) === 0n;
    const refusal = isFree ? found?.free_refusal : found?.refusal;
    note(workspaceId, !refusal);
    remember(refused, workspaceId, found && refusal ? { ...found, since: performance.now() } : undefined);
    if (refusal) throw refusalFailure(refusal);
  }

  return {
    /**
     * Refuses a request that admission would refuse however small it is, before its body is read. It reserves nothing.
     * For a workspace whose requests are admitted it returns at once; otherwise it asks the database.
     * @param rates by which a request is priced: the smallest one may cost nothing
     * @throws Failure naming the limit, or `insufficient_credit`; `overloaded` when the database is unavailable
     */
    check(workspaceId: string, rates: Rates): Promise<void> | undefined {
      const since = good.get(workspaceId) ?? Number.NEGATIVE_INFINITY;
      return performance.now() - since < GOOD_MS ? undefined : ask(workspaceId, rates);
    },
    note,
    /** The rate limits of a workspace that `check` has refused in this minute; undefined: none is known. */
    limits(workspaceId: string): RateLimit[] | undefined {
      const found = refused.get(workspaceId);
      if (!found?.left) return undefined;
      const endsInMs = found.ms_left - (performance.now() - found.since);
      return endsInMs > 0 ? rateLimits(found.left, [], Number(found.minute), endsInMs) : undefined;
    },
  };
}

/** Puts what is known of a workspace last, and forgets the oldest of too many. @param fact undefined: nothing */
function remember<Fact>(known: Map<string, Fact>, workspaceId: string, fact: Fact | undefined): void {
  known.delete(workspaceId);
  if (fact === undefined) return;
  known.set(workspaceId, fact);
  const [oldest = workspaceId] = known.keys();
  if (known.size > MAX_KNOWN) known.delete(oldest);
}

/** Why a workspace cannot make requests, and its limits. */
interface Found {
  readonly refusal: Refusal;
  /** Why it cannot make requests that are free; null: it can. */
  readonly free_refusal: Refusal | null;
  readonly left: LimitsLeft | null;
  /** Start of the minute, in ms since 1970, and what is left of it, in ms. */
  readonly minute: number;
  readonly ms_left: number;
}

interface Refused extends Found {
  readonly since: number;
}

async function readRefusals(pool: Pool, ids: string[], clock: Clock | undefined): Promise<(Found | null)[]> {
  // The smallest request has one token of input, and costs one micro-credit or nothing.
  const rows = await pool.query<Found & { id: string; refusal: Refusal | null }>(
    `select a.workspace_id as id,
       coalesce(check_rate_limits(a, p, u.running, 1), check_credit(a, p, u.held, 1)) as refusal,
       coalesce(check_rate_limits(a, p, u.running, 1), check_credit(a, p, u.held, 0)) as free_refusal,
       limits_left(a, p) as left, ms_left_in_period('minute', p.at, p.clock)::float8 as ms_left,
       extract(epoch from date_trunc('minute', p.at, 'UTC'))::float8 * 1000 as minute
     from accounts a, periods_at(a.workspace_id, coalesce($2, clock_timestamp())) p, in_use(a.workspace_id) u
     where a.workspace_id = any ($1)`,
    [[...new Set(ids)], clock ? new Date(clock()) : null],
  );
  const found = new Map(rows.map((row) => [row.id, row.refusal ? row : null]));
  return ids.map((id) => found.get(id) ?? null);
}
