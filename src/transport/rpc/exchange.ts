import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import type { DescMessage } from "@bufbuild/protobuf";
import type { ConnectError, ContextValues } from "@connectrpc/connect";
import { type UniversalHandler, type UniversalServerResponse, uResponseNotFound } from "@connectrpc/connect/protocol";
import { Failure } from "../../failure.ts";
import { errorFacts, type Log } from "../../log.ts";
import { CallerGone } from "../../service/request-context.ts";
import { traceRequest } from "../../tracing.ts";
import { discardBody } from "../discard-body.ts";
import { type BodyBudget, tooLarge } from "../rest/body.ts";
import { createValueCounter, prefixLength } from "../value-count.ts";

/** Most values in a body, as over REST: few enough to be parsed in 50 ms. */
const MAX_VALUES = 100_000;

/** The longest that node's timers reach, in milliseconds; beyond it they fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

interface Options {
  /** Largest body for a handler, in bytes. */
  maxBytes(handler: UniversalHandler): number;
  /** Room for the bodies of all requests. */
  budget: BodyBudget;
  /** Makes what the handlers find in their context. */
  values(requestId: string): ContextValues;
  newRequestId(): string;
  /** What the caller reads of a body that is refused. */
  refusal(error: unknown, values: ContextValues): ConnectError;
  /** A reader that takes nothing for so long has gone, in milliseconds. */
  stallMs: number;
  log: Log;
}

/**
 * Carries Connect's handlers over node's HTTP servers, 1.1 and 2. It stands in for Connect's own adapter, which ends the process at a
 * request without a usable Host, waits for ever for a reader that takes nothing, and holds bodies without a common bound.
 */
export function serveHandlers(handlers: Iterable<UniversalHandler>, options: Options): RequestListener {
  const byPath = new Map([...handlers].map((handler) => [handler.requestPath, handler]));
  return (request, response) => {
    exchange(byPath, options, request, response).catch((error: unknown) => {
      if (!(error instanceof CallerGone)) options.log.error({ cause: errorFacts(error) }, "could not answer a call");
      cut(response);
    });
  };
}

async function exchange(
  handlers: ReadonlyMap<string, UniversalHandler>,
  { maxBytes, budget, values, newRequestId, refusal, stallMs }: Options,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const requestId = newRequestId();
  response.setHeader("x-request-id", requestId);
  const gone = new AbortController();
  const body = createBody(request, response, budget);
  response.once("close", () => {
    body.release();
    gone.abort();
  });
  // Whatever breaks, "close" follows.
  request.on("error", ignore);
  response.on("error", ignore);

  const handler = handlers.get(request.url?.split("?", 1)[0] ?? "");
  const contextValues = values(requestId);
  const serve = async () => {
    const answer = await (handler?.({
      httpVersion: request.httpVersion,
      method: request.method ?? "",
      // Handlers read the query alone, and a caller's Host may be anything.
      url: `http://localhost${request.url}`,
      header: headersOf(request),
      body: body.read(handler.method.input, maxBytes(handler), (error) => refusal(error, contextValues)),
      signal: gone.signal,
      contextValues,
    }) ?? uResponseNotFound);
    await send(answer, request, response, gone.signal, stallMs);
  };
  const name = handler && spanName(handler);
  await (name === undefined ? serve() : traceRequest(name, request.headers, { "rpc.method": name }, serve));
}

/** Undefined for probes and reflection, which leave no trace. */
function spanName({ service, method }: UniversalHandler): string | undefined {
  return service.typeName.startsWith("chorus.") ? `${service.typeName}/${method.name}` : undefined;
}

async function send(
  { status, header, body, trailer }: UniversalServerResponse,
  request: IncomingMessage,
  response: ServerResponse,
  gone: AbortSignal,
  stallMs: number,
): Promise<void> {
  const stream = streamOf(response);
  const isRefused = !request.complete;
  if (isRefused && !stream) response.setHeader("connection", "close");
  response.writeHead(status, Object.fromEntries(header ?? []));
  for await (const chunk of body ?? []) {
    // Thrown here, so that the handler hears of it.
    if (gone.aborted) throw new CallerGone();
    if (!response.write(chunk)) await eventOf(response, "drain", gone, stallMs);
  }
  if (trailer) response.addTrailers(Object.fromEntries(trailer));
  if (isRefused && !stream) await discardBody(request);
  response.end();
  if (isRefused && stream) {
    // A reset on the heels of the answer would overtake its trailers.
    await discardBody(request);
    if (!request.complete) stream.close(constants.NGHTTP2_NO_ERROR);
  }
  await eventOf(response, "finish", gone, stallMs);
}

/** @throws CallerGone when the response closes first, or nothing happens for `stallMs`. */
function eventOf(
  response: ServerResponse,
  event: "drain" | "finish",
  gone: AbortSignal,
  stallMs: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (isGone: boolean) => {
      clearTimeout(timer);
      response.off(event, onEvent);
      gone.removeEventListener("abort", onGone);
      if (isGone) reject(new CallerGone());
      else resolve();
    };
    const onEvent = () => end(false);
    const onGone = () => end(true);
    const timer = setTimeout(onGone, stallMs);
    response.on(event, onEvent);
    gone.addEventListener("abort", onGone);
    if (event === "finish" && response.writableFinished) onEvent();
    else if (gone.aborted) onGone();
  });
}

/** Ends an exchange that cannot be brought to its end, so that no reader takes it for whole. */
function cut(response: ServerResponse): void {
  const stream = streamOf(response);
  if (stream) stream.close(constants.NGHTTP2_CANCEL);
  else response.destroy();
}

/** The HTTP/2 stream of a response, whose other members are those of HTTP/1.1. */
function streamOf(response: ServerResponse): ServerHttp2Stream | undefined {
  return (response as { stream?: ServerHttp2Stream }).stream;
}

interface Body {
  /** Reads the body, which holds a `desc`, and `maxBytes` at most. Throws what `refusal` makes of a failure. */
  read(desc: DescMessage, maxBytes: number, refusal: (error: unknown) => ConnectError): AsyncIterable<Uint8Array>;
  /** Gives back the room that the body took. */
  release(): void;
}

function createBody(request: IncomingMessage, response: ServerResponse, budget: BodyBudget): Body {
  let held = 0;
  let isReleased = false;
  const hold = (bytes: number) => {
    if (isReleased) throw new CallerGone();
    budget.take(bytes, held);
    held += bytes;
  };

  async function* chunks(desc: DescMessage, maxBytes: number): AsyncGenerator<Uint8Array> {
    const type = request.headers["content-type"] ?? "";
    const count = createValueCounter(desc, type, (length) => {
      if (length > maxBytes) throw tooLarge(maxBytes);
    });
    const stated = request.headers["content-length"];
    if (stated !== undefined) hold(Number(stated));
    if (request.headers.expect) response.writeContinue();
    let size = 0;
    // Not destroyed when it is left early, because the refusal travels on the same connection.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBytes + prefixLength(type)) throw tooLarge(maxBytes);
      if (count(chunk) > MAX_VALUES) {
        const message = `The message holds more than ${MAX_VALUES.toLocaleString("en")} values. Send fewer.`;
        throw new Failure("request_too_large", { message });
      }
      if (stated === undefined) hold(chunk.length);
      yield chunk;
    }
  }

  return {
    async *read(desc, maxBytes, refusal) {
      try {
        yield* chunks(desc, maxBytes);
      } catch (error) {
        throw refusal(request.destroyed ? new CallerGone() : error);
      }
    },
    release() {
      isReleased = true;
      budget.give(held);
      held = 0;
    },
  };
}

function headersOf(request: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    // The others are HTTP/2's own, such as ":path".
    if (value !== undefined && !name.startsWith(":"))
      headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  if (Number(headers.get("connect-timeout-ms")) > MAX_TIMER_MS) headers.delete("connect-timeout-ms");
  if (grpcTimeout(headers) > MAX_TIMER_MS) headers.delete("grpc-timeout");
  return headers;
}

/** Milliseconds of a `grpc-timeout` in hours, minutes or seconds; shorter units cannot say much. */
function grpcTimeout(headers: Headers): number {
  const [, count, unit] = /^(\d{1,8})([HMS])$/.exec(headers.get("grpc-timeout") ?? "") ?? [];
  return Number(count ?? 0) * (unit === "H" ? 3_600_000 : unit === "M" ? 60_000 : 1_000);
}

function ignore(): void {}
