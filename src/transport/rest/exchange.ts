import type { IncomingMessage, ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Failure, toFailure } from "../../contract/failure.ts";
import { CallerGone } from "../../service/request-context.ts";
import { annotate, traceRequest } from "../../telemetry/tracing.ts";
import { checkHead, hasBody } from "../call/check-head.ts";
import { discardBody } from "../call/discard-body.ts";
import type { Report } from "../call/report.ts";
import { newRequestId } from "../call/request-id.ts";
import { isOpenaiPath, openaiFailure } from "../openai/failure.ts";
import { type Connection, connectionOf, refuseExcess } from "../socket/connections.ts";
import { ownFailure } from "./failure.ts";
import type { Exchange } from "./handler.ts";
import { sendRefusal } from "./json-response.ts";
import { type Router, splitTarget } from "./routes.ts";
import { endIfStalled } from "./stall.ts";

interface Parts {
  readonly router: Router;
  readonly report: Report;
  /** Whether the service takes no new requests, because it stops. */
  draining(): boolean;
  /** Time after which a reader that takes nothing of a response counts as gone, in milliseconds. */
  readonly stallMs: number;
}

type ServeExchange = (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean) => void;

/**
 * Creates the function that serves each request: it finds the handler, runs it, and turns what it throws into a
 * response.
 */
export function createServeExchange({ router, report, draining, stallMs }: Parts): ServeExchange {
  return (request, response, expectsContinue) => {
    const connection = connectionOf(request);
    connection.begin(() => void begin(request, response, expectsContinue, connection), response);
  };

  function begin(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean, connection: Connection) {
    const requestId = newRequestId();
    // A second listener, or one that is called once, would take 0.1 KB.
    response.on("finish", () => {
      connection.end();
      // While the service drains, a connection ends after its current response.
      if (draining()) request.socket.destroySoon();
    });
    const { path, query } = splitTarget(request.url ?? "");
    const exchange: Exchange = {
      transport: "rest",
      method: "none",
      requestId,
      startedAt: performance.now(),
      facts: {},
      request,
      response,
      path,
      query,
      expectsContinue,
      closed: connection.closed,
      streamFailure: undefined,
      hold: undefined,
      leave: undefined,
    };
    const name = router.spanName(path, request.method);
    const run = () => serve(exchange);
    // Each function that waits for the end of a stream holds 0.6 KB, so only `serve` and `writeEvents` do.
    if (name === undefined) return run();
    return traceRequest(name, request.headers, { "http.request.method": request.method }, run);
  }

  async function serve(exchange: Exchange): Promise<void> {
    const { request, response, path } = exchange;
    try {
      refuseExcess(request, response);
      checkHead(request);
      const { label, run } = router.find(path, exchange);
      exchange.method = label ?? "none";
      // The responses of labelled handlers have the header anyway, and write it faster than Node sets it.
      if (!label) response.setHeader("X-Request-Id", exchange.requestId);
      if (request.method !== "POST" && hasBody(request)) await skipBody(request, response);
      try {
        await run(exchange);
      } finally {
        exchange.hold?.release();
        exchange.leave?.();
      }
      if (label) report(exchange, exchange.streamFailure);
    } catch (error) {
      report(exchange, error);
      if (error instanceof CallerGone) response.destroy();
      else await refuse(exchange, toFailure(error));
    }
    annotate({ "http.response.status_code": response.headersSent ? response.statusCode : undefined });
    if (response.writableEnded && !response.writableFinished) endIfStalled(response, stallMs);
  }
}

/** Drops the body of a request that needs none. Closes the connection if the body is large or slow. */
async function skipBody(request: IncomingMessage, response: ServerResponse): Promise<void> {
  await discardBody(request);
  if (!request.complete) response.setHeader("Connection", "close");
}

/** Responds with a failure, or ends the connection when a response has begun. */
async function refuse(exchange: Exchange, failure: Failure): Promise<void> {
  const { request, response, requestId, path } = exchange;
  // A small body arrives together with the head. The connection can be used again then.
  if (!request.complete && hasBody(request)) await nextTurn();
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const { status, text, headers } = isOpenaiPath(path) ? openaiFailure(failure) : ownFailure(failure, requestId);
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (failure.kind === "malformed_request") response.setHeader("Connection", "close");
  sendRefusal(exchange, status, text);
}
