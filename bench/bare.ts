/**
 * Answers `Generate` with the messages of Chorus on bare `node:http` and `node:http2`: the least that HTTP and the
 * codecs cost. It calls no upstream and does not read the method's name.
 *   node bench/bare.ts HTTP1_PORT HTTP2_PORT
 */
import { createServer as createHttp1, type RequestListener } from "node:http";
import { createServer as createHttp2 } from "node:http2";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { GenerateRequestSchema, GenerateResponseSchema } from "../gen/chorus/v1/generation_pb.js";
import { createEnvelopeReader, envelope } from "./envelopes.ts";
import { ECHO_ANSWER } from "./rpc-requests.ts";

const answer: RequestListener = (request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks);
    const grpc = request.headers["content-type"]?.startsWith("application/grpc") ?? false;
    fromBinary(GenerateRequestSchema, (grpc ? createEnvelopeReader()(body)[0]?.message : body) ?? Buffer.alloc(0));
    const message = toBinary(GenerateResponseSchema, create(GenerateResponseSchema, ECHO_ANSWER));
    if (grpc) {
      response.writeHead(200, { "content-type": "application/grpc+proto" });
      response.addTrailers({ "grpc-status": "0" });
      response.end(envelope(message));
    } else {
      response.writeHead(200, { "content-type": "application/proto", "content-length": message.length });
      response.end(message);
    }
  });
};

const [http1Port = "", http2Port = ""] = process.argv.slice(2);
createHttp1(answer).listen(Number(http1Port), "127.0.0.1");
createHttp2({ maxSessionMemory: 64 }, answer as unknown as Parameters<typeof createHttp2>[1]).listen(
  Number(http2Port),
  "127.0.0.1",
);
