import type { ConnectRouter } from "@connectrpc/connect";
import { createConnectRouter } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { CallerGone } from "../../contract/endings.ts";
import { tooLarge } from "../../overload/body-bounds.ts";
import { BODIES } from "../../overload/bounds.ts";
import type { Call } from "../call/call.ts";
import type { PageRoute } from "../call/route.ts";
import { drained, endIfStalled, endUnread, writeHead } from "../call/write.ts";
import { toConnectError } from "./failure.ts";

/**
 * The routes of services that Connect's own handlers serve. Anybody may call them.
 * @param addServices adds the services
 * @param stallMs time after which a reader that takes nothing counts as gone, in milliseconds
 */
export function handlerRoutes(
  addServices: (router: ConnectRouter) => void,
  stallMs: number,
): ReadonlyMap<string, PageRoute> {
  const router = createConnectRouter({ acceptCompression: [], readMaxBytes: BODIES.maxSmall });
  addServices(router);
  const send = (handler: UniversalHandler) => (call: Call) => serveHandler(handler, call, stallMs);
  return new Map(router.handlers.map((handler) => [handler.requestPath, { readsBody: true, send: send(handler) }]));
}

/**
 * Serves one of Connect's handlers. It replaces Connect's own adapter, which ends the process at a request with an
 * invalid Host and waits forever for a reader that stalls.
 */
async function serveHandler(handler: UniversalHandler, call: Call, stallMs: number): Promise<void> {
  const { request } = call;
  if (Number(request.headers["content-length"] ?? 0) > BODIES.maxSmall) throw tooLarge(BODIES.maxSmall);
  // Connect's handlers need a signal of the platform.
  const aborting = new AbortController();
  const abort = () => aborting.abort();
  call.signal.addEventListener("abort", abort);
  if (call.signal.aborted) abort();
  const header = new Headers();
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined && !name.startsWith(":")) header.set(name, value.toString());
  const { httpVersion, method = "" } = request;
  // Handlers use only the query. The caller's Host may be invalid.
  const url = `http://localhost${request.url}`;
  const body = smallBody(call);
  try {
    await send(await handler({ httpVersion, method, url, header, body, signal: aborting.signal }), call, stallMs);
  } finally {
    call.signal.removeEventListener("abort", abort);
  }
}

/** Reads a body of at most 64 KB. @throws ConnectError */
async function* smallBody({ request, requestId }: Call): AsyncGenerator<Buffer> {
  let size = 0;
  // Leaving the loop early must not destroy the request, because the refusal travels on the same connection.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > BODIES.maxSmall) throw toConnectError(tooLarge(BODIES.maxSmall), requestId);
    yield chunk;
  }
}

/** @throws CallerGone when the reader leaves or stalls */
async function send(
  { status, header, body, trailer }: UniversalServerResponse,
  call: Call,
  stallMs: number,
): Promise<void> {
  const { response, signal } = call;
  writeHead(call, status, [...(header ?? [])].flat());
  for await (const chunk of body ?? []) {
    // Throwing inside the loop also ends the handler's stream.
    if (signal.aborted) throw new CallerGone();
    if (!response.write(chunk)) await drained(call, stallMs);
  }
  if (trailer) response.addTrailers(Object.fromEntries(trailer));
  response.end();
  if (!response.writableFinished) endIfStalled(response, stallMs);
  await endUnread(call);
}
