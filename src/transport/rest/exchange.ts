import type { IncomingMessage, ServerResponse } from "node:http";
import { type Failure, toFailure } from "../../failure.ts";
import { CallerGone } from "../../service/request-context.ts";
import { annotate, traceRequest } from "../../tracing.ts";
import { discardBody } from "../discard-body.ts";
import { failureJson, retryAfterSeconds } from "../failure-body.ts";
import type { Report } from "../report.ts";
import { assignRequestId } from "../request-id.ts";
import type { Connection } from "./connections.ts";
import type { Exchange } from "./handler.ts";
import { sendJson, writeJsonHeaders } from "./json-response.ts";
import { type Router, splitTarget } from "./routes.ts";

interface Parts {
  readonly router: Router;
  readonly report: Report;
  connectionOf(socket: IncomingMessage["socket"]): Connection;
  /** Whether the service takes new requests. */
  ready(): boolean;
}

type ServeExchange = (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean) => Promise<void>;

/**
 * Creates the function that serves each request: it finds the handler, runs it, and turns what it throws into a
 * response.
 */
export function createServeExchange({ router, report, connectionOf, ready }: Parts): ServeExchange {
  return async (request, response, expectsContinue) => {
    const requestId = assignRequestId(response);
    const connection = connectionOf(request.socket);
    connection.response = response;
    // While the service drains, a connection ends after its current response.
    response.once("finish", () => ready() || request.socket.destroySoon());
    const { path, query } = splitTarget(request.url ?? "");
    const tracked = { transport: "rest", method: "none", requestId, startedAt: performance.now(), facts: {} } as const;
    const exchange: Exchange = { ...tracked, request, response, query, expectsContinue, closed: connection.closed };
    const name = router.spanName(path, request.method);
    if (name === undefined) await serve(exchange, path);
    else {
      await traceRequest(name, request.headers, { "http.request.method": request.method }, async () => {
        await serve(exchange, path);
        annotate({ "http.response.status_code": response.headersSent ? response.statusCode : undefined });
      });
    }
  };

  async function serve(exchange: Exchange, path: string): Promise<void> {
    try {
      const { label, run } = router.find(path, exchange);
      exchange.method = label ?? "none";
      await run(exchange);
      if (label) report(exchange, exchange.streamFailure);
    } catch (error) {
      report(exchange, error);
      if (error instanceof CallerGone) exchange.response.destroy();
      else refuse(exchange, toFailure(error));
    }
  }
}

/** Responds with a failure, or ends the connection when a response has begun. */
function refuse({ request, response, requestId }: Exchange, failure: Failure): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const retryAfter = retryAfterSeconds(failure);
  if (retryAfter !== undefined) response.setHeader("Retry-After", retryAfter);
  const text = failureJson(failure, requestId);
  if (request.complete || !hasBody(request)) sendJson(response, failure.row.http, text);
  else {
    response.setHeader("Connection", "close");
    writeJsonHeaders(response, failure.row.http, text);
    response.write(text);
    discardBody(request).then(() => response.end());
  }
}

/** RFC 9112, section 6.3. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}
