import {
  constants,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
  type ServerOptions,
} from "node:http2";
import type { Socket } from "node:net";
import { Turns } from "../../concurrency/turns.ts";
import { PER_TURN } from "../../overload/bounds.ts";
import { HEAD_MS } from "./time-limits.ts";

/** Limits of HTTP/2 connections. Above those of Node and nghttp2, the connection ends with ENHANCE_YOUR_CALM. */
export const HTTP2_OPTIONS: ServerOptions = {
  // In megabytes. A proxy carries hundreds of responses on one connection; with Node's default of 10 it would refuse
  // new requests.
  maxSessionMemory: 64,
  settings: { maxConcurrentStreams: 1_000, maxHeaderListSize: 16 * 1024 },
  // Streams that the peer resets: at once, and per second afterwards (CVE-2023-44487). Each takes Node 0.1 ms. A proxy
  // resets many at once when its callers time out.
  streamResetBurst: 200,
  streamResetRate: 50,
};

/** What ends sessions that only cost. */
export interface SessionLimits {
  /** Time in which the head of the first request must arrive, in milliseconds. */
  readonly firstRequestMs: number;
  /** Longest time without an open request after that, in milliseconds. */
  readonly idleMs: number;
  /** Most PING and SETTINGS frames of a session in a second. Clients send a few, to measure the connection. */
  readonly controlFrames: number;
}

const LIMITS: SessionLimits = { firstRequestMs: HEAD_MS, idleMs: 300_000, controlFrames: 200 };

/**
 * Time between two searches for idle sessions, and time in which the peer must close its side after the end of a
 * session, in milliseconds.
 */
const SWEEP_MS = 1_000;

interface State {
  readonly socket: Socket;
  open: number;
  /**
   * When the session has to end unless a request begins, and its connection after that, by `performance.now()`. Node
   * keeps the connection of an ended session while a frame with headers waits for the next one, or the peer keeps its
   * side open.
   */
  endsAt: number;
  /** PING and SETTINGS frames since the last search. */
  frames: number;
}

/**
 * Keeps the sessions of a server within limits.
 * @returns a function that ends each session after its current requests
 */
export function limitSessions(server: Http2Server, limits: SessionLimits = LIMITS): () => void {
  const sessions = new Map<ServerHttp2Session, State>();
  let sweeping: NodeJS.Timeout | undefined;
  /** The connection whose session begins next, in the same turn of the event loop. A session does not show it. */
  let opening: Socket;

  const sweep = () => {
    const now = performance.now();
    for (const [session, state] of sessions) {
      state.frames = 0;
      if (state.open > 0 || now < state.endsAt) continue;
      if (session.closed) state.socket.destroy();
      else session.close();
      state.endsAt = now + SWEEP_MS;
    }
  };
  const add = (session: ServerHttp2Session) => {
    const endsAt = performance.now() + limits.firstRequestMs;
    const state: State = { socket: opening, open: 0, endsAt, frames: 0 };
    sessions.set(session, state);
    sweeping ??= setInterval(sweep, SWEEP_MS).unref();
    const countFrame = () => {
      if (++state.frames > limits.controlFrames) endCalmly(session);
    };
    session.on("ping", countFrame).on("remoteSettings", countFrame);
    session.on("stream", (stream) => {
      state.open++;
      stream.once("close", () => {
        if (--state.open === 0) state.endsAt = performance.now() + limits.idleMs;
      });
    });
    session.once("close", () => {
      sessions.delete(session);
      if (sessions.size > 0) return;
      clearInterval(sweeping);
      sweeping = undefined;
    });
  };
  server.prependListener("connection", (socket) => {
    opening = socket;
  });
  server.on("session", add);
  // Without a listener, a connection that the caller resets would end the process.
  server.on("sessionError", () => undefined);
  return () => {
    for (const session of sessions.keys()) session.close();
  };
}

function endCalmly(session: ServerHttp2Session): void {
  // Node takes a code here, which its types do not have; as a second argument it is ignored without an error.
  session.destroy(constants.NGHTTP2_ENHANCE_YOUR_CALM as never);
}

type Listener = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

/**
 * Spreads bursts of requests over several turns of the event loop, in which sessions take turns. A chunk of 64 KB can
 * hold 1,500 requests, and Node begins all of them before anything else runs. A request that is reset before its turn
 * never begins, so a flood of such requests costs only what Node does for each (CVE-2023-44487).
 */
export function beginInTurns(begin: Listener): Listener {
  const turns = new Turns<object>(PER_TURN.http2);
  return (request, response) => {
    const { stream } = request;
    turns.add(stream.session ?? stream, () => {
      if (stream.closed || stream.destroyed) return false;
      begin(request, response);
      return true;
    });
  };
}
