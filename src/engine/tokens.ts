import { Worker } from "node:worker_threads";
import { Failure } from "../failure.ts";
import { Encoding } from "./bpe.ts";
import { TokenMeter } from "./token-meter.ts";

/** The service's own count of tokens: o200k_base, with long runs cut so that no text is slow (see `Encoding`). */
export interface Tokenizer {
  /** Tokens of a text, counted here and now: 0.1 ms per 1,000 characters of English, at most 0.8 ms of any text. */
  count(text: string): number;
  /**
   * The same count without holding up the event loop: a long text is counted in a worker thread. Handing it over takes
   * 1 ms per million characters; texts take turns there, so that a huge one does not hold up the others.
   * @throws Failure `overloaded` while too much text is waiting, and after `close`; `internal` if the worker died.
   */
  countAsync(text: string): Promise<number>;
  /** The text of the first tokens, at most `tokens` of them, without a character that the last one leaves incomplete. */
  prefix(text: string, tokens: number): string;
  /** Counts an answer while it is streamed and ends it at `cap` tokens. */
  meter(cap: number): TokenMeter;
  /** Stops the worker; counts that still run are refused. */
  close(): Promise<void>;
}

/** Longest text, in UTF-16 units, that `countAsync` counts on the caller's thread: 1 ms of English, 6 ms of Chinese. */
const INLINE_LENGTH = 8192;

/** Most text that may wait for the worker, in UTF-16 units: two of the largest request bodies. */
const MAX_WAITING = 2 * 67_108_864;

/**
 * Loads the vocabulary (0.13 s), so make one per process. The worker is started by the first long text.
 * @param script The worker's program; another one only in tests.
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

interface Waiting {
  length: number;
  resolve(tokens: number): void;
  reject(error: Failure): void;
}

/** The thread that runs `token-worker.ts`: started when needed, and again after it died. */
class CountingWorker {
  readonly #script: URL;
  #thread: Worker | undefined;
  readonly #waiting = new Map<number, Waiting>();
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
    this.#waiting.set(id, { length: text.length, resolve, reject });
    this.#length += text.length;
    // Only a count that someone waits for keeps the process alive.
    this.#thread.ref();
    this.#thread.postMessage({ id, text });
    return promise;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#thread?.terminate();
  }

  #start(): Worker {
    // The limit turns a lack of memory into the death of the thread instead of the process.
    const thread = new Worker(this.#script, { resourceLimits: { maxOldGenerationSizeMb: 1024 } });
    let cause: unknown;
    thread.on("message", ({ id, tokens }: { id: number; tokens: number }) => this.#take(id)?.resolve(tokens));
    thread.on("error", (error) => {
      cause = error;
    });
    thread.on("exit", () => {
      this.#thread = undefined;
      const failure = this.#closed ? new Failure("overloaded") : new Failure("internal", { cause });
      for (const id of [...this.#waiting.keys()]) this.#take(id)?.reject(failure);
    });
    return thread;
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    this.#length -= waiting?.length ?? 0;
    if (this.#waiting.size === 0) this.#thread?.unref();
    return waiting;
  }
}
