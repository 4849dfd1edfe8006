import cluster, { type Worker } from "node:cluster";
import { setTimeout as sleep } from "node:timers/promises";
import type { ProcessLog } from "../../telemetry/log.ts";
import { type FromPrimary, type FromWorker, PLACE_VARIABLE, REPLACES_VARIABLE, type WorkerReady } from "./messages.ts";
import { createWorkerMetrics } from "./metrics.ts";

/** Age from which a worker that ends is replaced at once, in milliseconds. */
const HEALTHY_MS = 10_000;

/** First and longest pause before a younger worker is replaced, in milliseconds. Each is twice the one before. */
const PAUSE_MS = { first: 1_000, longest: 30_000 };

/** Longest line of a worker's log that is kept in one piece, in characters. */
const MAX_LINE = 1024 * 1024;

interface WorkersOptions {
  /** The file that each worker runs. */
  readonly exec: string;
  readonly count: number;
  /** Environment of the workers, besides that of this process. Undefined removes a variable. */
  readonly env: Readonly<Record<string, string | number | undefined>>;
}

/** How a process ended: one of code and signal is set. */
interface End {
  readonly code: number | null;
  readonly signal: string | null;
  /** Why its start has failed, if it has said so. */
  readonly reason?: string | undefined;
}

/** Creates the workers, one process each; one that ends is replaced. `listen.ts` says how they share a port. */
export function createWorkers({ exec, count, env }: WorkersOptions, { log, output }: ProcessLog) {
  const running = new Map<number, Worker>();
  const ready = new Map<number, WorkerReady>();
  const allReady = Promise.withResolvers<void>();
  const stopping = new AbortController();
  const metrics = createWorkerMetrics(
    () => [...running.keys()],
    (place, id) => send(running.get(place), { type: "snapshot", id }),
  );
  let unclean: End | undefined;
  let places: Promise<void>[] = [];

  function receive(place: number, worker: Worker, message: FromWorker): void {
    if (message.type === "snapshot") metrics.receive(place, message.id, message.metrics);
    else if (message.type === "collect") {
      const answer = (text?: string) => send(worker, { type: "collected", id: message.id, text });
      metrics.text().then(answer, () => answer());
    } else if (message.type === "ready" && ready.size < count && ready.set(place, message.ready).size === count) {
      sendToAll(running, { type: "all_ready" });
      allReady.resolve();
    }
  }

  async function runWorker(place: number): Promise<End> {
    const replaces = ready.size === count ? 1 : undefined;
    const worker = fork(exec, { ...env, [PLACE_VARIABLE]: place, [REPLACES_VARIABLE]: replaces }, output);
    running.set(place, worker);
    worker.on("message", (message: FromWorker) => receive(place, worker, message));
    return endOf(worker).finally(() => {
      running.delete(place);
      metrics.ended(place);
    });
  }

  /** Keeps one place taken. @throws Error when its worker ends before all workers were ready */
  async function keepPlace(place: number): Promise<void> {
    const { signal } = stopping;
    for (let pause = 0; !signal.aborted; ) {
      const since = performance.now();
      const end = await runWorker(place);
      if (signal.aborted) {
        if (end.code !== 0 && end.signal !== "SIGTERM") unclean = end;
        return;
      }
      if (ready.size < count) throw new Error(end.reason ?? `A worker ended at its start (${end.signal ?? end.code}).`);
      pause = performance.now() - since < HEALTHY_MS ? nextPause(pause) : 0;
      log.error({ worker: place, ...end, pause_ms: pause }, "a worker has ended and will be replaced");
      await sleep(pause, undefined, { signal }).catch(() => undefined);
    }
  }

  return {
    /** Starts all workers. @returns what each has reported when all are ready. @throws Error of one's start */
    async start(): Promise<readonly WorkerReady[]> {
      places = Array.from({ length: count }, (_, i) => keepPlace(i + 1));
      await Promise.race([allReady.promise, Promise.all(places)]);
      return [...ready.values()];
    },
    reload: () => sendToAll(running, { type: "reload" }),
    /** Stops all workers: each drains. Resolves when all have ended. @throws Error when one did not stop cleanly */
    async stop(): Promise<void> {
      stopping.abort();
      for (const worker of running.values()) worker.process.kill("SIGTERM");
      await Promise.allSettled(places);
      if (unclean) throw new Error(`A worker ended with ${unclean.signal ?? `code ${unclean.code}`}.`);
    },
  };
}

/** Starts a worker whose standard error becomes part of the log. */
function fork(exec: string, env: object, output: ProcessLog["output"]): Worker {
  cluster.setupPrimary({ exec, stdio: ["ignore", "inherit", "pipe", "ipc"] });
  const worker = cluster.fork(env);
  forwardLines(worker, (lines) => output.write(lines));
  return worker;
}

function nextPause(pause: number): number {
  return Math.min(Math.max(pause * 2, PAUSE_MS.first), PAUSE_MS.longest);
}

/** Resolves when a worker has ended and all of its output was read, or could not be started. */
function endOf(worker: Worker): Promise<End> {
  let reason: string | undefined;
  worker.on("message", (message: FromWorker) => {
    if (message.type === "failed") reason = message.message;
  });
  return new Promise((resolve) => {
    worker.process.once("close", (code, signal) => resolve({ code, signal, reason }));
    worker.on("error", () => {
      if (worker.process.pid === undefined) resolve({ code: 1, signal: null });
    });
  });
}

function send(worker: Worker | undefined, message: FromPrimary): void {
  // A worker that ends does not get its last messages.
  if (worker?.isConnected()) worker.send(message, () => undefined);
}

function sendToAll(workers: ReadonlyMap<number, Worker>, message: FromPrimary): void {
  for (const worker of workers.values()) send(worker, message);
}

/** Passes on the lines that a worker writes to standard error. Whole lines, so that those of several do not mix. */
function forwardLines(worker: Worker, write: (lines: string) => void): void {
  const { stderr } = worker.process;
  if (!stderr) return;
  let rest = "";
  stderr.setEncoding("utf8");
  stderr.on("data", (text: string) => {
    rest += text;
    const end = rest.length > MAX_LINE ? rest.length : rest.lastIndexOf("\n") + 1;
    if (end === 0) return;
    write(rest.slice(0, end));
    rest = rest.slice(end);
  });
  stderr.on("close", () => rest !== "" && write(`${rest}\n`));
}
