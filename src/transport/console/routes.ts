import type { Config } from "../../config/config.ts";
import { Failure } from "../../contract/failure.ts";
import type { BodyBudget } from "../../overload/body-budget.ts";
import type { Call } from "../call/call.ts";
import type { Route } from "../call/route.ts";
import { methodNotAllowed, routeOf } from "../call/route.ts";
import type { Services } from "../call/services.ts";
import { createPages } from "./pages.ts";
import { personRoutes } from "./people.ts";
import { operatorHandlers, ownerHandlers } from "./sides.ts";

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

type FindMethod = (call: Call, path: string) => Route | undefined;

/**
 * Creates the routes of the console on the public listener: pages, sign-in, and services. Pages hold no secret: the
 * browser keeps the session in a cookie that scripts cannot read, and sends it only to these paths and only from these
 * pages. Owners and operators have sessions of their own; a person has one for both sides.
 * @param methods find the method of a path such as `/<service>/<method>`, for the session in a cookie
 * @returns a function that finds the route of a call, and sets the console's headers; it returns undefined when the
 *   path is not part of the console, and throws Failure not_found or method_not_allowed
 */
export function consoleRoutes(
  services: Pick<Services, "sessions" | "signIn" | "operatorSessions" | "operatorSignIn" | "people">,
  { console: config, stream }: Pick<Config, "console" | "stream">,
  budget: BodyBudget,
  methods: { readonly owner: FindMethod; readonly operator: FindMethod },
): (call: Call) => Route | undefined {
  const { folder, proxies } = config;
  const sendPage = createPages(folder, stream.stallMs);
  const fixed = new Map([
    [`${CONSOLE}/session`, ownerHandlers(services, { budget, proxies })],
    [`${OPERATOR}/session`, operatorHandlers(services, { budget, proxies })],
    ...personRoutes(services.people, proxies),
  ]);
  const prefixes: readonly [prefix: string, find: FindMethod][] = [
    [`${CONSOLE}/rpc`, methods.owner],
    [`${OPERATOR}/rpc`, methods.operator],
  ];

  return (call) => {
    const { path, request, response } = call;
    if (path !== CONSOLE && !path.startsWith(`${CONSOLE}/`)) return undefined;
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    for (const [prefix, find] of prefixes) {
      if (!path.startsWith(`${prefix}/`)) continue;
      if (request.method !== "POST") throw methodNotAllowed(response, "POST");
      response.setHeader("Cache-Control", "no-store");
      const route = find(call, path.slice(prefix.length));
      if (!route) throw new Failure("not_found");
      return route;
    }
    const page = { send: (shown: Call) => sendPage(path.slice(CONSOLE.length) || "/", shown) };
    return routeOf(fixed.get(path) ?? new Map([["GET", page]]), call);
  };
}
