import { PACED_SECONDS, SCRIPTS } from "./answer.ts";
import { type Load, load, type Plan, type Target } from "./load.ts";
import type { Server } from "./server.ts";

/** What is measured: kinds of requests, and for RPC two of them. */
export type Kind =
  | "unary"
  | "burst"
  | "paced"
  | "latency"
  | "rpc unary"
  | "rpc paced"
  | "doors unary"
  | "doors tools"
  | "doors burst"
  | "doors paced"
  | "runs"
  | "workers unary"
  | "workers paced"
  | "panel";

/** One contestant in one round. */
export interface Sample extends Load {
  kind: Kind;
  name: string;
  /**
   * Processor time of the server per item, user and system, in microseconds. An item is an answer (unary), a stream of
   * 60 tokens (burst) or a token (paced). Undefined on systems other than Linux.
   */
  cpuMicros: number | undefined;
  /** Heap that the server allocates per item, in bytes; undefined if it does not trace its collections. */
  allocatedBytes: number | undefined;
  /** Items per second. */
  rate: number;
  /** Processor time of load generator and upstream together per second, in seconds. Undefined as above. */
  driverShare: number | undefined;
}

/** A server and the request that it gets in one part. */
export interface Entry {
  name: string;
  server: Server;
  target: Target;
  /** Processes of the server, by default 1. For whole answers, each gets connections and a warm-up of its own. */
  workers?: number;
}

/** Length of the rounds. */
export interface Rounds {
  rounds: number;
  /** Time of a measurement, in seconds. */
  seconds: number;
  upstream: Server;
  signal: AbortSignal;
}

/**
 * Connections of the load generator. With fewer, Portkey does not use its whole core; with more, requests only wait
 * longer.
 */
export const CONNECTIONS = 64;
/** Paced streams that are open at once. */
export const PACED_STREAMS = 300;
/** Tokens per second that the upstream can send in these streams. */
export const PACED_RATE = (PACED_STREAMS * 1_000) / SCRIPTS.paced.intervalMs;
/** Paced streams that are open at once where workers are compared: several times as many as elsewhere. */
export const WORKERS_STREAMS = 1_000;
/** A rate far below the maximum of all servers, to measure the latency that each adds. */
export const LATENCY_RATE = 200;
/**
 * In seconds. V8 still compiles during the first 30,000 requests, so the first round would measure the compiler:
 * 292 µs for an answer that takes 194 µs later. A server that has already been measured needs only a short warm-up.
 * On a slow machine 30,000 take longer than the first warm-up; without them, the server that is slowest looks still
 * slower.
 */
const WARM_UP = { first: 8, later: 0.5 };
const COMPILED = { least: 30_000, mostSeconds: 30 };

/**
 * Measures all entries in each round, in alternating order, so that noise of the machine reaches all of them. Compare
 * the medians of the samples.
 * @throws Error if any response was wrong
 */
export async function takeTurns(kind: Kind, entries: Entry[], how: Rounds): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (let round = 0; round < how.rounds; round++) {
    const order = round % 2 === 0 ? entries : entries.toReversed();
    const results: string[] = [];
    for (const entry of order) {
      const sample = await measure(kind, entry, planOf(kind, round, how, entry.workers), how);
      samples.push(sample);
      results.push(`${entry.name} ${sample.cpuMicros?.toFixed(1) ?? "–"} µs`);
    }
    console.log(`  ${kind}, round ${round + 1} of ${how.rounds}: ${results.join(", ")}`);
  }
  return samples;
}

function planOf(kind: Kind, round: number, { seconds, signal }: Rounds, workers = 1): Plan {
  const warmUp = round === 0 ? WARM_UP.first : WARM_UP.later;
  const plan = { connections: CONNECTIONS * workers, warmUp, measured: seconds, signal };
  if (kind === "latency") return { ...plan, perSecond: LATENCY_RATE };
  const warmUpAnswers = { least: COMPILED.least * workers, mostSeconds: COMPILED.mostSeconds * workers };
  if (!kind.endsWith("paced")) return round === 0 ? { ...plan, warmUpAnswers } : plan;
  const connections = kind === "workers paced" ? WORKERS_STREAMS : PACED_STREAMS;
  // The streams start evenly over the length of one, each at a random time within the interval of its tokens. Otherwise
  // tokens of many streams arrive together where a server ends each answer at once, which spares it wake-ups: a token
  // takes 45 µs of the ungoverned service then, and 52 µs in this way.
  const pauseMs = SCRIPTS.paced.intervalMs;
  return { ...plan, connections, stagger: PACED_SECONDS, pauseMs, warmUp: PACED_SECONDS + WARM_UP.later };
}

/** Measures one entry once. @throws Error if any response was wrong */
export async function measure(kind: Kind, entry: Entry, plan: Plan, { upstream }: Rounds): Promise<Sample> {
  const { name, server, target } = entry;
  const marks: Array<Record<"server" | "upstream" | "allocated", number | undefined> & { own: number }> = [];
  const result = await load(target, plan, () => {
    const { user, system } = process.cpuUsage();
    const allocated = server.allocatedBytes();
    marks.push({ server: server.cpuMicros(), upstream: upstream.cpuMicros(), own: user + system, allocated });
  });
  const { answers, tokens, failed, firstFailure, seconds } = result;
  if (failed > 0 || answers === 0) {
    throw new Error(
      `${name}, ${target.label}: ${failed} requests failed, ${answers} did not. First failure: ${firstFailure}`,
    );
  }
  const items = itemsOf(kind, answers, tokens);
  const [from, to] = marks;
  const used = difference(to?.server, from?.server);
  const allocated = difference(to?.allocated, from?.allocated);
  const upstreamUsed = difference(to?.upstream, from?.upstream);
  const own = (to?.own ?? 0) - (from?.own ?? 0);
  return {
    ...result,
    kind,
    name,
    rate: items / seconds,
    cpuMicros: used === undefined ? undefined : used / items,
    allocatedBytes: allocated === undefined ? undefined : allocated / items,
    driverShare: upstreamUsed === undefined ? undefined : (upstreamUsed + own) / (seconds * 1e6),
  };
}

/**
 * Streams are counted by their tokens, because many are incomplete at the start and the end of a measurement. Those of
 * doors are counted by their ends, because some doors repeat the whole text there.
 */
function itemsOf(kind: Kind, answers: number, tokens: number): number {
  if (kind === "doors paced") return answers * SCRIPTS.paced.tokens.length;
  if (kind === "burst") return tokens / SCRIPTS.burst.tokens.length;
  return kind.endsWith("paced") ? tokens : answers;
}

function difference(to: number | undefined, from: number | undefined): number | undefined {
  return to === undefined || from === undefined ? undefined : to - from;
}
