import { Worker } from "node:worker_threads";
import { Failure } from "../failure.ts";
import { Encoding } from "./bpe.ts";
import { TokenMeter } from "./token-meter.ts";

/** Counts tokens by o200k_base with a bound on long runs, so that every text takes linear time (see `Encoding`). */
export interface Tokenizer {
  /** Counts synchronously: 1,000 characters take 0.1 ms of English and at most 0.8 ms of any text. */
  count(text: string): number;
  /**
   * The same count without blocking the event loop: a worker thread counts long texts, in turns, so that a huge text
   * does not delay the others.
   * @throws Failure `overloaded` while too much text is waiting, and after `close`; `internal` if the worker died.
   */
  countAsync(text: string): Promise<number>;
  /** The text of the first `tokens` tokens, without a character that the last token leaves incomplete. */
  prefix(text: string, tokens: number): string;
  /** Counts a streamed answer and cuts it at `cap` tokens. */
  meter(cap: number): TokenMeter;
  /** Stops the worker. Running counts fail. */
  close(): Promise<void>;
}

/** Longest text that `countAsync` counts on the caller's thread, in UTF-16 units; it takes 1 ms of English. */
const INLINE_LENGTH = 8192;

/** Most text that may wait for the worker, in UTF-16 units: two request bodies of maximum size. */
const MAX_WAITING = 2 * 67_108_864;

/**
 * Create one per process, because loading the vocabulary takes 0.13 s. The first long text starts the worker.
 * @param script the worker's program; for tests
 */
export function createTokenizer(script = new URL("./token-worker.ts", import.meta.url)): Tokenizer {
  const encoding = new Encoding();
  const worker = new CountingWorker(script);
  const meter = (cap: number) => new TokenMeter(encoding, cap);
  return {
    count: (text) => encoding.count(text),
    countAsync: async (text) => (text.length <= INLINE_LENGTH ? encoding.count(text) : worker.count(text)),
    prefix: (text, tokens) => {
      const prefix = meter(tokens);
      return prefix.push(text) + prefix.flush();
    },
    meter,
    close: () => worker.close(),
  };
}

interface Pending {
  length: number;
  resolve(tokens: number): void;
  reject(error: Failure): void;
}

/** Runs `token-worker.ts` in a thread, which starts on demand and again after a crash. */
class CountingWorker {
  readonly #script: URL;
  #thread: Worker | undefined;
  readonly #pending = new Map<number, Pending>();
  #length = 0;
  #lastId = 0;
  #closed = false;

  constructor(script: URL) {
    this.#script = script;
  }

  count(text: string): Promise<number> {
    if (this.#closed || this.#length + text.length > MAX_WAITING) {
      throw new Failure("overloaded", { retryAfterMs: 1000 });
    }
    this.#thread ??= this.#start();
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    this.#pending.set(id, { length: text.length, resolve, reject });
    this.#length += text.length;
    // The thread keeps the process alive only while a count is pending.
    this.#thread.ref();
    this.#thread.postMessage({ id, text });
    return promise;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#thread?.terminate();
  }

  #start(): Worker {
    // With a limit, running out of memory ends the thread and not the process.
    const thread = new Worker(this.#script, { resourceLimits: { maxOldGenerationSizeMb: 1024 } });
    let cause: unknown;
    thread.on("message", ({ id, tokens }: { id: number; tokens: number }) => this.#take(id)?.resolve(tokens));
    thread.on("error", (error) => {
      cause = error;
    });
    thread.on("exit", () => {
      this.#thread = undefined;
      const failure = this.#closed ? new Failure("overloaded") : new Failure("internal", { cause });
      for (const id of [...this.#pending.keys()]) this.#take(id)?.reject(failure);
    });
    return thread;
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    this.#length -= pending?.length ?? 0;
    if (this.#pending.size === 0) this.#thread?.unref();
    return pending;
  }
}
