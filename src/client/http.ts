import { ChorusError, failureOf } from "./failure.ts";

/** Where and how calls are made. */
export interface Settings {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly fetch: typeof fetch;
  readonly retries: number;
  readonly timeoutMs: number;
}

/** One HTTP request. */
export interface Call {
  /** With the query. */
  readonly path: string;
  /** JSON text that is POSTed; without it the call is a GET. */
  readonly body?: string;
  readonly idempotencyKey?: string;
}

/** A signal that aborts with the caller's, or with a `timeout` failure after some time without a sign of life. */
export interface Watch {
  readonly signal: AbortSignal;
  /** Starts the time anew. */
  alive(): void;
  /** Lets go of the timer and of the caller's signal, and of the connection when the response was not read to its end. */
  end(): void;
}

export function watch(outer: AbortSignal | undefined, timeoutMs: number): Watch {
  outer?.throwIfAborted();
  const controller = new AbortController();
  const leave = () => controller.abort(outer?.reason);
  const late = () =>
    controller.abort(new ChorusError({ code: "timeout", message: `Nothing came for ${timeoutMs} ms (timeoutMs).` }));
  let timer = setTimeout(late, timeoutMs);
  outer?.addEventListener("abort", leave, { once: true });
  return {
    signal: controller.signal,
    alive() {
      clearTimeout(timer);
      timer = setTimeout(late, timeoutMs);
    },
    end() {
      clearTimeout(timer);
      outer?.removeEventListener("abort", leave);
      controller.abort();
    },
  };
}

/**
 * Sends one request, once.
 * @throws ChorusError for every response that is no success
 */
export async function send(
  settings: Settings,
  { path, body, idempotencyKey }: Call,
  signal: AbortSignal,
): Promise<Response> {
  const headers: Record<string, string> = { "X-API-Key": settings.apiKey };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (idempotencyKey !== undefined) headers["Idempotency-Key"] = idempotencyKey;
  // Called without its object, as browsers and workers want it.
  const { fetch } = settings;
  const response = await fetch(settings.baseUrl + path, {
    method: body === undefined ? "GET" : "POST",
    headers,
    ...(body === undefined ? {} : { body }),
    signal,
    // Followed elsewhere, a redirect would take the key along.
    redirect: "manual",
  });
  if (!response.ok) throw await failureOf(response);
  return response;
}

/** What went wrong, as the caller is told: the reason of an abort, a failure that is known already, or a broken connection. */
export function reasonOf(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof ChorusError) return error;
  return new ChorusError({
    code: "connection_failed",
    message: "The connection to the service failed before the whole answer had come.",
    cause: error,
  });
}
