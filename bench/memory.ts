import { setTimeout as sleep } from "node:timers/promises";
import type { Contestant, PanelContestant } from "./environment.ts";
import type { Connection } from "./load.ts";
import { openFilesLimit } from "./server.ts";

/** Resident memory of one server with open streams. */
export interface MemoryUse {
  name: string;
  /** Streams that the load generator requested. */
  streams: number;
  /** Streams that had their first token. */
  opened: number;
  /** Growth of the resident memory since the server was idle, divided by `streams`. Undefined if not all opened. */
  bytesPerStream: number | undefined;
}

/** Numbers of open streams at which the memory is read. */
export const STREAM_COUNTS = [1_000, 5_000] as const;
/** Streams before the first reading, so that code and caches do not count as memory of streams. */
const WARM_UP_STREAMS = 100;
/** Streams that are opened at once. */
const STEP = 100;
/** Longest wait for the first tokens of a step, in milliseconds. */
const FIRST_TOKENS_MS = 10_000;
/** Time without any traffic before a reading, in milliseconds. The garbage collector can run in it. */
const SETTLE_MS = 3_000;
/** Open files of a server besides its streams. */
const OTHER_FILES = 200;

/**
 * Opens streams that stay open and silent after one token, and reads the memory of a newly started server at each
 * number of streams. Leaves numbers out for which the server may not open enough files, and prints a message.
 */
export async function measureMemory(start: () => Promise<Contestant>, signal: AbortSignal): Promise<MemoryUse[]> {
  await using contestant = await start();
  const { name, server } = contestant;
  await using streams = new HeldStreams(contestant);
  await streams.open(WARM_UP_STREAMS, signal);
  await streams.closeAll();
  await sleep(SETTLE_MS, undefined, { signal });
  const idle = server.residentBytes();
  const results: MemoryUse[] = [];
  for (const count of STREAM_COUNTS) {
    // A server needs two connections for a stream.
    if (2 * count + OTHER_FILES > openFilesLimit()) {
      console.log(`  ${count} streams are left out: the limit of open files (ulimit -n) is ${openFilesLimit()}.`);
      break;
    }
    const opened = await streams.open(count, signal);
    await sleep(SETTLE_MS, undefined, { signal });
    const now = server.residentBytes();
    const known = opened === count && now !== undefined && idle !== undefined;
    const bytesPerStream = known ? (now - idle) / count : undefined;
    results.push({ name, streams: count, opened, bytesPerStream });
    const size = bytesPerStream === undefined ? "not measured" : `${(bytesPerStream / 1_024).toFixed(1)} KB each`;
    console.log(`  ${name}: ${opened} of ${count} streams opened, ${size}`);
    if (opened < count) break;
  }
  return results;
}

/** Panels that wait for their drafts when the memory is read. */
export const WAITING_PANELS = 1_000;

/** Reads the memory of a newly started server without requests, and while panels of three wait for their drafts. */
export async function measurePanelMemory(
  start: () => Promise<PanelContestant>,
  signal: AbortSignal,
): Promise<MemoryUse> {
  await using panel = await start();
  const open: Connection[] = [];
  const wait = async (count: number) => {
    while (open.length < count) {
      const added = await panel.target("silent").open(STEP, () => undefined);
      open.push(...added);
      // The answers never come; the requests fail when their connections are closed.
      for (const connection of added) connection.exchange(false).catch(() => undefined);
      const deadline = performance.now() + FIRST_TOKENS_MS;
      while ((await panel.runningCalls()) < 3 * open.length && performance.now() < deadline)
        await sleep(50, undefined, { signal });
    }
    await sleep(SETTLE_MS, undefined, { signal });
  };
  const close = () => {
    for (const connection of open.splice(0)) connection.close();
  };
  await wait(WARM_UP_STREAMS);
  close();
  await sleep(SETTLE_MS, undefined, { signal });
  const idle = panel.server.residentBytes();
  await wait(WAITING_PANELS);
  const now = panel.server.residentBytes();
  const opened = Math.floor((await panel.runningCalls()) / 3);
  close();
  const isKnown = now !== undefined && idle !== undefined && opened === WAITING_PANELS;
  const bytesPerStream = isKnown ? (now - idle) / WAITING_PANELS : undefined;
  console.log(`  ${opened} panels wait, ${((bytesPerStream ?? Number.NaN) / 1_024).toFixed(1)} KB each`);
  return { name: "panel", streams: WAITING_PANELS, opened, bytesPerStream };
}

/** Streams of one server that stay open. */
class HeldStreams implements AsyncDisposable {
  readonly #contestant: Contestant;
  #connections: Connection[] = [];
  #tokens = 0;

  constructor(contestant: Contestant) {
    this.#contestant = contestant;
  }

  /** Opens streams until there are `count`. @returns the number of streams that had their first token */
  async open(count: number, signal: AbortSignal): Promise<number> {
    while (this.#connections.length < count) {
      const missing = Math.min(STEP, count - this.#connections.length);
      const target = this.#contestant.target("held");
      const added = await target.open(missing, (tokens) => {
        this.#tokens += tokens;
      });
      this.#connections.push(...added);
      // The streams never end; they fail when they are closed.
      for (const connection of added) connection.exchange(false).catch(() => undefined);
      const deadline = performance.now() + FIRST_TOKENS_MS;
      while (this.#tokens < this.#connections.length) {
        if (performance.now() > deadline) return this.#tokens;
        await sleep(10, undefined, { signal });
      }
    }
    return this.#tokens;
  }

  async closeAll(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    this.#connections = [];
    this.#tokens = 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.closeAll();
  }
}
