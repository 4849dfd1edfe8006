import type { IncomingMessage, ServerResponse } from "node:http";
import { LinkedAbort } from "../../concurrency/abort.ts";
import { Failure, type FailureKind, toFailure } from "../../contract/failure.ts";
import { CallerGone } from "../../service/request-context.ts";
import { traceRequest } from "../../telemetry/tracing.ts";
import { checkStatedLength } from "../call/body-bounds.ts";
import type { Requirement } from "../call/methods.ts";
import type { Report } from "../call/report.ts";
import type { Identity } from "../call/tracked-request.ts";
import { SUPPORTED_ENCODINGS } from "../rest/failure.ts";
import { connectionOf, refuseExcess } from "../socket/connections.ts";
import { type Bodies, readRequest } from "./body.ts";
import { type Call, createCall, isLate } from "./call.ts";
import { toConnectError } from "./connect-error.ts";
import { parseMessage } from "./decode.ts";
import { type Method, serialize } from "./method.ts";
import { allowedMethods, type Protocols, readTerms, selectWire, type Terms } from "./negotiate.ts";
import { abortResponse, type Exchange, sendReply } from "./response.ts";
import { sendMessages } from "./stream.ts";
import { connectUnary, type Reply, type Wire, wireOf } from "./wire.ts";

export interface ServeOptions {
  readonly protocols: Protocols;
  /** Authenticates a call before its body is read. @throws Failure */
  authenticate(call: Call, requirement: Requirement): Promise<Identity>;
  readonly bodies: Bodies;
  /** Time after which a reader that takes nothing counts as gone, in milliseconds. */
  readonly stallMs: number;
  /** Time after the admission at which the head of a stream goes out, in milliseconds. */
  readonly headersMs: number;
  readonly report: Report;
}

/** Why a call is aborted whose connection closes. One for all, because the stack of an error takes time. */
const GONE = new CallerGone();

/** Serves one call of a method. */
export type ServeMethod = (
  method: Method,
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
) => Promise<void>;

/**
 * Creates the function that serves calls over Connect, gRPC and gRPC-Web. It replaces connect-node's handlers, which
 * cost more than everything else of a call together (docs/decisions/transport.md).
 */
export function createServeMethod(options: ServeOptions): ServeMethod {
  const { protocols, authenticate, bodies, stallMs, headersMs, report } = options;
  return (method, request, response, requestId) => {
    const { requirement } = method.rule;
    // An answer is not worked out for a caller that has closed its side. Over HTTP/2, that closes the response.
    const isGeneration = "scope" in requirement && requirement.scope === "generate";
    const leaves = isGeneration && request.httpVersionMajor === 1;
    const aborting = new LinkedAbort(leaves ? connectionOf(request).closed : undefined);
    const { signal } = aborting;
    response.once("close", () => aborting.abort(GONE));
    const call = createCall(request, requestId, signal);
    call.method = method.rule.label;
    const exchange: Exchange = { request, response, requestId, signal, stallMs };
    return traceRequest(method.name, request.headers, { "rpc.method": method.name }, () =>
      serve(method, exchange, call, aborting),
    );
  };

  async function serve(method: Method, exchange: Exchange, call: Call, aborting: LinkedAbort): Promise<void> {
    const { request, response } = exchange;
    let wire: Wire | undefined;
    let deadline: NodeJS.Timeout | undefined;
    let reply: Reply;
    try {
      wire = selectWire(method, request, protocols);
      const { requirement } = method.rule;
      if ("scope" in requirement) refuseExcess(request, response);
      call.identity = await authenticate(call, requirement);
      connectionOf(request).know(call.identity.actor?.kind === "operator" ? "operator" : "caller");
      checkStatedLength(request.headers["content-length"], method.maxBytes);
      const terms = readTerms(request, wire, protocols);
      if (terms.timeoutMs !== undefined)
        deadline = setTimeout(() => aborting.abort(new Failure("timed_out")), terms.timeoutMs);
      reply = await run(method, exchange, call, terms);
      report(call);
    } catch (error) {
      report(call, error);
      if (error instanceof CallerGone && !isLate(call.signal)) return abortResponse(response);
      if (!wire) response.setHeader("Allow", allowedMethods(method));
      reply = wire ? failedReply(wire, error, call) : refusal(toFailure(error), request, protocols, call.requestId);
    } finally {
      clearTimeout(deadline);
    }
    await sendReply(exchange, reply);
  }

  async function run(method: Method, exchange: Exchange, call: Call, { wire, message }: Terms): Promise<Reply> {
    const input = message
      ? parseMessage(method.desc.input, message, wire.json, method.noticesUnknown ? call.unknown : undefined)
      : await readRequest(exchange, call, method, wire, bodies);
    const result = method.run(input, call);
    if (!("events" in result)) return wire.reply(serialize(method.desc, await result, wire.json));
    const toBytes = (event: unknown) => serialize(method.desc, result.toMessage(event), wire.json);
    const head = { contentType: wire.contentType, facts: call.facts, headersMs };
    const last = await sendMessages(exchange, head, result.events, toBytes);
    const reply = wire.reply();
    return { ...reply, body: Buffer.concat([last, reply.body]) };
  }
}

/** The reply that ends a call with what was thrown. */
function failedReply(wire: Wire, error: unknown, { requestId, signal }: Call): Reply {
  const reply = wire.reply(undefined, toConnectError(error, requestId, signal));
  if (!(error instanceof Failure && error.kind === "unsupported_compression")) return reply;
  return { ...reply, headers: { ...reply.headers, [wire.acceptHeader]: SUPPORTED_ENCODINGS } };
}

/** Failures of Connect requests that name no stream of the method, so their status is not the 200 of a stream. */
const NO_STREAM: ReadonlySet<FailureKind> = new Set(["unsupported_media_type", "method_not_allowed"]);

/** The reply to a request that no method serves, in the protocol that its content type names, or else in JSON. */
export function refusal(
  failure: Failure,
  { headers }: IncomingMessage,
  { grpc }: Pick<Protocols, "grpc">,
  requestId: string,
): Reply {
  const error = toConnectError(failure, requestId);
  const wire = wireOf(headers["content-type"], "stream");
  const isInProtocol = wire?.protocol === "connect" ? !NO_STREAM.has(failure.kind) : grpc;
  if (wire && isInProtocol) return wire.reply(undefined, error);
  return { ...connectUnary(true).reply(undefined, error), status: failure.row.http };
}
