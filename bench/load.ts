import { setTimeout as sleep } from "node:timers/promises";

/** A server under load, and the request that it gets. */
export interface Target {
  /** For error messages. */
  label: string;
  /** @param onTokens is called with the number of tokens in received bytes of a stream */
  open(count: number, onTokens: (count: number) => void): Promise<Connection[]>;
}

export interface Connection {
  /**
   * Sends the request and waits for the complete response.
   * @param readBody whether to check the complete text of the answer, besides status, framing and ending
   * @throws Error if the response is wrong
   */
  exchange(readBody: boolean): Promise<void>;
  close(): void;
}

export interface Plan {
  connections: number;
  /** Time before the measurement, in seconds. */
  warmUp: number;
  /** Answers that come before the measurement, unless they take longer than `mostSeconds`. Default 0. */
  warmUpAnswers?: { least: number; mostSeconds: number };
  /** Time of the measurement, in seconds. */
  measured: number;
  /** The connections send their first requests evenly over this time, in seconds. Default 0: at once. */
  stagger?: number;
  /** Each connection waits for a random time up to this one before each request, in milliseconds. Default 0. */
  pauseMs?: number;
  /**
   * Constant request rate (open loop). Undefined: each connection sends its next request after a response (closed
   * loop).
   */
  perSecond?: number;
  signal: AbortSignal;
}

export interface Load {
  /** Time of the measurement, in seconds. */
  seconds: number;
  /** Time from sending a request to the last byte of its response, in milliseconds. */
  p50: number;
  p99: number;
  /** Complete, correct responses. */
  answers: number;
  /** Tokens that arrived in streams, those of incomplete responses included. */
  tokens: number;
  failed: number;
  firstFailure: string | undefined;
}

/** The complete body is checked in one of this many responses. */
const READ_ONE_IN = 100;

/**
 * Keeps one request in flight on each of `connections` keep-alive connections, or sends `perSecond` requests over them.
 * A connection that gets a wrong response, or none in time, counts as failed and is closed.
 * @param onMeasure called at the start and the end of the measurement
 */
export async function load(target: Target, plan: Plan, onMeasure: () => void): Promise<Load> {
  const latencies: number[] = [];
  let tokens = 0;
  let answered = 0;
  const warm = Promise.withResolvers<void>();
  let measuring = false;
  let ending = false;
  let failed = 0;
  let firstFailure: string | undefined;
  const turn = plan.perSecond === undefined ? undefined : pace(plan.perSecond);
  const connections = await target.open(plan.connections, (count) => {
    if (measuring) tokens += count;
  });
  const run = async (connection: Connection, index: number) => {
    try {
      if (plan.stagger) await sleep((plan.stagger * 1_000 * index) / plan.connections);
      for (let count = index; !ending; count++) {
        if (plan.pauseMs) await sleep(plan.pauseMs * Math.random());
        const sentAt = turn ? await turn() : performance.now();
        await connection.exchange(count % READ_ONE_IN === 0);
        if (++answered === plan.warmUpAnswers?.least) warm.resolve();
        if (measuring) latencies.push(performance.now() - sentAt);
      }
    } catch (error) {
      failed += 1;
      firstFailure ??= error instanceof Error ? error.message : String(error);
    } finally {
      connection.close();
    }
  };
  const all = Promise.all(connections.map(run));
  let seconds = 0;
  try {
    const pass = (seconds: number) => sleep(seconds * 1_000, undefined, { signal: plan.signal, ref: false });
    await Promise.race([all, pass(plan.warmUp)]);
    if (plan.warmUpAnswers) await Promise.race([all, warm.promise, pass(plan.warmUpAnswers.mostSeconds - plan.warmUp)]);
    onMeasure();
    measuring = true;
    const from = performance.now();
    await Promise.race([all, pass(plan.measured)]);
    measuring = false;
    seconds = (performance.now() - from) / 1_000;
    onMeasure();
  } finally {
    ending = true;
    await all;
  }
  latencies.sort((a, b) => a - b);
  const quantile = (q: number) => latencies[Math.floor(latencies.length * q)] ?? Number.NaN;
  const answers = latencies.length;
  return { seconds, p50: quantile(0.5), p99: quantile(0.99), answers, tokens, failed, firstFailure };
}

/**
 * Schedules requests at a constant rate. Each call resolves with the time from which the latency of the request counts:
 * the due time if all connections were busy then, so that this wait counts, or the actual time if the timer was late.
 */
function pace(perSecond: number): () => Promise<number> {
  const from = performance.now();
  let turns = 0;
  return async () => {
    const due = from + (turns++ * 1000) / perSecond;
    const wait = due - performance.now();
    if (wait <= 0) return due;
    await sleep(wait);
    return performance.now();
  };
}
