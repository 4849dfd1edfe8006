import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { bodyText, frame } from "./framing.ts";

export interface Target {
  port: number;
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Text at the end of every right answer's body, found in its last bytes. */
  ending: string;
  /** What is wrong with a body; undefined if nothing is. Asked for a sample of the answers. */
  check(body: string): string | undefined;
}

export interface Plan {
  connections: number;
  /** Seconds before counting begins. */
  warmUp: number;
  /** Seconds that count. */
  measured: number;
  /** Requests to send each second, evenly, whatever the answers do. Undefined: each connection sends the next one after its answer. */
  perSecond?: number;
  signal: AbortSignal;
}

export interface Load {
  /** Whole, right answers per second. */
  rate: number;
  /** Latency from sending a request to the last byte of its answer, in milliseconds. */
  p50: number;
  p99: number;
  answers: number;
  failed: number;
  firstFailure: string | undefined;
}

/** Every answer is checked for its status, its framing and its ending; one in this many is read whole. */
const READ_ONE_IN = 100;
/** Patience with one answer, and with the last answers of a run, in milliseconds. */
const ANSWER_MS = 10_000;
const LAST_CHUNK = Buffer.from("0\r\n\r\n");
/** Bytes at the end of an answer in which its ending must be. */
const TAIL_BYTES = 4096;

/**
 * Keeps `connections` requests in flight for the time of the plan, or sends `perSecond`, each on its own kept-alive connection. A connection that gets a wrong
 * answer, or none in 10 s, counts as failed and stays closed.
 * @param onMeasure called when counting begins and when it ends.
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
 * Gives out turns at an even rate. A turn tells when its request should have been sent: one that had to wait for a free connection counts
 * that wait, one that the timer woke late does not.
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

/** What is wrong with an answer. */
function fault(bytes: Buffer, target: Target, whole: boolean): string | undefined {
  if (bytes.toString("latin1", 9, 12) !== "200")
    return `The answer is ${JSON.stringify(bytes.toString("utf8", 0, 600))}.`;
  if (!bytes.includes(target.ending, Math.max(0, bytes.length - TAIL_BYTES)))
    return `The answer does not end as it should: ${JSON.stringify(bytes.toString("utf8", bytes.length - 300))}.`;
  if (!whole) return undefined;
  const found = frame(bytes);
  if (found?.end !== bytes.length) return "The answer is followed by bytes that do not belong to it.";
  return target.check(bodyText(bytes, found));
}

interface Connection {
  /** Sends a request and resolves with the bytes of its whole answer. */
  exchange(request: Buffer): Promise<Buffer>;
  close(): void;
}

function open(port: number): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ port, host: "127.0.0.1", noDelay: true });
    let parts: Buffer[] = [];
    let length = 0;
    /** Length of the whole answer: 0 until its head is there, Infinity while chunks are still to come. */
    let expected = 0;
    let waiting: PromiseWithResolvers<Buffer> | undefined;

    const fail = (message: string) => {
      socket.destroy();
      reject(new Error(message));
      waiting?.reject(new Error(message));
    };
    socket.setTimeout(ANSWER_MS, () => fail(`There was no answer within ${ANSWER_MS / 1000} s.`));
    socket.on("error", (error) => fail(`The connection failed: ${error.message}.`));
    socket.on("close", () => fail("The server closed the connection before the end of an answer."));
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

/** Whether a segment may be the last of a chunked answer. Seen at a glance, so that a stream of many segments is put together once. */
function mayEndChunks(segment: Buffer): boolean {
  return segment.length < LAST_CHUNK.length || segment.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
}
