import { ChatService } from "../../../gen/chorus/v1/chat_pb.js";
import {
  GenerationService,
  MetricsRequestSchema,
  MetricsResponseSchema,
  QuotasResponseSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../../admission/authenticate.ts";
import { Failure } from "../../contract/failure.ts";
import type { Services } from "../../service/services.ts";
import { type MethodRule, methodRules } from "../call/methods.ts";
import { authenticate, callerOf, noteCaller } from "../call/tracked-request.ts";
import { completeChat } from "../openai/chat.ts";
import { sendModel, sendModels } from "../openai/models.ts";
import { createDocs } from "../pages/reference.ts";
import { decodeQuery } from "./decode.ts";
import { encode } from "./encode.ts";
import { type GenerateParts, generate } from "./generate.ts";
import type { Exchange, Handler, Verbs } from "./handler.ts";
import { sendJson } from "./json-response.ts";
import { httpRoute } from "./routes.ts";
import type { WorkspaceRequests } from "./workspace-requests.ts";

interface Parts extends GenerateParts {
  readonly services: Services;
  readonly open: WorkspaceRequests;
}

type Serve = (exchange: Exchange, caller: Caller) => Promise<void>;

/** Creates the handlers of every fixed path: the callers' methods, the probes and the documentation. */
export function createHandlers(parts: Parts): ReadonlyMap<string, Verbs> {
  const { services } = parts;
  const paths = new Map<string, Map<string, Handler>>();
  const add = (path: string, verb: string, handler: Handler) => {
    const verbs = paths.get(path) ?? new Map<string, Handler>();
    paths.set(path, verbs.set(verb, handler));
  };
  add("/healthz", "GET", { run: (exchange) => sendJson(exchange, 200, '{"status":"ok"}') });
  add("/readyz", "GET", {
    run(exchange) {
      if (services.ready()) sendJson(exchange, 200, '{"status":"ok"}');
      else sendJson(exchange, 503, '{"status":"unavailable"}');
    },
  });
  add("/", "GET", { run: leadToConsole });
  for (const [path, send] of createDocs())
    add(path, "GET", { run: ({ request, response }) => send(request, response) });

  const chat: Serve = (exchange, caller) => completeChat(parts, exchange, caller);
  const methods: Record<keyof (typeof GenerationService.method & typeof ChatService.method), Serve> = {
    generate: (exchange, caller) => generate(parts, exchange, caller, false),
    streamGenerate: (exchange, caller) => generate(parts, exchange, caller, true),
    async quotas(exchange, caller) {
      sendJson(exchange, 200, encode(QuotasResponseSchema, await services.quotas(caller)));
    },
    async metrics(exchange, caller) {
      const request = decodeQuery(MetricsRequestSchema, new URLSearchParams(exchange.query));
      sendJson(exchange, 200, encode(MetricsResponseSchema, await services.metrics(request, caller)));
    },
    createChatCompletion: chat,
    streamChatCompletion: chat,
    listModels: sendModels,
    getModel: sendModel,
  };
  for (const [method, rule] of methodRules([GenerationService, ChatService])) {
    const { path, verb } = httpRoute(method);
    add(path, verb, withCaller(parts, rule, methods[method.localName as keyof typeof methods]));
  }
  return paths;
}

/** Sends a browser to the console. @throws Failure not_found for a program, which has nothing to do there */
function leadToConsole({ request, response }: Exchange): void {
  response.setHeader("Vary", "Accept");
  if (!request.headers.accept?.includes("text/html")) {
    throw new Failure("not_found", {
      message: "There is nothing at /. The API is below /v1, its reference at /docs, the console at /console.",
    });
  }
  response.writeHead(302, { Location: "/console", "Cache-Control": "no-store" }).end();
}

/** Authenticates a request before `serve`. */
function withCaller({ services, open }: Parts, { requirement, label }: MethodRule, serve: Serve): Handler {
  return {
    label,
    async run(exchange) {
      const { headers } = exchange.request;
      const identity = await authenticate(services, requirement, (name) => headers[name]?.toString());
      noteCaller(exchange, identity);
      const caller = callerOf(identity);
      exchange.leave = open.begin(caller.workspaceId);
      return serve(exchange, caller);
    },
  };
}
