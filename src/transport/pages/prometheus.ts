import { TELEMETRY_TYPE } from "../../telemetry/create.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import type { PageRoute } from "../call/route.ts";

/** Creates the page `/metrics`. */
export function metricsRoute(telemetry: Pick<Telemetry, "text">): PageRoute {
  return {
    async send({ request, response }) {
      const text = await telemetry.text();
      response.writeHead(200, { "Content-Type": TELEMETRY_TYPE, "Cache-Control": "no-store" });
      response.end(request.method === "HEAD" ? undefined : text);
    },
  };
}
