import type { RequestListener, ServerResponse } from "node:http";
import type { Config } from "../../config/config.ts";
import type { Services } from "../../service/services.ts";
import type { BodyBudget } from "../body-budget.ts";
import type { Exchange, Verbs } from "../rest/handler.ts";
import { createPages } from "./pages.ts";
import { createSessionHandlers } from "./session.ts";

/** Path of the console. */
const CONSOLE = "/console";

/** Path of the services that the console's pages call. */
const RPC = `${CONSOLE}/rpc`;

/** Headers of every response: only the console's own files may load or run, and no other page may frame it. */
const HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
};

interface Console {
  /**
   * Returns the handlers of a path, and sets the console's headers; undefined when the path is not part of the console.
   */
  find(path: string, response: ServerResponse): Verbs | undefined;
}

/**
 * Creates the routes of the console on the public listener: pages, sign-in, and services. Pages hold no secret: the
 * browser keeps the session in a cookie that scripts cannot read, and sends it only to these paths and only from these
 * pages.
 * @param rpc serves `/<service>/<method>` for the session in the cookie
 */
export function createConsole(
  services: Pick<Services, "sessions" | "signIn">,
  { console: config, stream }: Pick<Config, "console" | "stream">,
  budget: BodyBudget,
  rpc: RequestListener,
): Console {
  const { folder, proxies } = config;
  const sendPage = createPages(folder, stream.stallMs);
  const session = createSessionHandlers({ services, budget, proxies, cookiePath: CONSOLE });
  const rpcHandlers: Verbs = new Map([["POST", { run: (exchange) => callRpc(rpc, exchange) }]]);

  return {
    find(path, response) {
      if (path !== CONSOLE && !path.startsWith(`${CONSOLE}/`)) return undefined;
      for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
      if (path === `${CONSOLE}/session`) return session;
      if (path.startsWith(`${RPC}/`)) return rpcHandlers;
      return new Map([["GET", { run: (exchange) => sendPage(path.slice(CONSOLE.length) || "/", exchange) }]]);
    },
  };
}

function callRpc(rpc: RequestListener, { request, response }: Exchange): void {
  response.setHeader("Cache-Control", "no-store");
  request.url = (request.url ?? "").replace(/^https?:\/\/[^/?]*/i, "").slice(RPC.length);
  rpc(request, response);
}
