import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { bodyText, frame } from "./framing.ts";

/** A server under load, and the request that it gets. */
export interface Target {
  port: number;
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Text in the last bytes of every correct response body. */
  ending: string;
  /** Checks a complete body. @returns what is wrong; undefined if the body is correct */
  check(body: string): string | undefined;
}

export interface Plan {
  connections: number;
  /** Time before the measurement, in seconds. */
  warmUp: number;
  /** Time of the measurement, in seconds. */
  measured: number;
  /**
   * Constant request rate (open loop). Undefined: each connection sends its next request after a response (closed
   * loop).
   */
  perSecond?: number;
  signal: AbortSignal;
}

export interface Load {
  /** Complete, correct responses per second. */
  rate: number;
  /** Time from sending a request to the last byte of its response, in milliseconds. */
  p50: number;
  p99: number;
  answers: number;
  failed: number;
  firstFailure: string | undefined;
}

/** Status, framing and ending of every response are checked. The complete body is checked in one of this many. */
const READ_ONE_IN = 100;
/** Timeout of a response, in milliseconds. */
const ANSWER_MS = 10_000;
const LAST_CHUNK = Buffer.from("0\r\n\r\n");
/** Bytes at the end of a response that must contain the ending. */
const TAIL_BYTES = 4096;

/**
 * Keeps one request in flight on each of `connections` keep-alive connections, or sends `perSecond` requests over them.
 * A connection that gets a wrong response, or none within 10 s, counts as failed and is closed.
 * @param onMeasure called at the start and the end of the measurement
 */
export async function load(target: Target, plan: Plan, onMeasure: () => void = () => undefined): Promise<Load> {
  const request = requestBytes(target);
  const latencies: number[] = [];
  let measuring = false;
  let ending = false;
  let failed = 0;
  let firstFailure: string | undefined;
  const turn = plan.perSecond === undefined ? undefined : pace(plan.perSecond);

  const runs = Array.from({ length: plan.connections }, async () => {
    const connection = await open(target.port);
    try {
      for (let count = 0; !ending; count++) {
        const sentAt = turn ? await turn() : performance.now();
        const bytes = await connection.exchange(request);
        const wrong = fault(bytes, target, count % READ_ONE_IN === 0);
        if (wrong) throw new Error(wrong);
        if (measuring) latencies.push(performance.now() - sentAt);
      }
    } catch (error) {
      failed += 1;
      firstFailure ??= error instanceof Error ? error.message : String(error);
    } finally {
      connection.close();
    }
  });
  const all = Promise.allSettled(runs);
  let seconds = 0;
  try {
    await Promise.race([all, sleep(plan.warmUp * 1000, undefined, { signal: plan.signal, ref: false })]);
    onMeasure();
    measuring = true;
    const from = performance.now();
    await Promise.race([all, sleep(plan.measured * 1000, undefined, { signal: plan.signal, ref: false })]);
    measuring = false;
    seconds = (performance.now() - from) / 1000;
    onMeasure();
  } finally {
    ending = true;
    await all;
  }
  for (const run of await all) {
    if (run.status === "fulfilled") continue;
    failed += 1;
    firstFailure ??= String(run.reason);
  }
  latencies.sort((a, b) => a - b);
  const quantile = (q: number) => latencies[Math.floor(latencies.length * q)] ?? Number.NaN;
  return {
    rate: latencies.length / seconds,
    p50: quantile(0.5),
    p99: quantile(0.99),
    answers: latencies.length,
    failed,
    firstFailure,
  };
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

function requestBytes({ port, path, headers, body }: Target): Buffer {
  const lines = Object.entries({
    Host: `127.0.0.1:${port}`,
    "Content-Type": "application/json",
    "Content-Length": String(Buffer.byteLength(body)),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
}

/** Checks a response. @returns what is wrong; undefined if it is correct */
function fault(bytes: Buffer, target: Target, readBody: boolean): string | undefined {
  if (bytes.toString("latin1", 9, 12) !== "200")
    return `The response is ${JSON.stringify(bytes.toString("utf8", 0, 600))}.`;
  if (!bytes.includes(target.ending, Math.max(0, bytes.length - TAIL_BYTES)))
    return `The response has a wrong ending: ${JSON.stringify(bytes.toString("utf8", bytes.length - 300))}.`;
  if (!readBody) return undefined;
  const found = frame(bytes);
  if (found?.end !== bytes.length) return "There are more bytes after the end of the response.";
  return target.check(bodyText(bytes, found));
}

interface Connection {
  /** Sends a request and resolves with the bytes of the complete response. */
  exchange(request: Buffer): Promise<Buffer>;
  close(): void;
}

function open(port: number): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ port, host: "127.0.0.1", noDelay: true });
    let parts: Buffer[] = [];
    let length = 0;
    /** Length of the response: 0 until its headers are complete, Infinity while chunks are missing. */
    let expected = 0;
    let waiting: PromiseWithResolvers<Buffer> | undefined;

    const fail = (message: string) => {
      socket.destroy();
      reject(new Error(message));
      waiting?.reject(new Error(message));
    };
    socket.setTimeout(ANSWER_MS, () => fail(`There was no response within ${ANSWER_MS / 1000} s.`));
    socket.on("error", (error) => fail(`The connection failed: ${error.message}.`));
    socket.on("close", () => fail("The server closed the connection before the end of a response."));
    socket.on("connect", () =>
      resolve({
        exchange(request) {
          waiting = Promise.withResolvers();
          socket.write(request);
          return waiting.promise;
        },
        close: () => socket.destroy(),
      }),
    );
    socket.on("data", (data: Buffer) => {
      parts.push(data);
      length += data.length;
      if (expected === Infinity ? !mayEndChunks(data) : length < expected) return;
      const bytes = parts.length === 1 ? data : Buffer.concat(parts, length);
      expected = frame(bytes)?.end ?? 0;
      if (expected === 0 || length < expected) return;
      parts = [];
      length = 0;
      expected = 0;
      waiting?.resolve(bytes);
    });
  });
}

/**
 * Whether a segment may be the last one of a chunked response. A cheap test, so that segments are concatenated only
 * once.
 */
function mayEndChunks(segment: Buffer): boolean {
  return segment.length < LAST_CHUNK.length || segment.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
}
