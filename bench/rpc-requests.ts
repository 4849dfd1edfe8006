import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  FinishReason,
  GenerateRequestSchema,
  GenerateResponseSchema,
  GenerationService,
  StreamGenerateResponseSchema,
} from "../gen/chorus/v1/generation_pb.js";
import { countTokens } from "./answer.ts";
import { createEnvelopeReader, type Envelope, envelope } from "./envelopes.ts";
import { http1Target } from "./http1.ts";
import { type Http2Request, http2Target } from "./http2.ts";
import type { Target } from "./load.ts";
import { checkAnswer, type Shape, scriptOf } from "./requests.ts";

/** Binary messages in each case. Streams only over HTTP/2. */
export type Protocol = "Connect HTTP/1.1" | "Connect HTTP/2" | "gRPC";

/** What the echoes end a stream with. */
export const ECHO_END = {
  id: "gen_00000000000000000000000000000000",
  requestId: "req_00000000000000000000000000000000",
  usage: { inputTokens: 20, outputTokens: 120, credits: 0.05 },
  finishReason: FinishReason.STOP,
};

/** What the echoes answer to a unary call. */
export const ECHO_ANSWER = { ...ECHO_END, answer: scriptOf("unary").tokens.join(""), latencyMs: 12 };

/** Flag of the envelope that ends a Connect stream. */
const END_STREAM = 2;

/** A `Generate` or `StreamGenerate` call in one of the protocols. */
export function rpcTarget(port: number, protocol: Protocol, shape: Shape, apiKey: string): Target {
  const unary = shape === "unary";
  const message = toBinary(GenerateRequestSchema, create(GenerateRequestSchema, { prompt: scriptOf(shape).prompt }));
  const path = `/${GenerationService.typeName}/${unary ? "Generate" : "StreamGenerate"}`;
  const grpc = protocol === "gRPC";
  const enveloped = grpc || !unary;
  const check = checkAnswer(shape, unary ? (body) => answerOf(body, grpc) : deltas);
  const type = grpc ? "application/grpc+proto" : unary ? "application/proto" : "application/connect+proto";
  const special: Record<string, string> = grpc ? { te: "trailers" } : { "connect-protocol-version": "1" };
  const headers = { "content-type": type, "x-api-key": apiKey, ...special };
  if (protocol === "Connect HTTP/1.1") {
    const ending = scriptOf(shape).tokens.at(-1) ?? "";
    const { "content-type": contentType, ...others } = headers;
    return http1Target({
      port,
      path,
      headers: { "Content-Type": contentType, ...others },
      body: message,
      ending,
      check,
    });
  }
  const request: Http2Request = {
    port,
    path,
    headers,
    body: enveloped ? envelope(message) : Buffer.from(message),
    grpc,
    check,
  };
  return http2Target(unary ? request : { ...request, createCounter: createStreamCounter });
}

/** Counts tokens in the messages only: a length in an envelope may have the value of the mark. */
function createStreamCounter(): (bytes: Buffer) => number {
  const read = createEnvelopeReader();
  return (bytes) => read(bytes).reduce((sum, envelope) => sum + tokensOf(envelope), 0);
}

/** A delta is a message in a message in the first field: tag, length, tag, length, text. */
function tokensOf({ flags, message }: Envelope): number {
  if (flags !== 0 || message[0] !== 0x0a) return 0;
  const inner = afterVarint(message, 1);
  return countTokens(message.subarray(afterVarint(message, inner + 1)));
}

function afterVarint(bytes: Buffer, at: number): number {
  let end = at;
  while ((bytes[end] ?? 0) >= 0x80) end++;
  return end + 1;
}

function answerOf(body: Buffer, enveloped: boolean): string {
  const message = enveloped ? createEnvelopeReader()(body)[0]?.message : body;
  return fromBinary(GenerateResponseSchema, message ?? Buffer.alloc(0)).answer;
}

function deltas(body: Buffer): string {
  return createEnvelopeReader()(body)
    .filter(({ flags }) => (flags & END_STREAM) === 0)
    .map(({ message }) => fromBinary(StreamGenerateResponseSchema, message).event)
    .map((event) => (event.case === "delta" ? event.value.text : ""))
    .join("");
}
