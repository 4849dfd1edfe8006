import { fstatSync, write, writeSync } from "node:fs";
import { platform } from "node:os";

/** Longest time that a line waits for others, in milliseconds. */
const BATCH_MS = 5;
/** Characters that are written without waiting for more. */
const BATCH_SIZE = 64 * 1024;
/** Characters that may wait for a slow reader: two seconds of a busy replica. */
const MAX_WAITING = 4 * 1024 * 1024;
/** Time to the next try when the reader takes nothing, in milliseconds. */
const RETRY_MS = 50;
/** Time between two tries of `flush`, in milliseconds. */
const FLUSH_RETRY_MS = 5;

const NOTHING = Buffer.alloc(0);
/** Never changes: waiting for it is a pause without the event loop. */
const PAUSE = new Int32Array(new SharedArrayBuffer(4));

export interface LogOutputOptions {
  /** Called when the reader takes lines again after some were dropped, with their number. */
  onDropped?: (lines: number) => void;
  /** Called when a write fails, and not again until one has succeeded. */
  onError?: (error: unknown) => void;
}

/**
 * Writes log lines in batches and never waits for their reader. Lines that it does not take wait in memory, up to about
 * 4 MB; further lines are dropped. After a write that failed, the lines are kept and written again.
 */
export class LogOutput {
  readonly #fd: number;
  /** Whether a write takes what fits and returns at once. Files and terminals are written in another thread. */
  readonly #isNonBlocking: boolean;
  readonly #options: LogOutputOptions;
  /** Lines that are not in the batch. */
  #lines = "";
  /** Rest of the bytes that are being written. */
  #batch: Buffer = NOTHING;
  #maxWaiting = MAX_WAITING;
  #timer: NodeJS.Timeout | undefined;
  /** Whether a write is under way, or is tried again later. */
  #isBlocked = false;
  #isFailing = false;
  #dropped = 0;
  #unreported = 0;

  /** @param stream standard error as a stream: Node has set its descriptor to non-blocking if it is a pipe or socket */
  constructor({ fd }: { readonly fd: number }, options: LogOutputOptions = {}) {
    const kind = fstatSync(fd);
    this.#fd = fd;
    this.#isNonBlocking = (kind.isFIFO() || kind.isSocket()) && platform() !== "win32";
    this.#options = options;
  }

  /** Number of lines that were dropped because their reader was too slow. */
  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    if (this.#lines.length + this.#batch.length + line.length > this.#maxWaiting) {
      this.#dropped += 1;
      this.#unreported += 1;
      return;
    }
    this.#lines += line;
    if (!this.#isBlocked) this.#schedule();
  }

  /**
   * Writes all lines at the end of the process, and waits at most `ms` for a slow reader. Lines that follow are not
   * dropped.
   */
  flush(ms: number): void {
    this.#maxWaiting = Number.POSITIVE_INFINITY;
    // Node waits for the thread that writes this batch before it exits.
    if (this.#isBlocked && !this.#isNonBlocking && !this.#timer) this.#batch = NOTHING;
    const until = performance.now() + ms;
    while (this.#fillBatch()) {
      try {
        this.#advance(writeSync(this.#fd, this.#batch));
      } catch (error) {
        if (!isFull(error) || performance.now() >= until) return;
        Atomics.wait(PAUSE, 0, 0, FLUSH_RETRY_MS);
      }
    }
  }

  #schedule(): void {
    if (this.#lines.length + this.#batch.length >= BATCH_SIZE) this.#send();
    else if (this.#lines !== "" || this.#batch.length > 0) this.#timer ??= setTimeout(this.#send, BATCH_MS).unref();
  }

  readonly #send = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isBlocked = false;
    if (!this.#isNonBlocking) {
      if (this.#fillBatch()) this.#writeInThread(this.#batch);
      return;
    }
    try {
      while (this.#fillBatch()) this.#advance(writeSync(this.#fd, this.#batch));
    } catch (error) {
      this.#retry(error);
    }
  };

  #writeInThread(batch: Buffer): void {
    this.#isBlocked = true;
    write(this.#fd, batch, (error, written) => {
      // Flushed in the meantime.
      if (batch !== this.#batch) return;
      if (error) {
        this.#retry(error);
        return;
      }
      this.#isBlocked = false;
      this.#advance(written);
      this.#schedule();
    });
  }

  /** Returns whether there is anything to write. */
  #fillBatch(): boolean {
    if (this.#batch.length === 0) {
      this.#batch = Buffer.from(this.#lines);
      this.#lines = "";
    }
    return this.#batch.length > 0;
  }

  #advance(written: number): void {
    this.#batch = this.#batch.subarray(written);
    this.#isFailing = false;
    if (this.#batch.length > 0 || this.#unreported === 0) return;
    const lines = this.#unreported;
    this.#unreported = 0;
    this.#options.onDropped?.(lines);
  }

  #retry(error: unknown): void {
    this.#isBlocked = true;
    this.#timer = setTimeout(this.#send, RETRY_MS).unref();
    if (isFull(error) || this.#isFailing) return;
    this.#isFailing = true;
    this.#options.onError?.(error);
  }
}

/** Whether a pipe takes nothing at present. */
function isFull(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EAGAIN";
}
