import type { IncomingMessage, ServerResponse } from "node:http";
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { http as httpRule } from "../../../gen/google/api/annotations_pb.js";
import { Failure } from "../../contract/failure.ts";
import { methodNotAllowed } from "./failure.ts";
import type { Exchange, Handler, Verbs } from "./handler.ts";

export interface Router {
  /** @throws Failure not_found or method_not_allowed */
  find(path: string, exchange: Pick<Exchange, "request" | "response">): Handler;
  /**
   * Name of the trace's span: one of the service's own routes, or `HTTP` for any other path, so the number of names is
   * bounded. Undefined for requests that leave no trace.
   */
  spanName(path: string, verb: string | undefined): string | undefined;
}

/**
 * Creates a router for fixed paths and for templates such as `/v1/models/{model}`, whose braces stand for one segment.
 * @param others finds the handlers of paths that `routes` does not list; it may set headers
 */
export function createRouter(
  routes: ReadonlyMap<string, Verbs>,
  others: (path: string, response: ServerResponse) => Verbs | undefined,
): Router {
  const templates = [...routes.keys()].filter((route) => route.includes("{"));
  const patterns = templates.map((route) => ({ route, pattern: new RegExp(`^${route.replace(/\{\w+\}/, "[^/]+")}$`) }));
  const routeOf = (path: string) =>
    routes.has(path) ? path : (patterns.find(({ pattern }) => pattern.test(path))?.route ?? "");
  return {
    find(path, { request, response }) {
      const verbs = routes.get(routeOf(path)) ?? others(path, response);
      if (!verbs) throw new Failure("not_found");
      const handler = verbs.get(methodOf(request));
      if (handler) return handler;
      const allow = [...verbs.keys()].map((verb) => (verb === "GET" ? "GET, HEAD" : verb)).join(", ");
      response.setHeader("Allow", allow);
      throw methodNotAllowed(allow);
    },
    spanName(path, verb = "") {
      const route = routeOf(path);
      const handler = routes.get(route)?.get(verb === "HEAD" ? "GET" : verb);
      if (!handler) return "HTTP";
      return handler.label && `${verb} ${route}`;
    },
  };
}

/** HEAD is served as GET: Node leaves out the body. */
function methodOf({ method = "" }: IncomingMessage): string {
  return method === "HEAD" ? "GET" : method;
}

/**
 * Reads the path and HTTP method of an RPC method from its `google.api.http` annotation.
 * @throws TypeError when there is no get or post annotation
 */
export function httpRoute(method: DescMethod): { path: string; verb: string } {
  const { pattern } = getOption(method, httpRule);
  if (pattern.case !== "get" && pattern.case !== "post")
    throw new TypeError(`${method} needs a google.api.http annotation with get or post.`);
  return { path: pattern.value, verb: pattern.case.toUpperCase() };
}

/**
 * Splits a request target in origin or absolute form into path and query (RFC 9112, section 3.2). In the path, escapes
 * of characters that mean the same without one are decoded.
 */
export function splitTarget(target: string): { path: string; query: string } {
  const origin = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?]*/i, "");
  const at = origin.indexOf("?");
  const path = at < 0 ? origin : origin.slice(0, at);
  return { path: path.includes("%") ? decodePlain(path) : path, query: at < 0 ? "" : origin.slice(at + 1) };
}

/** Unreserved characters (RFC 3986, section 2.3), and the colon, which separates nothing in a path. */
const PLAIN = /[\w.~:-]/;

/** Leaves other escapes as they are: `%2F` is no separator, and no path of the service has one. */
function decodePlain(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (triplet, digits) => {
    const character = String.fromCharCode(Number.parseInt(digits, 16));
    return PLAIN.test(character) ? character : triplet;
  });
}
