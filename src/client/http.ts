import { ChorusError, failureOf } from "./failure.ts";

/** Validated options of the client. */
export interface Settings {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly fetch: typeof fetch;
  readonly retries: number;
  readonly timeoutMs: number;
}

/** One HTTP request. */
export interface HttpRequest {
  /** Path with its query string. */
  readonly path: string;
  /** JSON text to POST; undefined sends a GET. */
  readonly body?: string;
  readonly idempotencyKey?: string;
}

/** Starts an idle timeout, linked to the signal of the caller. @throws the reason of `outer` if it has aborted */
export function idleTimeout(outer: AbortSignal | undefined, timeoutMs: number) {
  outer?.throwIfAborted();
  const controller = new AbortController();
  const onAbort = () => controller.abort(outer?.reason);
  const onTimeout = () => {
    const message = `The service sent nothing for ${timeoutMs} ms (timeoutMs).`;
    controller.abort(new ChorusError({ code: "timeout", message }));
  };
  let timer = setTimeout(onTimeout, timeoutMs);
  outer?.addEventListener("abort", onAbort, { once: true });
  return {
    /** Aborts with the caller's signal, or with a `timeout` failure when the time has passed. */
    signal: controller.signal,
    /** Stops the time until the next restart. */
    pause: () => clearTimeout(timer),
    /** Restarts the time; call it when data arrives. */
    restart(): void {
      clearTimeout(timer);
      timer = setTimeout(onTimeout, timeoutMs);
    },
    /** Releases the timer and the caller's signal, and closes the connection if the response was not read fully. */
    end(): void {
      clearTimeout(timer);
      outer?.removeEventListener("abort", onAbort);
      controller.abort();
    },
  };
}

/** Sends a request once, without retries. @throws ChorusError for every response with a status other than 2xx */
export async function send(
  settings: Settings,
  { path, body, idempotencyKey }: HttpRequest,
  signal: AbortSignal,
): Promise<Response> {
  const headers: Record<string, string> = { "X-API-Key": settings.apiKey };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (idempotencyKey !== undefined) headers["Idempotency-Key"] = idempotencyKey;
  // Browsers and workers reject fetch when it is called as a method of another object.
  const { fetch } = settings;
  const response = await fetch(settings.baseUrl + path, {
    method: body === undefined ? "GET" : "POST",
    headers,
    ...(body === undefined ? {} : { body }),
    signal,
    // Following a redirect would send the API key to another server.
    redirect: "manual",
  });
  if (!response.ok) throw await failureOf(response);
  return response;
}

/** The error to throw to the caller: the reason of the abort, a ChorusError as it is, or else `connection_failed`. */
export function errorOf(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof ChorusError) return error;
  return new ChorusError({
    code: "connection_failed",
    message: "The connection to the service failed before the answer was complete.",
    cause: error,
  });
}
