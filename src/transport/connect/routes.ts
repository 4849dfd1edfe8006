import { create, type DescMethod, type DescService } from "@bufbuild/protobuf";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import type { Actor } from "../../admin/shared/audit.ts";
import { Failure, type FailureKind } from "../../contract/failure.ts";
import { SUPPORTED_ENCODINGS } from "../../contract/failure-json.ts";
import { tooLarge } from "../../overload/body-bounds.ts";
import { createValueCounter } from "../../overload/value-count.ts";
import type { Authenticate } from "../call/authenticate.ts";
import type { Call, Format, Run } from "../call/call.ts";
import type { Reply } from "../call/format.ts";
import { actorOf } from "../call/identity.ts";
import { ADMIN_SERVICES, methodsOf } from "../call/methods.ts";
import type { MethodRoute } from "../call/route.ts";
import { runGeneration, type Services } from "../call/services.ts";
import { decodeMessage } from "./decode.ts";
import { connectUnary, serialize, type Wire, wireOf } from "./encode.ts";
import { toConnectError } from "./failure.ts";
import { type Protocols, readHead, selectWire } from "./head.ts";
import { streamOfMessages } from "./stream.ts";

interface Options {
  readonly protocols: Protocols;
  readonly authenticate: Authenticate;
}

/**
 * Creates the function that finds the route of a path over Connect, gRPC and gRPC-Web: the methods of callers, owners
 * and operators. It replaces connect-node's handlers, which cost more than everything else of a call together
 * (docs/decisions/transport.md).
 * @returns a function that returns undefined for an unknown path, and throws Failure method_not_allowed or
 *   unsupported_media_type
 */
export function connectRoutes(
  services: Services,
  { protocols, authenticate }: Options,
): (call: Call, path: string) => MethodRoute | undefined {
  const formats = new Map<Wire, Format>();
  const formatOf = (wire: Wire): Format => {
    const format = formats.get(wire) ?? createFormat(wire, protocols);
    formats.set(wire, format);
    return format;
  };
  const found = new Map<string, Omit<MethodRoute, "format">>();
  const add = (service: DescService, runOf: (desc: DescMethod) => Run) => {
    for (const method of methodsOf([service])) {
      const { name: span } = method;
      const run = runOf(method.desc);
      found.set(`/${span}`, { span, attributes: { "rpc.method": span }, transport: "rpc", method, authenticate, run });
    }
  };
  const runs = runGeneration(services);
  add(GenerationService, ({ localName }) => runs[localName as keyof typeof runs]);
  for (const [service, methods] of adminServices(services)) add(service, (desc) => withActor(methods, desc));

  return (call, path) => {
    const route = found.get(path);
    return route && { ...route, format: formatOf(selectWire(route.method, call, protocols)) };
  };
}

type AdminMethods = Readonly<Record<string, (request: never, actor: Actor) => Promise<Record<string, unknown>>>>;

function adminServices(services: Services): [DescService, AdminMethods][] {
  const { workspaces, credits, keys, caps, usage, activity, operations, alerts, members } = services;
  const methods = [workspaces, credits, keys, caps, usage, activity, operations, alerts, members];
  return ADMIN_SERVICES.map((service, i) => [service, (methods[i] ?? {}) as AdminMethods]);
}

function withActor(methods: AdminMethods, { localName, output }: DescMethod): Run {
  return async ({ request }, { identity }) => {
    const response = methods[localName]?.(request as never, actorOf(identity));
    if (!response) throw new Failure("internal");
    return create(output, await response);
  };
}

function createFormat(wire: Wire, protocols: Protocols): Format {
  const { json, enveloped, contentType } = wire;
  const form = { name: json ? ("json" as const) : ("proto" as const), isWrapped: enveloped };
  return {
    form,
    head: (call, method) => readHead(call, method, wire, protocols),
    counter: ({ desc, maxBytes }) =>
      createValueCounter(desc.input, contentType, (length) => {
        if (length > maxBytes) throw tooLarge(maxBytes);
      }),
    decode: (body, { desc }) => decodeMessage(desc.input, body, form),
    reply: ({ desc }, message) => wire.reply(serialize(desc, message, json)),
    events: (method) => streamOfMessages(wire, method),
    failure: (failure, { requestId }) => failureOf(wire, failure, requestId),
  };
}

function failureOf(wire: Wire, failure: Failure, requestId: string): Reply {
  const reply = wire.reply(undefined, toConnectError(failure, requestId));
  if (failure.kind !== "unsupported_compression") return reply;
  return { ...reply, headers: [...reply.headers, wire.acceptHeader, SUPPORTED_ENCODINGS] };
}

/** Failures of Connect requests that name no stream of the method, so their status is not the 200 of a stream. */
const NO_STREAM: ReadonlySet<FailureKind> = new Set(["unsupported_media_type", "method_not_allowed"]);

/** The failure of a request that no method serves, in the protocol that its content type names, or else in JSON. */
export function connectFallback({ grpc }: Pick<Protocols, "grpc">, call: Call): Pick<Format, "failure"> {
  const wire = wireOf(call.header("content-type"), "stream");
  return {
    failure(failure, { requestId }) {
      const error = toConnectError(failure, requestId);
      const isInProtocol = wire?.protocol === "connect" ? !NO_STREAM.has(failure.kind) : grpc;
      if (wire && isInProtocol) return wire.reply(undefined, error);
      return { ...connectUnary(true).reply(undefined, error), status: failure.row.http };
    },
  };
}
