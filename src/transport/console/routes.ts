import type { RequestListener, ServerResponse } from "node:http";
import type { OwnerSession } from "../../admin/sign-in/owner-sessions.ts";
import type { Session } from "../../admin/sign-in/sessions.ts";
import type { Config } from "../../config/config.ts";
import type { Services } from "../../service/services.ts";
import type { BodyBudget } from "../call/body-budget.ts";
import type { Exchange, Verbs } from "../rest/handler.ts";
import { createPages } from "./pages.ts";
import { createSessionHandlers, OPERATOR_COOKIE, OWNER_COOKIE } from "./session.ts";

/** Path of the console. */
const CONSOLE = "/console";

/** Path of the operator's side. Both sides have their sessions at `session` and their services below `rpc`. */
const OPERATOR = `${CONSOLE}/operator`;

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

/** What the pages of owners and of operators call. */
interface Listeners {
  readonly owner: RequestListener;
  readonly operator: RequestListener;
}

/**
 * Creates the routes of the console on the public listener: pages, sign-in, and services. Pages hold no secret: the
 * browser keeps the session in a cookie that scripts cannot read, and sends it only to these paths and only from these
 * pages. Owners and operators have sessions of their own.
 * @param rpc each serves `/<service>/<method>` for the session in its cookie
 */
export function createConsole(
  services: Pick<Services, "sessions" | "signIn" | "operatorSessions" | "operatorSignIn">,
  { console: config, stream }: Pick<Config, "console" | "stream">,
  budget: BodyBudget,
  rpc: Listeners,
): Console {
  const { folder, proxies } = config;
  const sendPage = createPages(folder, stream.stallMs);
  const owner = createSessionHandlers<OwnerSession>({
    sessions: services.sessions,
    signIn: services.signIn,
    describe: ({ caller }) => ({ workspace: caller.workspace, workspace_id: caller.workspaceId }),
    cookie: OWNER_COOKIE,
    budget,
    proxies,
  });
  const operator = createSessionHandlers<Session>({
    sessions: services.operatorSessions,
    signIn: services.operatorSignIn,
    describe: ({ actor }) => ({ operator: actor.id }),
    cookie: OPERATOR_COOKIE,
    budget,
    proxies,
  });
  const fixed = new Map([
    [`${CONSOLE}/session`, owner],
    [`${OPERATOR}/session`, operator],
  ]);
  const prefixes: readonly [prefix: string, verbs: Verbs][] = [
    [`${CONSOLE}/rpc`, rpcVerbs(rpc.owner, `${CONSOLE}/rpc`)],
    [`${OPERATOR}/rpc`, rpcVerbs(rpc.operator, `${OPERATOR}/rpc`)],
  ];

  return {
    find(path, response) {
      if (path !== CONSOLE && !path.startsWith(`${CONSOLE}/`)) return undefined;
      for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
      const found = fixed.get(path) ?? prefixes.find(([prefix]) => path.startsWith(`${prefix}/`))?.[1];
      return found ?? new Map([["GET", { run: (exchange) => sendPage(path.slice(CONSOLE.length) || "/", exchange) }]]);
    },
  };
}

/** @param prefix is taken off the path of a call */
function rpcVerbs(rpc: RequestListener, prefix: string): Verbs {
  const run = ({ request, response, path }: Exchange): void => {
    response.setHeader("Cache-Control", "no-store");
    request.url = path.slice(prefix.length);
    rpc(request, response);
  };
  return new Map([["POST", { run }]]);
}
