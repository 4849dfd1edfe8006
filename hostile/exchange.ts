import { type Agent, request as httpRequest } from "node:http";

export interface HttpRequest {
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Default: a new connection. */
  agent?: Agent;
}

export interface HttpExchange {
  status: number;
  retryAfter: string | undefined;
  text: string;
  /** Time to the end of the response, and to its first byte of text, in milliseconds. */
  ms: number;
  firstMs: number;
  /** Why there is no complete response. */
  failure?: string;
}

/** Longest wait for the end of a response, in milliseconds. */
const TIMEOUT_MS = 20_000;

/** Sends a POST request and reads the response to its end. Never rejects. */
export function exchange({ url, headers, body, agent }: HttpRequest): Promise<HttpExchange> {
  const startedAt = performance.now();
  const seen: HttpExchange = { status: 0, retryAfter: undefined, text: "", ms: 0, firstMs: Number.NaN };
  return new Promise((resolve) => {
    const end = (failure?: string) => {
      clearTimeout(timer);
      resolve({ ...seen, ms: performance.now() - startedAt, ...(failure === undefined ? {} : { failure }) });
    };
    const request = httpRequest(url, { method: "POST", headers, agent: agent ?? false });
    const timer = setTimeout(() => {
      end(`no complete response in ${TIMEOUT_MS / 1_000} s`);
      request.destroy();
    }, TIMEOUT_MS);
    request.on("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
    request.on("response", (response) => {
      seen.status = response.statusCode ?? 0;
      seen.retryAfter = response.headers["retry-after"];
      response.setEncoding("utf8");
      response.on("data", (text: string) => {
        if (Number.isNaN(seen.firstMs)) seen.firstMs = performance.now() - startedAt;
        seen.text += text;
      });
      response.on("error", () => undefined);
      response.on("close", () => end(response.complete ? undefined : "the connection closed within the response"));
    });
    request.end(body);
  });
}
