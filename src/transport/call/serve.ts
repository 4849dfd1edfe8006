import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Config } from "../../config/config.ts";
import { CallerGone } from "../../contract/endings.ts";
import { Failure, toFailure } from "../../contract/failure.ts";
import type { WorkspaceRequests } from "../../overload/workspace-requests.ts";
import { errorFacts, type Log } from "../../telemetry/log.ts";
import { annotate, traceRequest } from "../../telemetry/tracing.ts";
import { connectionOf, refuseExcess } from "../socket/connections.ts";
import { Call, type FailureFormat, streamOf } from "./call.ts";
import { checkHead, hasBody } from "./check-head.ts";
import { callerOf } from "./identity.ts";
import { flatFailure } from "./json-reply.ts";
import { type Bodies, dropBody, receive } from "./receive.ts";
import type { Report } from "./report.ts";
import type { Door, MethodRoute, PageRoute, Route } from "./route.ts";
import type { Services } from "./services.ts";
import { abortResponse, writeRefusal, writeReply } from "./write.ts";
import { writeStream } from "./write-stream.ts";

export interface ServeParts {
  readonly services: Pick<Services, "generation">;
  readonly bodies: Bodies;
  readonly stream: Config["stream"];
  readonly report: Report;
  readonly log: Log;
  /** Counts the open requests of each workspace. Undefined: they are not bounded. */
  readonly open?: WorkspaceRequests;
}

/** Creates the function that serves each request of a listener, on Node's HTTP servers 1.1 and 2. */
export function createServe(door: Door, parts: ServeParts): RequestListener {
  const server = new CallServer(door, parts);
  return (request, response) => {
    // "close" follows every error, and ends the call.
    request.on("error", ignore);
    response.on("error", ignore);
    server.begin(request, response).catch((error: unknown) => {
      parts.log.error({ cause: errorFacts(error) }, "could not send a response");
      abortResponse(response);
    });
  };
}

class CallServer {
  readonly #door: Door;
  readonly #parts: ServeParts;

  constructor(door: Door, parts: ServeParts) {
    this.#door = door;
    this.#parts = parts;
  }

  begin(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = new Call(request, response, this.#door.transport);
    let route: Route;
    try {
      if (!streamOf(response)) checkHead(request);
      route = this.#door.find(call);
    } catch (error) {
      const attributes = { "http.request.method": request.method };
      return traceRequest("HTTP", request.headers, attributes, () => this.#refuse(call, error));
    }
    if ("send" in route) return this.#sendPage(call, route);
    const found = route;
    return traceRequest(route.span, request.headers, route.attributes, () => this.#serve(call, found));
  }

  /** The steps of a request. One function waits for all of them, because each that waits takes time and memory. */
  async #serve(call: Call, route: MethodRoute): Promise<void> {
    const { bodies, stream, report } = this.#parts;
    const { method } = route;
    call.transport = route.transport;
    call.method = method.label;
    call.format = route.format;
    // An answer is not worked out for a caller that has closed its side. Over HTTP/2, that closes the response.
    call.follow(method.takesPrompt && !streamOf(call.response) ? connectionOf(call.request).closed : undefined);
    try {
      if ("scope" in method.requirement) refuseExcess(call.request, call.response);
      const identity = route.authenticate(call, method.requirement);
      call.identity = identity instanceof Promise ? await identity : identity;
      this.#note(call);
      const turn = this.#enter(call, route);
      if (turn) await turn;
      const decoded = await receive(call, method, route.format, bodies);
      call.unknown = decoded;
      const outcome = route.run(decoded, call);
      if (typeof outcome === "function") await writeStream(call, outcome, call.format.events(method), stream);
      else writeReply(call, call.format.reply(method, await outcome), stream.stallMs);
      report(call, call.streamFailure);
    } catch (error) {
      await this.#refuse(call, error);
    } finally {
      call.end();
    }
    annotate({ "http.response.status_code": call.response.statusCode });
  }

  /** Notes who sends a call. @throws Failure overloaded */
  #note(call: Call): void {
    const { caller, actor } = call.identity;
    connectionOf(call.request).know(actor?.kind === "operator" ? "operator" : "caller");
    if (!caller) return;
    call.facts.workspaceId = caller.workspaceId;
    call.facts.keyId = caller.keyId;
    call.leave = this.#parts.open?.begin(caller.workspaceId);
  }

  /** Waits for the turn of a prompt's workspace. Undefined: it may begin now. @throws Failure */
  #enter(call: Call, { method }: MethodRoute): Promise<void> | undefined {
    if (!method.takesPrompt) return undefined;
    const { generation } = this.#parts.services;
    const { workspaceId } = callerOf(call.identity);
    call.limits = () => generation.limits(workspaceId);
    call.isRepeatable = method.isRepeatable && call.header("idempotency-key") !== undefined;
    return generation.enter(callerOf(call.identity), method.isCharged && !call.isRepeatable);
  }

  async #sendPage(call: Call, page: PageRoute): Promise<void> {
    const { request, response } = call;
    call.follow();
    response.setHeader("X-Request-Id", call.requestId);
    try {
      refuseExcess(request, response);
      if (!page.readsBody && hasBody(request)) await dropBody(call);
      await page.send(call);
    } catch (error) {
      await this.#refuse(call, error);
    } finally {
      call.end();
    }
  }

  /** Reports a call that has failed, and sends the failure, unless the caller has left. */
  async #refuse(call: Call, error: unknown): Promise<void> {
    const { report, stream } = this.#parts;
    report(call, error);
    const { response } = call;
    if ((error instanceof CallerGone && !call.isLate) || response.headersSent || response.destroyed)
      return abortResponse(response);
    const failure = error instanceof CallerGone ? (call.streamFailure ?? new Failure("timed_out")) : toFailure(error);
    const isMalformed = failure.kind === "malformed_request";
    if (isMalformed && !streamOf(response)) response.setHeader("Connection", "close");
    const format = call.format ?? (isMalformed ? FLAT : this.#door.fallback(call));
    const reply = format.failure(failure, call);
    // Those of `call.format` are added to every response.
    const others = call.format ? [] : (format.headers?.(call) ?? []);
    await writeRefusal(call, { ...reply, headers: [...reply.headers, ...others] }, stream.stallMs);
  }
}

/** Bytes that are no valid HTTP request have no protocol. */
const FLAT: FailureFormat = { failure: flatFailure };

function ignore(): void {}
