import type { Transform } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import type { Dispatcher } from "undici";
import type { Signal } from "../concurrency/abort.ts";
import { createDecompressor } from "./decompress.ts";
import type { Lane } from "./lanes.ts";
import { ModelError, notSent } from "./port/model-error.ts";

/** A vendor's response. Its headers have arrived. Dispose it when it is no longer needed. */
export interface HttpResponse extends Disposable {
  readonly status: number;
  /** Empty for a success. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /**
   * All text that has arrived since the last read, as soon as there is any; undefined at the end of the body. A failure
   * is a rejected promise.
   * @throws ModelError when the connection breaks or the body is too large; the reason of the request's signal
   */
  read(): string | undefined | Promise<string | undefined>;
  /** Drops the rest of the body. A short rest keeps the connection for the next call, a longer one closes it. */
  finish(): void;
}

/** Characters of unread text above which the socket is paused. */
const HIGH_WATER = 64 * 1024;
/** What may follow the terminal frame before the connection is closed. */
const REST = { bytes: 16 * 1024, ms: 1_000 };

/** Created once, because creating an error with its stack costs more than the rest of an abort. */
const UNREAD = new Error("The response was not read to its end.");

/** One request and its response: undici pushes bytes in, the reader pulls text out. */
export class VendorResponse implements Dispatcher.DispatchHandler, HttpResponse {
  status = 0;
  headers: HttpResponse["headers"] = {};
  /** Waits for the headers; undefined after that. */
  #opening: PromiseWithResolvers<HttpResponse> | undefined;
  /** Undefined until a chunk ends within a character. */
  #decoder: StringDecoder | undefined;
  readonly #maxBytes: number;
  readonly #signal: Signal;
  #controller: Dispatcher.DispatchController | undefined;
  #lane: Lane | undefined;
  /** Set if the vendor compressed its answer. */
  #decompressor: Transform | undefined;
  #received = 0;
  /** Whether all bytes have arrived. A compressed body may not have ended by then. */
  #isReceived = false;
  /** Text that has arrived and has not been read. */
  #text = "";
  #waiting: PromiseWithResolvers<string | undefined> | undefined;
  #isEnded = false;
  #failure: { error: unknown } | undefined;
  /** Bytes dropped since `finish`; undefined before it. */
  #restBytes: number | undefined;
  #restTimer: NodeJS.Timeout | undefined;

  constructor(signal: Signal, maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#signal = signal;
  }

  /** Resolves when the headers have arrived. */
  opened(): Promise<HttpResponse> {
    const opening = Promise.withResolvers<HttpResponse>();
    this.#opening = opening;
    // A failure also rejects a pending read, and the caller awaits only one of the two.
    opening.promise.catch(() => {});
    if (this.#signal.aborted) this.handleEvent();
    else this.#signal.addEventListener("abort", this);
    return opening.promise;
  }

  /** The signal has aborted. */
  handleEvent(): void {
    this.#stop(this.#signal.reason);
  }

  /** Sends the request, and gives its place in the lane back when it has ended. */
  dispatch(request: Dispatcher.DispatchOptions, lane: Lane): void {
    this.#lane = lane;
    lane.pool.dispatch(request, this);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The call was aborted while it waited for a connection.
    if (this.#failure) controller.abort(asError(this.#failure.error));
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    // They hold the received bytes for as long as the response lasts.
    controller.rawHeaders = null;
    if (status < 200) return;
    this.status = status;
    // The headers of a successful response are not needed. Vendors send 20 to 30, which would stay with the stream.
    if (status >= 300) this.headers = headers;
    const encoding = headers["content-encoding"];
    if (encoding !== undefined && encoding !== "identity" && !this.#decompress(String(encoding))) {
      const message = "The vendor compressed its answer in a way that is not supported, although none was asked for.";
      this.#stop(new ModelError(message, { retryable: false }));
      return;
    }
    this.#opening?.resolve(this);
    this.#opening = undefined;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#restBytes !== undefined) {
      this.#restBytes += chunk.length;
      if (this.#restBytes > REST.bytes) this.#stop(UNREAD);
      return;
    }
    if (!this.#decompressor) this.#accept(chunk);
    else if (this.#mayAccept(chunk) && !this.#decompressor.write(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    this.#isReceived = true;
    if (this.#decompressor && this.#restBytes === undefined) this.#decompressor.end();
    else this.#end();
  }

  onResponseError(_: unknown, error: Error): void {
    this.#fail(connectionError(error, this.status === 0));
  }

  read(): string | undefined | Promise<string | undefined> {
    // Text that arrived before a failure is still delivered, because it may contain the terminal frame.
    if (this.#text !== "") {
      const text = this.#take();
      (this.#decompressor ?? this.#controller)?.resume();
      return text;
    }
    if (this.#failure) return Promise.reject(this.#failure.error);
    if (this.#isEnded) return undefined;
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }

  finish(): void {
    if (this.#isEnded || this.#failure) return;
    this.#text = "";
    this.#restBytes = 0;
    this.#decompressor?.destroy();
    if (this.#isReceived) {
      this.#end();
      return;
    }
    this.#restTimer = setTimeout(() => this.#stop(UNREAD), REST.ms).unref();
    this.#controller?.resume();
  }

  [Symbol.dispose](): void {
    if (this.#restBytes === undefined && !this.#isEnded) this.#stop(UNREAD);
  }

  /** @returns false if the encoding is unknown */
  #decompress(encoding: string): boolean {
    this.#decompressor = createDecompressor(encoding)
      ?.on("data", (chunk: Buffer) => this.#accept(chunk))
      .on("end", () => this.#end())
      .on("drain", () => this.#controller?.resume())
      // The bytes are not of this compression, or end too early.
      .on("error", (cause) => {
        const error = new ModelError("The vendor's answer could not be decompressed.", { retryable: true, cause });
        this.#fail(error);
        this.#abort(error);
      });
    return this.#decompressor !== undefined;
  }

  #accept(chunk: Buffer): void {
    if (!this.#mayAccept(chunk)) return;
    this.#text += this.#decode(chunk);
    if (this.#waiting && this.#text !== "") this.#deliver(this.#take());
    else if (this.#text.length > HIGH_WATER) (this.#decompressor ?? this.#controller)?.pause();
  }

  /** Counts bytes. @returns false if they are too many, or no longer needed */
  #mayAccept({ length }: Buffer): boolean {
    this.#received += length;
    if (this.#received <= this.#maxBytes) return !this.#failure;
    const message = `The answer of the vendor is larger than ${this.#maxBytes} bytes.`;
    this.#stop(new ModelError(message, { retryable: false }));
    return false;
  }

  #end(): void {
    if (this.#failure || this.#isEnded) return;
    this.#text += this.#decoder?.end() ?? "";
    this.#isEnded = true;
    this.#release();
    if (this.#waiting) this.#deliver(this.#text === "" ? undefined : this.#take());
  }

  /** Most chunks end with an ASCII character, and need no decoder that keeps the rest of one. */
  #decode(chunk: Buffer): string {
    if (!this.#decoder && (chunk.at(-1) ?? 0) < 0x80) return chunk.toString();
    this.#decoder ??= new StringDecoder("utf8");
    return this.#decoder.write(chunk);
  }

  #take(): string {
    const text = this.#text;
    this.#text = "";
    return text;
  }

  #deliver(text: string | undefined): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve(text);
  }

  /** Drops what was not read, fails the response and closes its connection. */
  #stop(reason: unknown): void {
    this.#text = "";
    this.#fail(reason);
    this.#abort(asError(reason));
  }

  /** Closes the connection, unless it already serves another request. */
  #abort(reason: Error): void {
    if (!this.#isReceived) this.#controller?.abort(reason);
  }

  #fail(error: unknown): void {
    if (this.#failure || this.#isEnded) return;
    this.#failure = { error };
    this.#decompressor?.destroy();
    this.#release();
    this.#opening?.reject(error);
    this.#opening = undefined;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.reject(error);
  }

  #release(): void {
    clearTimeout(this.#restTimer);
    this.#signal.removeEventListener("abort", this);
    if (this.#lane) this.#lane.running -= 1;
    this.#lane = undefined;
  }
}

/** Errors of `connect` that say that this machine has no more files, ports or memory for sockets. */
const OWN_LIMITS: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "EADDRNOTAVAIL", "ENOBUFS", "ENOMEM"]);

/** @param isUnanswered whether no response had begun */
function connectionError(cause: Error, isUnanswered: boolean): ModelError {
  if ("code" in cause && OWN_LIMITS.has(String(cause.code))) return notSent("descriptors", undefined, cause);
  return new ModelError("The connection to the vendor broke.", {
    retryable: true,
    isCongestion: isUnanswered,
    code: "code" in cause ? cause.code : undefined,
    cause,
  });
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error("aborted", { cause: reason });
}
