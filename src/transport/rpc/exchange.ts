import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { createContextValues } from "@connectrpc/connect";
import { type UniversalHandler, uResponseNotFound } from "@connectrpc/connect/protocol";
import { errorFacts, type Log } from "../../log.ts";
import { CallerGone } from "../../service/request-context.ts";
import { traceRequest } from "../../tracing.ts";
import type { BodyBudget } from "../body-budget.ts";
import { assignRequestId } from "../request-id.ts";
import type { RequestReader } from "../request-reader.ts";
import { createBody } from "./body.ts";
import { readHeaders } from "./headers.ts";
import { newRpcRequest, REQUEST } from "./request.ts";
import { abortResponse, sendResponse } from "./response.ts";

interface Options {
  readonly budget: BodyBudget;
  readonly reader: RequestReader;
  /** Time after which a reader that takes nothing counts as gone, in milliseconds. */
  readonly stallMs: number;
  readonly log: Log;
}

/**
 * Serves Connect's handlers on Node's HTTP servers, 1.1 and 2. It replaces Connect's own adapter, which ends the
 * process at a request with an invalid Host, waits forever for a reader that stalls, and does not bound the memory of
 * bodies.
 */
export function serveHandlers(handlers: Iterable<UniversalHandler>, options: Options): RequestListener {
  const byPath = new Map([...handlers].map((handler) => [handler.requestPath, handler]));
  return (request, response) => {
    exchange(byPath, options, request, response).catch((error: unknown) => {
      if (!(error instanceof CallerGone)) options.log.error({ cause: errorFacts(error) }, "could not send a response");
      abortResponse(response);
    });
  };
}

async function exchange(
  handlers: ReadonlyMap<string, UniversalHandler>,
  { budget, reader, stallMs }: Options,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const handler = handlers.get(request.url?.split("?", 1)[0] ?? "");
  const closed = new AbortController();
  const tracked = newRpcRequest(assignRequestId(response), request.headers["content-length"]);
  const exchanged = { request, response, tracked, closed: closed.signal };
  const body = handler && createBody(exchanged, handler, { budget, reader });
  response.once("close", () => {
    body?.release();
    closed.abort();
  });
  // "close" follows every error, and ends the exchange.
  request.on("error", ignore);
  response.on("error", ignore);

  const serve = async () => {
    // An empty body is complete only after this await, for an unknown path too.
    const result = await (body
      ? handler({
          httpVersion: request.httpVersion,
          method: request.method ?? "",
          // Handlers use only the query. The caller's Host may be invalid.
          url: `http://localhost${request.url}`,
          header: readHeaders(request),
          body: body.read(),
          signal: closed.signal,
          contextValues: createContextValues().set(REQUEST, tracked),
        })
      : uResponseNotFound);
    await sendResponse(result, request, response, { closed: closed.signal, stallMs });
  };
  const name = handler && spanName(handler);
  await (name === undefined ? serve() : traceRequest(name, request.headers, { "rpc.method": name }, serve));
}

/** Undefined for probes and reflection, which leave no trace. */
function spanName({ service, method }: UniversalHandler): string | undefined {
  return service.typeName.startsWith("chorus.") ? `${service.typeName}/${method.name}` : undefined;
}

function ignore(): void {}
