import type { IncomingMessage } from "node:http";
import { type DescMethod, type DescService, getOption } from "@bufbuild/protobuf";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import { http as httpRule } from "../../../gen/google/api/annotations_pb.js";
import { Failure } from "../../contract/failure.ts";
import { createJsonCounter } from "../../overload/value-count.ts";
import type { Authenticate } from "../call/authenticate.ts";
import type { Format, Run } from "../call/call.ts";
import { flatFailure, jsonReply } from "../call/json-reply.ts";
import { methodsOf } from "../call/methods.ts";
import { noticeHeader } from "../call/notices.ts";
import type { MethodRoute } from "../call/route.ts";
import { unknownNotices } from "../call/unknown-members.ts";
import { decodeBody, decodeQuery } from "./decode.ts";
import { encode } from "./encode.ts";
import { withPathFields } from "./path.ts";
import { EVENTS } from "./stream.ts";

/** JSON and server-sent events of the public contract. */
export const REST: Format = {
  form: { name: "rest", isWrapped: false },
  head({ request, query }, { desc }) {
    if (request.method !== "POST") return { decoded: { request: decodeQuery(desc.input, new URLSearchParams(query)) } };
    checkBodyHeaders(request);
    return NOTHING;
  },
  counter: createJsonCounter,
  decode: (body, { desc }) => decodeBody(desc.input, body),
  reply: ({ desc }, message) => jsonReply(200, encode(desc.output, message)),
  events: () => EVENTS,
  failure: flatFailure,
};

/** The same for answers without a place for notices. */
const NOTED: Format = { ...REST, headers: ({ unknown }) => noticeHeader(unknownNotices(unknown)) };

const NOTHING = {};

export type HttpRoute = MethodRoute & { readonly path: string; readonly verb: string };

export function restRoutes(runs: Record<keyof typeof GenerationService.method, Run>, authenticate: Authenticate) {
  return methodsOf([GenerationService]).map((method): HttpRoute => {
    const found = httpRoute(method.desc);
    const run = withPathFields(method.desc, found.path, runs[method.desc.localName as keyof typeof runs]);
    return { ...found, transport: "rest", method, format: method.takesPrompt ? REST : NOTED, authenticate, run };
  });
}

/** The routes of a service that describes another API. A method that streams describes the stream of the same path. */
export function foreignRoutes(
  service: DescService,
  runs: Readonly<Record<string, Run>>,
  shared: Pick<MethodRoute, "format" | "authenticate">,
): HttpRoute[] {
  return methodsOf([service]).flatMap((method): HttpRoute[] => {
    const run = runs[method.desc.localName];
    return run ? [{ ...httpRoute(method.desc), transport: "rest", method, run, ...shared }] : [];
  });
}

/**
 * Reads the path and HTTP method of an RPC method from its `google.api.http` annotation.
 * @throws TypeError when there is no get or post annotation
 */
function httpRoute(method: DescMethod): Pick<HttpRoute, "path" | "verb" | "span" | "attributes"> {
  const { pattern } = getOption(method, httpRule);
  if (pattern.case !== "get" && pattern.case !== "post")
    throw new TypeError(`${method} needs a google.api.http annotation with get or post.`);
  const verb = pattern.case.toUpperCase();
  return { path: pattern.value, verb, span: `${verb} ${pattern.value}`, attributes: { "http.request.method": verb } };
}

/**
 * Checks the type and the encoding of a body that must be JSON.
 * @throws Failure unsupported_compression or unsupported_media_type
 */
export function checkBodyHeaders({ headers }: IncomingMessage): void {
  // What most callers send.
  if (headers["content-type"] === "application/json" && headers["content-encoding"] === undefined) return;
  const [type = "", ...parameters] = (headers["content-type"] ?? "").toLowerCase().split(";");
  const charset = parameters.map((text) => text.trim()).find((text) => text.startsWith("charset="));
  const encoding = (headers["content-encoding"] ?? "identity").toLowerCase();
  if (encoding !== "identity") throw new Failure("unsupported_compression");
  if (type.trim() !== "application/json" || (charset && !/^charset="?utf-?8"?$/.test(charset)))
    throw new Failure("unsupported_media_type");
}
