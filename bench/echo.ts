/**
 * A bare connect-node server that answers with the messages of Chorus and calls no upstream: what the RPC library
 * itself costs.
 *   node bench/echo.ts HTTP1_PORT HTTP2_PORT
 */
import { createServer as createHttp1 } from "node:http";
import { createServer as createHttp2 } from "node:http2";
import { setInterval } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import {
  GenerateResponseSchema,
  GenerationService,
  StreamGenerateResponseSchema,
} from "../gen/chorus/v1/generation_pb.js";
import { SCRIPTS } from "./answer.ts";
import { ECHO_ANSWER, ECHO_END } from "./rpc-requests.ts";

type StreamMessage = MessageInitShape<typeof StreamGenerateResponseSchema>;

function routes(router: ConnectRouter): void {
  router.rpc(GenerationService.method.generate, () => create(GenerateResponseSchema, ECHO_ANSWER));
  router.rpc(GenerationService.method.streamGenerate, streamWords);
}

/** Sends the paced script: a token in a message each 20 ms, then the end. */
async function* streamWords(): AsyncGenerator<StreamMessage> {
  const { tokens, intervalMs } = SCRIPTS.paced;
  const rest = tokens.values();
  for await (const _ of setInterval(intervalMs)) {
    const { value, done } = rest.next();
    if (done) break;
    yield create(StreamGenerateResponseSchema, { event: { case: "delta", value: { text: value } } });
  }
  yield create(StreamGenerateResponseSchema, { event: { case: "done", value: ECHO_END } });
}

const [http1Port = "", http2Port = ""] = process.argv.slice(2);
const handler = connectNodeAdapter({ routes });
createHttp1(handler).listen(Number(http1Port), "127.0.0.1");
createHttp2({ maxSessionMemory: 64 }, handler).listen(Number(http2Port), "127.0.0.1");
