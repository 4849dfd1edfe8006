import type { Ask } from "../../src/admission/escrow/exchange.ts";
import type { Account, Counts } from "./account.ts";
import type { Request } from "./actors.ts";
import { currentWindows } from "./windows.ts";

const LIMITLESS = Number.POSITIVE_INFINITY;
const WINDOWS = ["minute", "day", "month"] as const;
const RATES = ["requests", "input"] as const;

type Used = Record<(typeof RATES)[number], Partial<Counts>>;

/** What the requests of a workspace have used, by the clock, and the highest limits that it has had. */
interface Observed {
  used: Map<string, { requests: number; input: number }>;
  most: Used;
  running: number;
}

/**
 * Counts what is admitted, without the database. While there is no fault, so that no count is lost with a grant, no
 * window has more than its limit, and the database counts the same.
 */
export class Usage {
  readonly #observed = new Map<string, Observed>();

  /** The workspace has these limits from now on. */
  limited(workspace: string, { limits }: Account): void {
    const observed = this.#of(workspace);
    observed.running = Math.max(observed.running, limits.running ?? LIMITLESS);
    for (const rate of RATES)
      for (const unit of WINDOWS)
        observed.most[rate][unit] = Math.max(observed.most[rate][unit] ?? 0, limits[rate]?.[unit] ?? LIMITLESS);
  }

  /** @returns which limit a request exceeds that was admitted at this reading of the clock; undefined: none */
  admitted(workspace: string, { input }: Pick<Ask, "input">, reading: number): string | undefined {
    const { used, most } = this.#of(workspace);
    const windows = currentWindows({ at: reading, clock: reading }, reading);
    for (const unit of WINDOWS) {
      const key = `${unit} ${windows[unit]}`;
      const sums = used.get(key) ?? { requests: 0, input: 0 };
      sums.requests += 1;
      sums.input += input;
      used.set(key, sums);
      for (const rate of RATES) if (sums[rate] > (most[rate][unit] ?? LIMITLESS)) return `${rate} of a ${unit}`;
    }
    return undefined;
  }

  /** Whether more requests run than any limit has allowed. */
  isCrowded(workspace: string, requests: Iterable<Request>): boolean {
    let running = 0;
    for (const request of requests) if (request.workspace === workspace && request.state === "running") running++;
    return running > this.#of(workspace).running;
  }

  /** @returns what the database has counted otherwise, in the month of `from` and `to`; undefined: nothing */
  difference(workspace: string, { requests, input }: Account, from: number, to: number): string | undefined {
    const month = (at: number) => currentWindows({ at, clock: at }, at).month;
    if (month(from) !== month(to)) return undefined;
    const sums = this.#of(workspace).used.get(`month ${month(to)}`) ?? { requests: 0, input: 0 };
    if (requests.month !== sums.requests) return `${requests.month} requests instead of ${sums.requests}`;
    return input.month === sums.input ? undefined : `${input.month} input tokens instead of ${sums.input}`;
  }

  #of(workspace: string): Observed {
    let observed = this.#observed.get(workspace);
    if (!observed) {
      observed = { used: new Map(), most: { requests: {}, input: {} }, running: 0 };
      this.#observed.set(workspace, observed);
    }
    return observed;
  }
}
