import type { ServerResponse } from "node:http";
import type { Attributes } from "@opentelemetry/api";
import { Failure } from "../../contract/failure.ts";
import type { RequestEnd } from "../../telemetry/telemetry.ts";
import type { Authenticate } from "./authenticate.ts";
import type { Call, FailureFormat, Format, Run } from "./call.ts";
import type { Method } from "./methods.ts";

/** A path that needs no key and writes its response itself: a probe, a page, a sign-in. Its success is not reported. */
export interface PageRoute {
  /** Whether it reads the body of the request. Others are read and dropped before. */
  readonly readsBody?: boolean;
  /** @throws Failure; CallerGone */
  send(call: Call): Promise<void> | void;
}

/** A method of a service, as a door serves it. */
export interface MethodRoute {
  /** Name and attributes of the trace's span. */
  readonly span: string;
  readonly attributes: Attributes;
  readonly transport: RequestEnd["transport"];
  readonly method: Method;
  readonly format: Format;
  readonly authenticate: Authenticate;
  readonly run: Run;
}

export type Route = PageRoute | MethodRoute;

/** The requests of one listener: which paths there are, and how the failure of a request without a path is written. */
export interface Door {
  /** Name in logs and metrics of calls whose route is not known. */
  readonly transport: RequestEnd["transport"];
  /** @throws Failure not_found, method_not_allowed or unsupported_media_type */
  find(call: Call): Route;
  /** How failures of a call are written before its route is known. */
  fallback(call: Call): FailureFormat;
}

export type Verbs = ReadonlyMap<string, Route>;

/** Selects the route of a call by its verb. HEAD is served as GET: Node leaves out the body. @throws Failure */
export function routeOf(verbs: Verbs, { request, response }: Call): Route {
  const { method = "" } = request;
  const route = verbs.get(method === "HEAD" ? "GET" : method);
  if (route) return route;
  throw methodNotAllowed(response, [...verbs.keys()].map((verb) => (verb === "GET" ? "GET, HEAD" : verb)).join(", "));
}

/**
 * The failure of a path that serves only some verbs. It sets the header `Allow`.
 * @param allow the value of the header, such as `GET, HEAD`
 */
export function methodNotAllowed(response: ServerResponse, allow: string): Failure {
  response.setHeader("Allow", allow);
  const message = `This path does not support the method. Use ${allow.replaceAll(", ", " or ")}.`;
  return new Failure("method_not_allowed", { message });
}
