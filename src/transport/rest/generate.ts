import { GenerateResponseSchema } from "../../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../../accounts/keys.ts";
import type { Config } from "../../config/config.ts";
import { encode } from "./encode.ts";
import { createEvents } from "./events.ts";
import type { Exchange } from "./handler.ts";
import { sendJson } from "./json-response.ts";
import { type ReceiveParts, receive } from "./receive.ts";
import { writeEvents } from "./sse.ts";

export interface GenerateParts extends ReceiveParts {
  readonly stream: Config["stream"];
}

/** Serves `POST /v1/generate`, or `POST /v1/generate:stream` when `streamed`. */
export function generate(parts: GenerateParts, exchange: Exchange, caller: Caller, streamed: boolean): Promise<void> {
  const { stream, services } = parts;
  return receive(parts, exchange, caller, { format: "rest", streamed }, async ({ request, context }) => {
    if (streamed) {
      const format = createEvents(exchange.requestId);
      const events = services.generation.generate(request, context, true);
      await writeEvents(exchange, events, { ...stream, format });
    } else {
      const answer = await services.generation.generateWhole(request, context);
      sendJson(exchange, 200, encode(GenerateResponseSchema, answer));
    }
  });
}
