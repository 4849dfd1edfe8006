import { GenerateResponseSchema } from "../../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../../admission/authenticate.ts";
import type { Config } from "../../config/config.ts";
import { encode } from "./encode.ts";
import type { Exchange } from "./handler.ts";
import { sendJson } from "./json-response.ts";
import { type ReceiveParts, receive } from "./receive.ts";
import { writeEvents } from "./sse.ts";
import { EVENTS } from "./stream.ts";

export interface GenerateParts extends ReceiveParts {
  readonly stream: Config["stream"];
}

/** Serves `POST /v1/generate`, or `POST /v1/generate:stream` when `streamed`. */
export async function generate(
  parts: GenerateParts,
  exchange: Exchange,
  caller: Caller,
  streamed: boolean,
): Promise<void> {
  const { generation } = parts.services;
  const { request, context } = await receive(parts, exchange, caller, { format: "rest", streamed });
  // Returned and not awaited: a function that waits for the end of a stream holds 0.6 KB.
  if (streamed) return writeEvents(exchange, generation.generate(request, context, true), EVENTS, parts.stream);
  sendJson(exchange, 200, encode(GenerateResponseSchema, await generation.generateWhole(request, context)));
}
