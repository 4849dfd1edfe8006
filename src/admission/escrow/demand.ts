/** Length of a part of the time that is observed, in milliseconds. */
const PART_MS = 1_000;

/** What the requests of the last one to two seconds needed. */
export interface Demand {
  /** Number of requests. */
  n: number;
  /** Means for one request, rounded up. `output` is at least 1. */
  credit: number;
  input: number;
  output: number;
}

interface Part {
  requests: number;
  credit: number;
  input: number;
  ends: number;
  output: number;
}

const EMPTY: Readonly<Part> = { requests: 0, credit: 0, input: 0, ends: 0, output: 0 };

/** Observes the requests of one workspace on one replica. Times are in ms of a monotonic clock. */
export class DemandMeter {
  #part = 0;
  #now: Part = { ...EMPTY };
  #before: Part = { ...EMPTY };

  admitted(hold: number, input: number, now: number): void {
    this.#turn(now);
    this.#now.requests += 1;
    this.#now.credit += hold;
    this.#now.input += input;
  }

  ended(output: number, now: number): void {
    this.#turn(now);
    this.#now.ends += 1;
    this.#now.output += output;
  }

  read(now: number): Demand {
    this.#turn(now);
    const sum = (key: keyof Part): number => this.#now[key] + this.#before[key];
    const n = sum("requests");
    const of = Math.max(1, n);
    return {
      n,
      credit: Math.ceil(sum("credit") / of),
      input: Math.ceil(sum("input") / of),
      output: Math.max(1, Math.ceil(sum("output") / Math.max(1, sum("ends")))),
    };
  }

  #turn(now: number): void {
    const part = Math.floor(now / PART_MS);
    if (part === this.#part) return;
    this.#before = part === this.#part + 1 ? this.#now : { ...EMPTY };
    this.#now = { ...EMPTY };
    this.#part = part;
  }
}
