import type { RequestListener } from "node:http";
import { TELEMETRY_TYPE } from "../../telemetry/create.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";

/** Serves `GET /metrics` and passes every other request to `next`. Works for HTTP/1.1 and HTTP/2. */
export function withMetrics(telemetry: Pick<Telemetry, "text">, next: RequestListener): RequestListener {
  return (request, response) => {
    if (request.url?.split("?", 1)[0] !== "/metrics" || (request.method !== "GET" && request.method !== "HEAD")) {
      next(request, response);
      return;
    }
    telemetry.text().then(
      (text) => {
        response.writeHead(200, { "Content-Type": TELEMETRY_TYPE, "Cache-Control": "no-store" });
        response.end(request.method === "HEAD" ? undefined : text);
      },
      () => {
        response.writeHead(500);
        response.end();
      },
    );
  };
}
