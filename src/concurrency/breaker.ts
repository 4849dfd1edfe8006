export interface BreakerOptions {
  /** Fewest requests in the window for the circuit to open. Default 5. */
  minRequests?: number;
  /** Share of the requests, 0 to 1, that must have failed for the circuit to open. Default 0.5. */
  failedShare?: number;
  /** Requests count for one to two times this long, in milliseconds. Default 30,000. */
  windowMs?: number;
  /** Time from the opening of the circuit until one call may pass as a probe, in milliseconds. Default 10,000. */
  cooldownMs?: number;
  /** The current time in milliseconds, from any fixed point. Default `performance.now`. */
  clock?: () => number;
}

/** The request that a call belongs to. Calls of one request share one object. */
export interface Requester {
  /** Workspace of the caller. Empty for calls of the service itself, such as a test by an operator. */
  readonly workspace: string;
}

type Result = "ok" | "failed" | "unknown";

/** `forced`: it passed while the circuit was open. */
type Kind = "usual" | "forced" | "probe";

type End = (result: Result, requester: Requester, kind: Kind) => void;

/** A call that may be made. A class, because an object with a closure takes 0.15 KB more while the call lasts. */
export class Attempt {
  readonly #end: End;
  readonly #kind: Kind;
  /** Undefined after the report. */
  #requester: Requester | undefined;

  constructor(end: End, requester: Requester, kind: Kind) {
    this.#end = end;
    this.#requester = requester;
    this.#kind = kind;
  }

  /**
   * Reports the result; only the first report counts. `failed`: the server is to blame. `unknown`: the call says
   * nothing about the server, for example because the caller left.
   */
  end(result: Result): void {
    const requester = this.#requester;
    this.#requester = undefined;
    if (requester) this.#end(result, requester, this.#kind);
  }
}

/** Requests of one workspace. */
interface Count {
  requests: number;
  failed: number;
}

/** Most workspaces that are counted in each half of the window. Requests of further ones are not counted. */
const MAX_WORKSPACES = 256;
/** Fewest failures of the workspaces besides the one with the most. */
const MIN_OTHERS = 2;
/** Time for which a second workspace is remembered, in milliseconds. */
const COMPANY_MS = 300_000;

/**
 * Stops calls to a server while most requests fail: a circuit breaker with the usual three states. Closed: all calls
 * pass. Open: no call passes. Half open, after a cool-down: one call passes as a probe, and its result closes or
 * reopens the circuit.
 *
 * The circuit opens on the share of failed requests over a sliding window. A request with several failed calls counts
 * as one failure. Requests that fail because of their content must not close the server to others. So if two
 * workspaces used the server lately, the share must also be reached without the workspace that has the most failures.
 */
export class Breaker {
  readonly #options: Required<BreakerOptions>;
  /** Requests whose failure has been counted. */
  readonly #failed = new WeakSet<Requester>();
  /** The current and the previous half of the window, by workspace. */
  #halves: [Map<string, Count>, Map<string, Count>] = [new Map(), new Map()];
  #halfEndsAt = Number.NEGATIVE_INFINITY;
  #openedAt: number | undefined;
  #isProbing = false;
  /** Workspace of the last probe, if that failed. */
  #failedProbe: string | undefined;
  #lastWorkspace: string | undefined;
  /** When requests of two workspaces last followed each other. */
  #companyAt = Number.NEGATIVE_INFINITY;

  constructor(options: BreakerOptions = {}) {
    this.#options = {
      minRequests: 5,
      failedShare: 0.5,
      windowMs: 30_000,
      cooldownMs: 10_000,
      clock: () => performance.now(),
      ...options,
    };
  }

  get isClosed(): boolean {
    return this.#openedAt === undefined;
  }

  /** Share of the requests in the window that failed, 0 to 1. */
  get failedShare(): number {
    const { requests, failed } = this.#sum();
    return requests === 0 ? 0 : failed / requests;
  }

  /**
   * Begins a call.
   * @param isForced passes also while the circuit is open
   * @returns undefined if the call must not be made
   */
  begin(requester: Requester, isForced = false): Attempt | undefined {
    const { workspace } = requester;
    const isOpen = this.#openedAt !== undefined;
    const isProbe = isOpen && this.#mayProbe(workspace);
    if (isOpen && !isProbe && !isForced) return undefined;
    if (isProbe) this.#isProbing = true;
    return new Attempt(this.#end, requester, isProbe ? "probe" : isOpen ? "forced" : "usual");
  }

  readonly #end: End = (result, requester, kind) => {
    if (kind === "probe") this.#isProbing = false;
    if (result === "unknown") return;
    const isFailed = result === "failed";
    if (kind !== "usual" && !isFailed) this.reset();
    // A probe that fails starts another cool-down. Other calls do not extend it.
    if (kind === "probe" && isFailed) this.#open(requester.workspace);
    this.#count(requester, isFailed);
  };

  /** The workspace whose probe failed waits twice as long, so that it cannot take every probe. */
  #mayProbe(workspace: string): boolean {
    if (this.#isProbing || this.#openedAt === undefined) return false;
    const { clock, cooldownMs } = this.#options;
    return clock() - this.#openedAt >= cooldownMs * (workspace === this.#failedProbe ? 2 : 1);
  }

  #open(failedProbe?: string): void {
    this.#openedAt = this.#options.clock();
    this.#failedProbe = failedProbe;
  }

  /** Closes the circuit, and forgets what has failed. */
  reset(): void {
    this.#openedAt = undefined;
    this.#failedProbe = undefined;
    this.#halves = [new Map(), new Map()];
  }

  #count(requester: Requester, isFailed: boolean): void {
    if (isFailed) {
      if (this.#failed.has(requester)) return;
      this.#failed.add(requester);
    }
    const { workspace } = requester;
    const now = this.#slide();
    if (workspace !== "") {
      if (this.#lastWorkspace !== undefined && workspace !== this.#lastWorkspace) this.#companyAt = now;
      this.#lastWorkspace = workspace;
    }
    const [counts] = this.#halves;
    const count = counts.get(workspace) ?? { requests: 0, failed: 0 };
    count.requests += 1;
    if (isFailed) count.failed += 1;
    if (counts.size < MAX_WORKSPACES) counts.set(workspace, count);
    if (isFailed && this.isClosed && this.#isFailing(now)) this.#open();
  }

  /** Drops the half of the window that has passed. @returns the current time */
  #slide(): number {
    const { clock, windowMs } = this.#options;
    const now = clock();
    if (now >= this.#halfEndsAt) {
      const hasPassed = now >= this.#halfEndsAt + windowMs;
      this.#halves = [new Map(), hasPassed ? new Map() : this.#halves[0]];
      this.#halfEndsAt = now + windowMs;
    }
    return now;
  }

  #isFailing(now: number): boolean {
    const { minRequests, failedShare } = this.#options;
    const { requests, failed, worst } = this.#sum();
    if (requests < minRequests || failed < failedShare * requests) return false;
    if (now - this.#companyAt >= COMPANY_MS) return true;
    const rest = { requests: requests - worst.requests, failed: failed - worst.failed };
    return rest.failed >= MIN_OTHERS && rest.failed >= failedShare * rest.requests;
  }

  /** The requests in the window, and those of the workspace with the most failures. */
  #sum(): Count & { worst: Count } {
    const sum = { requests: 0, failed: 0, worst: { requests: 0, failed: 0 } };
    const [now, before] = this.#halves;
    for (const workspace of new Set([...now.keys(), ...before.keys()])) {
      const [a, b] = [now.get(workspace), before.get(workspace)];
      const count = {
        requests: (a?.requests ?? 0) + (b?.requests ?? 0),
        failed: (a?.failed ?? 0) + (b?.failed ?? 0),
      };
      sum.requests += count.requests;
      sum.failed += count.failed;
      if (count.failed > sum.worst.failed) sum.worst = count;
    }
    return sum;
  }
}
