import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { UniversalHandler, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { Failure } from "../../contract/failure.ts";
import { CallerGone } from "../../service/request-context.ts";
import { errorFacts, type Log } from "../../telemetry/log.ts";
import { tooLarge } from "../call/body-bounds.ts";
import { MAX_SMALL_BODY } from "../call/body-budget.ts";
import { newRequestId } from "../call/request-id.ts";
import { toConnectError } from "./connect-error.ts";
import type { Method } from "./method.ts";
import type { Protocols } from "./negotiate.ts";
import { abortResponse, drained, type Exchange, sendHead, sendReply } from "./response.ts";
import { refusal, type ServeMethod } from "./serve.ts";

interface Parts {
  readonly methods: ReadonlyMap<string, Method>;
  readonly serveMethod: ServeMethod;
  readonly protocols: Protocols;
  /** Handlers of further services. Anybody may call them. */
  readonly handlers: Iterable<UniversalHandler>;
  readonly stallMs: number;
  readonly log: Log;
}

/** Serves methods of Chorus and handlers of Connect, on Node's HTTP servers 1.1 and 2. */
export function createListener({ methods, serveMethod, protocols, handlers, stallMs, log }: Parts): RequestListener {
  const handlersByPath = new Map([...handlers].map((handler) => [handler.requestPath, handler]));

  async function exchange(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = newRequestId();
    const path = request.url?.split("?", 1)[0] ?? "";
    // An empty body is complete only after this await.
    await undefined;
    const method = methods.get(path);
    if (method) return serveMethod(method, request, response, requestId);
    const aborting = new AbortController();
    response.once("close", () => aborting.abort());
    const served = { request, response, requestId, signal: aborting.signal, stallMs };
    const handler = handlersByPath.get(path);
    if (!handler) return sendReply(served, refusal(new Failure("not_found"), request, protocols, requestId));
    const isTooLarge = Number(request.headers["content-length"] ?? 0) > MAX_SMALL_BODY;
    if (isTooLarge) return sendReply(served, refusal(tooLarge(MAX_SMALL_BODY), request, protocols, requestId));
    await serveHandler(handler, served);
  }

  return (request, response) => {
    // "close" follows every error, and ends the exchange.
    request.on("error", ignore);
    response.on("error", ignore);
    exchange(request, response).catch((error: unknown) => {
      if (!(error instanceof CallerGone)) log.error({ cause: errorFacts(error) }, "could not send a response");
      abortResponse(response);
    });
  };
}

/** Connect's handlers need a signal of the platform. */
interface HandlerExchange extends Exchange {
  readonly signal: AbortSignal;
}

/**
 * Serves one of Connect's handlers. It replaces Connect's own adapter, which ends the process at a request with an
 * invalid Host and waits forever for a reader that stalls.
 */
async function serveHandler(handler: UniversalHandler, exchange: HandlerExchange): Promise<void> {
  const { request, requestId, signal } = exchange;
  const header = new Headers();
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined && !name.startsWith(":")) header.set(name, value.toString());
  const { httpVersion, method = "" } = request;
  // Handlers use only the query. The caller's Host may be invalid.
  const url = `http://localhost${request.url}`;
  await send(
    await handler({ httpVersion, method, url, header, body: smallBody(request, requestId), signal }),
    exchange,
  );
}

/** Reads a body of at most 64 KB. @throws ConnectError */
async function* smallBody(request: IncomingMessage, requestId: string): AsyncGenerator<Buffer> {
  let size = 0;
  // Leaving the loop early must not destroy the request, because the refusal travels on the same connection.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_SMALL_BODY) throw toConnectError(tooLarge(MAX_SMALL_BODY), requestId);
    yield chunk;
  }
}

/** @throws CallerGone when the reader leaves or stalls */
async function send({ status, header, body, trailer }: UniversalServerResponse, exchange: Exchange): Promise<void> {
  const { response, signal } = exchange;
  sendHead(exchange, status, Object.fromEntries(header ?? []));
  for await (const chunk of body ?? []) {
    // Throwing inside the loop also ends the handler's stream.
    if (signal.aborted) throw new CallerGone();
    if (!response.write(chunk)) await drained(exchange);
  }
  const trailers = trailer ? { trailers: Object.fromEntries(trailer) } : {};
  await sendReply(exchange, { status, headers: {}, body: Buffer.alloc(0), ...trailers });
}

function ignore(): void {}
