import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { LinkedAbort, type Signal } from "../../concurrency/abort.ts";
import { TransientMap, TransientSet } from "../../concurrency/transient.ts";
import { Turns } from "../../concurrency/turns.ts";
import { CallerGone } from "../../contract/endings.ts";
import { Failure } from "../../contract/failure.ts";
import { newRequestId } from "../../contract/request-id.ts";
import { CONNECTIONS, PER_TURN } from "../../overload/bounds.ts";
import { maxHeaderSize } from "./node-http.ts";
import { Pipeline } from "./pipeline.ts";
import { rawResponse } from "./raw-response.ts";

/**
 * Time in which the caller must read a response and close its side, in milliseconds. Closing a connection with unread
 * bytes resets it, and the caller would lose the response.
 */
const LINGER_MS = 1_000;

/**
 * Time in which requests must end whose caller has closed its side, in milliseconds. Most such callers have gone, which
 * only a write shows.
 */
const HALF_CLOSED_MS = 10_000;

/** Who uses a connection, as far as its requests have shown. */
type User = "unknown" | "caller" | "operator";

/** What a listener knows of one connection. */
export interface Connection {
  /**
   * Aborts when the caller has closed the connection or its side of it, or some turns later while many close. It also
   * reaches requests that still wait for their turn on the connection. Undefined for a connection of a server without
   * `trackConnections`.
   */
  readonly closed: Signal | undefined;
  /** Whether the limit was reached when this connection was opened. Requests of callers on it are refused. */
  readonly isExcess: boolean;
  /**
   * Runs a request. One of HTTP/1.1 runs after the responses to earlier requests of the connection have been sent, or
   * never if the connection ends first.
   * @param response over HTTP/1.1
   */
  begin(run: () => void, response?: ServerResponse): void;
  end(): void;
  /** Notes who has sent a request. Call it before the response ends. */
  know(user: User): void;
}

/** Bounds of the connections of one listener. */
export interface ConnectionOptions {
  readonly max: number;
  /** Called when a connection is closed or refused. */
  onShed(cause: "idle_connection" | "connections"): void;
}

/** What Node adds to an error of its parser. */
interface ParseError extends NodeJS.ErrnoException {
  /** The latest bytes of the connection. */
  readonly rawPacket?: Buffer;
}

/** A request line whose target fills the space for all headers. The first bytes of a connection may be missing. */
const TOO_LONG_TARGET = /^[A-Z]* (?:\/|https?:)\S+$/;

const NO_PROXY = "The service is no proxy: it does not support CONNECT. Send the request to a path of the service.";

/** By socket, and by session for HTTP/2, because its requests have no socket. */
const known = new WeakMap<object, Tracked>();

/**
 * Follows the connections of a server. Answers bytes that are not an HTTP request and requests that do not arrive in
 * time, and closes their connections. When too many connections are open, it closes the one that has been idle for
 * longest, of the address that has most of them; those of known callers last, those of operators never. When none is
 * idle, only operators are served on new ones.
 */
export function trackConnections(server: Server, options: ConnectionOptions): void {
  const { max, onShed } = options;
  const table = new Table(options);
  // Otherwise Node closes the connection at once when the caller closes its side. Its types lack this property.
  Object.assign(server, { httpAllowHalfOpen: true });
  // Closed sockets count until the end of the turn.
  server.maxConnections = max + 2 * CONNECTIONS.spare;
  server.on("drop", () => onShed("connections"));
  server.on("connection", (socket) => table.add(socket));
  // Without a listener, Node closes the connection without a response.
  server.on("connect", (_, socket) => known.get(socket)?.refuse(new Failure("not_found", { message: NO_PROXY })));
  server.on("clientError", (error: ParseError, socket) => {
    if (error.code === "ECONNRESET") socket.destroy();
    else known.get(socket)?.refuse(failureOf(error));
  });
}

/** The connection of a request. That of a server without `trackConnections` has no limits. */
export function connectionOf(request: IncomingMessage): Connection {
  const stream = (request as { stream?: { session?: object } }).stream;
  return known.get(stream ? (stream.session ?? stream) : request.socket) ?? UNTRACKED;
}

/** Notes that a socket carries an HTTP/2 session. */
export function joinSession(socket: Socket, session: ServerHttp2Session): void {
  const connection = known.get(socket);
  if (!connection) return;
  connection.session = session;
  known.set(session, connection);
}

/**
 * Runs a listener for each request in its turn on the connection.
 * @param draining whether a connection ends after its current response, because the service stops
 */
export function serveInOrder(listener: RequestListener, draining: () => boolean = () => false): RequestListener {
  return (request, response) => {
    const connection = connectionOf(request);
    const isHttp1 = !("stream" in response);
    const run = () => {
      // A second listener, or one that is called once, would take 0.1 KB. An HTTP/2 stream may close without an end.
      response.on(isHttp1 ? "finish" : "close", () => {
        connection.end();
        if (isHttp1 && draining()) request.socket.destroySoon();
      });
      listener(request, response);
    };
    connection.begin(run, isHttp1 ? response : undefined);
  };
}

/** @throws Failure overloaded when only operators and owners are served on the connection of a request */
export function refuseExcess(request: IncomingMessage, response: ServerResponse): void {
  if (!connectionOf(request).isExcess) return;
  if (request.httpVersionMajor === 1) response.setHeader("Connection", "close");
  throw new Failure("overloaded", {
    message: "The service has no more connections. Send the request again after the stated time.",
  });
}

/** Ends of requests on closed connections, of each address in turn. */
const leaving = new Turns<string>(PER_TURN.left);

/** Shared, because creating a reason costs more than closing a connection. */
const GONE = new CallerGone();

const UNTRACKED: Connection = {
  closed: undefined,
  isExcess: false,
  begin: (run) => run(),
  end() {},
  know() {},
};

/** One for all sockets, because a closure takes memory. */
function onEnd(this: Socket): void {
  known.get(this)?.halfClose();
}

class Table {
  readonly #options: ConnectionOptions;
  /** Connections within the limit, and the others in the order of their start. */
  readonly #open = new TransientSet<Tracked>();
  readonly #excess = new TransientSet<Tracked>();
  /** Idle connections by user and address. In each set, the first has been idle for longest. */
  readonly #idle = {
    unknown: new TransientMap<string, TransientSet<Tracked>>(),
    caller: new TransientMap<string, TransientSet<Tracked>>(),
  };

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  add(socket: Socket): void {
    const { max, onShed } = this.#options;
    const isExcess = this.#open.size >= max && !this.#closeIdle();
    if (isExcess) {
      onShed("connections");
      if (this.#excess.size >= CONNECTIONS.spare) this.#closeExcess();
    }
    const connection = new Tracked(socket, isExcess, this);
    (isExcess ? this.#excess : this.#open).add(connection);
    known.set(socket, connection);
    // `once` would hold 0.1 KB more, and the events come once.
    socket.on("close", () => this.#remove(connection));
    socket.on("end", onEnd);
  }

  rest(connection: Tracked): void {
    const idle = connection.user === "operator" ? undefined : this.#idle[connection.user];
    const known = idle?.get(connection.address);
    const those = known ?? new TransientSet<Tracked>();
    those.add(connection);
    if (!known) idle?.set(connection.address, those);
  }

  wake(connection: Tracked): void {
    const idle = connection.user === "operator" ? undefined : this.#idle[connection.user];
    const those = idle?.get(connection.address);
    if (those?.delete(connection) && those.size === 0) idle?.delete(connection.address);
  }

  #closeIdle(): boolean {
    let most: TransientSet<Tracked> | undefined;
    const idle = this.#idle.unknown.size > 0 ? this.#idle.unknown : this.#idle.caller;
    for (const those of idle.values()) if (!most || those.size > most.size) most = those;
    const [oldest] = most ?? [];
    if (!oldest) return false;
    this.#options.onShed("idle_connection");
    this.#close(oldest);
    return true;
  }

  #closeExcess(): void {
    for (const connection of this.#excess) {
      if (connection.user === "operator") continue;
      this.#close(connection);
      return;
    }
  }

  #close(connection: Tracked): void {
    this.#remove(connection);
    // Tells the caller which of its requests were not served.
    if (connection.session) connection.session.destroy();
    else connection.socket.destroy();
  }

  #remove(connection: Tracked): void {
    this.#open.delete(connection);
    this.#excess.delete(connection);
    connection.close();
  }
}

class Tracked implements Connection {
  readonly socket: Socket;
  readonly isExcess: boolean;
  /** Kept, because a closed socket has none. */
  readonly address: string;
  session: ServerHttp2Session | undefined;
  /** The latest response, over HTTP/1.1. */
  response: ServerResponse | undefined;
  user: User = "unknown";
  readonly #abort = new LinkedAbort(undefined);
  readonly #table: Table;
  #open = 0;
  /** Requests that wait, over HTTP/1.1. Undefined for the usual connection, on which none has ever waited. */
  #pipeline: Pipeline | undefined;

  constructor(socket: Socket, isExcess: boolean, table: Table) {
    this.socket = socket;
    this.isExcess = isExcess;
    this.address = socket.remoteAddress ?? "";
    this.#table = table;
    if (!isExcess) table.rest(this);
  }

  get closed(): Signal {
    return this.#abort.signal;
  }

  begin(run: () => void, response?: ServerResponse): void {
    if (response && this.#isBusy) {
      this.#pipeline ??= new Pipeline(this.socket);
      this.#pipeline.add(run, response);
      return;
    }
    if (this.#open === 0) this.#table.wake(this);
    this.#start(run, response);
  }

  end(): void {
    this.#open--;
    if (this.#pipeline && !this.#pipeline.isEmpty) {
      this.#pipeline.next((run, response) => {
        // The time that a stalled reader had for the last response must not end the wait for this one.
        this.socket.setTimeout(0);
        this.#start(run, response);
      });
    } else if (this.#open === 0 && !this.socket.destroyed && !this.isExcess) this.#table.rest(this);
  }

  /** Answers bytes that are no request, or come too late, and closes the connection. */
  refuse(failure: Failure): void {
    const { socket, response } = this;
    if (this.#isBusy && response?.req.complete) {
      this.#pipeline ??= new Pipeline(socket);
      this.#pipeline.addRefusal(() => closeWith(socket, failure));
    } else if (response?.headersSent && !response.writableFinished) socket.destroy();
    // Further bytes of an invalid request call this again.
    else if (socket.writable) closeWith(socket, failure);
  }

  know(user: User): void {
    // A connection of a proxy carries requests of both. An idle one is listed by its user.
    if (this.user !== "operator" && this.#open > 0) this.user = user;
  }

  get #isBusy(): boolean {
    return this.#open > 0 || (this.#pipeline !== undefined && !this.#pipeline.isEmpty);
  }

  #start(run: () => void, response: ServerResponse | undefined): void {
    this.#open++;
    this.response = response;
    run();
  }

  /** The caller has closed its side. Node closes the connection after the last response, at once if there is none. */
  halfClose(): void {
    if (!this.#isBusy) return;
    this.#leave();
    const timer = setTimeout(() => this.socket.destroy(), HALF_CLOSED_MS);
    this.socket.once("close", () => clearTimeout(timer));
  }

  close(): void {
    this.#pipeline?.clear();
    this.#table.wake(this);
    this.#leave();
  }

  #leave(): void {
    if (this.#open > 0) leaving.run(this.address, () => this.#abort.abort(GONE));
    else this.#abort.abort(GONE);
  }
}

/** The failure of bytes that Node's parser refuses. */
function failureOf({ code, rawPacket }: ParseError): Failure {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return new Failure("request_incomplete");
  if (code !== "HPE_HEADER_OVERFLOW") return new Failure("malformed_request");
  // Node does not say what was too large. A target that arrives in several packets counts as a part of the headers.
  const isTarget = TOO_LONG_TARGET.test(rawPacket?.toString("latin1", 0, maxHeaderSize) ?? "");
  return new Failure(isTarget ? "target_too_long" : "headers_too_large");
}

/** Sends a failure and closes the connection. Without the timer, a caller that keeps its side open would hold it. */
function closeWith(socket: Socket, failure: Failure): void {
  socket.end(rawResponse(failure, newRequestId()));
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
}
