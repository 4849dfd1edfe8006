import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { FailureDetailSchema } from "../../gen/chorus/v1/failure_pb.js";
import {
  EffortSchema,
  FinishReasonSchema,
  type GenerateRequest,
  GenerateRequestSchema,
  GenerationService,
  Role,
  type Usage,
} from "../../gen/chorus/v1/generation_pb.js";
import { numberOf, wordOf } from "../../src/contract/json-names.ts";
import { transports } from "../helpers/rpc.ts";
import { readEvents, type TestService } from "../helpers/service.ts";

export interface Request {
  prompt?: string;
  messages?: { role: "user"; content: string }[];
  effort?: "low" | "medium" | "high";
  max_tokens?: number;
  intelligence_trace?: boolean;
}

/** What a caller gets, in the same form for every transport. */
export interface Outcome {
  text: string;
  /** Absent when the request failed. */
  end?: {
    id: string;
    finish: string;
    usage: { input: number; output: number; cached: number; credits: number };
    notices: string[];
  };
  /** `status` is the HTTP status or the Connect code; absent for an error event, which has none. */
  failure?: { code: string; field: string; message: string; requestId: string; status?: number | string };
}

export type Ask = (request: Request) => Promise<Outcome>;

/** Every way to call the service, unary and streamed, by name. */
export function callers(service: TestService): Record<string, Ask> {
  const { "Connect over HTTP/1.1": connect, gRPC } = transports(service.rpcUrl);
  const headers = { "x-api-key": service.apiKey };
  const overConnect = rpc(createClient(GenerationService, connect), headers);
  const overGrpc = rpc(createClient(GenerationService, gRPC), headers);
  return {
    REST: (request) => restUnary(service, request),
    SSE: (request) => restStream(service, request),
    Connect: overConnect.unary,
    "Connect, streamed": overConnect.stream,
    gRPC: overGrpc.unary,
    "gRPC, streamed": overGrpc.stream,
  };
}

interface RestEnd {
  id: string;
  finish_reason: string;
  usage: { input_tokens: number; output_tokens: number; cached_tokens: number; credits: number };
  notices: { code: string }[];
}

interface RestFailure {
  code?: string;
  field?: string;
  message: string;
  request_id: string;
}

async function restUnary(service: TestService, request: Request): Promise<Outcome> {
  const response = await service.post("/v1/generate", { effort: "low", ...request });
  const body = JSON.parse(await response.text());
  return response.ok ? { text: body.answer, end: restEnd(body) } : { text: "", failure: restFailure(body, response) };
}

async function restStream(service: TestService, request: Request): Promise<Outcome> {
  const response = await service.post("/v1/generate:stream", { effort: "low", ...request });
  if (!response.ok) return { text: "", failure: restFailure(JSON.parse(await response.text()), response) };
  let text = "";
  for (const { event, data } of await readEvents(response)) {
    if (event === "delta") text += data.text;
    if (event === "done") return { text, end: restEnd(data as unknown as RestEnd) };
    if (event === "error") return { text, failure: restFailure(data as unknown as RestFailure) };
  }
  return assert.fail("the stream has no end");
}

function restEnd({ id, finish_reason, usage, notices }: RestEnd): NonNullable<Outcome["end"]> {
  const { input_tokens: input, output_tokens: output, cached_tokens: cached, credits } = usage;
  return { id, finish: finish_reason, usage: { input, output, cached, credits }, notices: codes(notices) };
}

function restFailure({ code = "", field = "", message, request_id }: RestFailure, response?: Response) {
  return { code, field, message, requestId: request_id, ...(response ? { status: response.status } : {}) };
}

function rpc(client: Client<typeof GenerationService>, headers: Record<string, string>): { unary: Ask; stream: Ask } {
  const message = ({ prompt = "", messages = [], effort = "low", ...request }: Request): GenerateRequest =>
    create(GenerateRequestSchema, {
      prompt,
      messages: messages.map(({ content }) => ({ role: Role.USER, content })),
      effort: numberOf(EffortSchema, effort),
      intelligenceTrace: request.intelligence_trace ?? false,
      ...(request.max_tokens === undefined ? {} : { maxTokens: request.max_tokens }),
    });
  return {
    async unary(request) {
      try {
        const response = await client.generate(message(request), { headers });
        return { text: response.answer, end: rpcEnd(response) };
      } catch (error) {
        return { text: "", failure: rpcFailure(error) };
      }
    },
    async stream(request) {
      let text = "";
      try {
        for await (const { event } of client.streamGenerate(message(request), { headers })) {
          if (event.case === "delta") text += event.value.text;
          if (event.case === "done") return { text, end: rpcEnd(event.value) };
        }
      } catch (error) {
        return { text, failure: rpcFailure(error) };
      }
      return assert.fail("the stream has no end");
    },
  };
}

function rpcEnd(response: {
  id: string;
  finishReason: number;
  usage?: Usage | undefined;
  notices: { code: string }[];
}): NonNullable<Outcome["end"]> {
  const { inputTokens: input, outputTokens: output, cachedTokens: cached, credits } = response.usage ?? assert.fail();
  return {
    id: response.id,
    finish: wordOf(FinishReasonSchema, response.finishReason),
    usage: { input, output, cached, credits },
    notices: codes(response.notices),
  };
}

function rpcFailure(error: unknown): NonNullable<Outcome["failure"]> {
  assert.ok(error instanceof ConnectError, String(error));
  const [detail] = error.findDetails(FailureDetailSchema);
  const { code, field, requestId } = detail ?? assert.fail(`no detail: ${error.message}`);
  const status = (Code[error.code] ?? "").replace(/\B[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
  return { code, field, message: error.rawMessage, requestId, status };
}

function codes(notices: { code: string }[]): string[] {
  return notices.map(({ code }) => code);
}

/** A lifetime for `beforeAll`: what it registers is undone in `afterAll`, in reverse order. */
export function fileLifetime() {
  const undo: Array<() => void | Promise<void>> = [];
  return {
    onTestFinished: (each: () => void | Promise<void>) => void undo.push(each),
    async end() {
      for (const each of undo.reverse()) await each();
    },
  };
}
