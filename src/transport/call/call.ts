import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Message } from "@bufbuild/protobuf";
import type { RateLimit } from "../../admission/rate-limits.ts";
import { LinkedAbort, type Signal } from "../../concurrency/abort.ts";
import { CallerGone } from "../../contract/endings.ts";
import { Failure } from "../../contract/failure.ts";
import { newRequestId } from "../../contract/request-id.ts";
import type { ReadRequest } from "../../generate/read-request.ts";
import type { Facts, RequestContext, Take } from "../../generate/request-context.ts";
import type { BodyHold } from "../../overload/body-budget.ts";
import type { ValueCounter } from "../../overload/value-count.ts";
import type { RequestEnd } from "../../telemetry/telemetry.ts";
import type { BodyForm, Decoded, EventFormat, Head, Reply } from "./format.ts";
import { callerOf, type Identity } from "./identity.ts";
import type { Method } from "./methods.ts";
import type { RateHeaders } from "./rate-headers.ts";
import { type UnknownMembers, unknownNotices } from "./unknown-members.ts";

/** Why a call is aborted whose HTTP/2 stream closes. One for all, because the stack of an error takes time. */
const GONE = new CallerGone();

/** One request of any door, from its arrival to its report. A class, because V8 keeps its members in place. */
export class Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly requestId = newRequestId();
  /** `performance.now()` at arrival. */
  readonly startedAt = performance.now();
  /** Text of the target before and after its `?`. */
  readonly path: string;
  readonly query: string;
  /** Aborts when the connection or the HTTP/2 stream closes, or with the Failure `timed_out` at the deadline. */
  signal: Signal = OPEN;
  /** Names in logs and metrics. `none`: no method was found. */
  transport: RequestEnd["transport"];
  method: RequestEnd["method"] = "none";
  readonly facts: Facts = {};
  /** How replies and failures are written. Undefined until the route is found. */
  format: Format | undefined;
  identity: Identity = NOBODY;
  /** Whether the request may repeat an earlier one, whose answer it then gets. */
  isRepeatable = false;
  /** Members of the body that its message does not have. */
  unknown: Partial<Readonly<UnknownMembers>> = NONE;
  hold: Pick<BodyHold, "release"> | undefined;
  /** Returns the rate limits of the workspace, for a request that they bind. */
  limits: (() => readonly RateLimit[] | undefined) | undefined;
  /** Ends the count of the workspace's open requests. */
  leave: (() => void) | undefined;
  /** The failure of a stream, which its last event has if any was sent. */
  streamFailure: Failure | undefined;
  /** Own signal, where the connection's does not do. */
  #abort: LinkedAbort | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, transport: RequestEnd["transport"]) {
    this.request = request;
    this.response = response;
    this.transport = transport;
    const { path, query } = splitTarget(request.url ?? "");
    this.path = path;
    this.query = query;
  }

  /**
   * Lets the call abort when its response closes.
   * @param closed the signal that aborts it in place of that; see `Connection.closed`
   */
  follow(closed?: Signal): void {
    this.signal = closed ?? this.#ownSignal(undefined);
    if (!closed) this.response.once("close", () => this.#abort?.abort(GONE));
  }

  /** The value of the request header with a lower-case name. */
  header(name: string): string | undefined {
    return this.request.headers[name]?.toString();
  }

  /** Aborts the call after `ms` milliseconds. */
  limit(ms: number): void {
    this.signal = this.#ownSignal(this.signal);
    this.#abort?.abortAfter(ms, () => new Failure("timed_out"));
  }

  /** Whether the caller's deadline has passed. */
  get isLate(): boolean {
    return this.signal.reason instanceof Failure;
  }

  end(): void {
    this.hold?.release();
    this.leave?.();
    this.#abort?.release();
  }

  /** What the use cases need to know of the call. @throws Failure unauthenticated */
  context(): RequestContext {
    const { requestId, signal, startedAt, facts, unknown } = this;
    const key = this.header("idempotency-key");
    const user = this.header("x-chorus-user");
    const tags = this.header("x-chorus-tags");
    return {
      requestId,
      caller: callerOf(this.identity),
      signal,
      startedAt,
      facts,
      notices: unknownNotices(unknown),
      ...(key === undefined ? {} : { idempotencyKey: key }),
      subjects: { ...(user === undefined ? {} : { user }), ...(tags === undefined ? {} : { tags }) },
    };
  }

  #ownSignal(parent: Signal | undefined): Signal {
    this.#abort ??= new LinkedAbort(parent);
    return this.#abort;
  }
}

const OPEN = new LinkedAbort(undefined).signal;
const NOBODY: Identity = {};
const NONE = {};

/** The HTTP/2 stream of a response; undefined for HTTP/1.1. */
export function streamOf(response: ServerResponse): ServerHttp2Stream | undefined {
  return (response as { stream?: ServerHttp2Stream }).stream;
}

/**
 * Splits a request target in origin or absolute form into path and query (RFC 9112, section 3.2). In the path, escapes
 * of characters that mean the same without one are decoded.
 */
function splitTarget(target: string): { path: string; query: string } {
  const origin = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?]*/i, "");
  const at = origin.indexOf("?");
  const path = at < 0 ? origin : origin.slice(0, at);
  return { path: path.includes("%") ? decodePlain(path) : path, query: at < 0 ? "" : origin.slice(at + 1) };
}

/** Unreserved characters (RFC 3986, section 2.3), and the colon, which separates nothing in a path. */
const PLAIN = /[\w.~:-]/;

/** Leaves other escapes as they are: `%2F` is no separator, and no path of the service has one. */
function decodePlain(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (triplet, digits) => {
    const character = String.fromCharCode(Number.parseInt(digits, 16));
    return PLAIN.test(character) ? character : triplet;
  });
}

/** How the requests and the answers of a door are written. */
export interface Format {
  readonly form: BodyForm;
  /** Reads the head of a request: what it says of the body, its deadline, or the request itself. @throws Failure */
  head(call: Call, method: Method): Head;
  /** Counts the values of a body while it arrives. */
  counter(method: Method): ValueCounter;
  /** Decodes a body. @throws Failure */
  decode(body: Uint8Array, method: Method): Decoded<Message>;
  reply(method: Method, message: Message): Reply;
  /** Returns how the events of a streaming method are written. */
  events(method: Method): EventFormat;
  /** Returns headers with the rate limits, beside those of the standard. */
  readonly rateHeaders?: RateHeaders;
  /** Returns headers of every response: names and values in turn. */
  headers?(call: Pick<Call, "requestId" | "unknown">): readonly string[];
  /** Writes the response to a request that failed before its response began. */
  failure(failure: Failure, call: Pick<Call, "requestId">): Reply;
}

/** How failures are written. */
export type FailureFormat = Pick<Format, "failure" | "headers">;

/** What a method makes of a request: its response, or the events of a stream. */
export type Outcome = Promise<Message> | EventStream;

/** Makes the events of a stream one by one, at the pace of `take`. @throws Failure; CallerGone */
export type EventStream = (take: Take) => Promise<void>;

/** Runs a method for a call. It may replace `call.format`. @throws Failure; CallerGone */
export type Run = (decoded: Decoded<Message | ReadRequest>, call: Call) => Outcome;
