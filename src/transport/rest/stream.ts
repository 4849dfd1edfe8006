import { StreamGenerateResponse_DoneSchema, TraceStepSchema } from "../../../gen/chorus/v1/generation_pb.js";
import type { GenerateEvent } from "../../service/request-context.ts";
import { encode } from "./encode.ts";
import { failureJson } from "./failure.ts";
import { COMMENT, type EventFormat } from "./sse.ts";

/** The format of the events of `/v1/generate:stream`. The event `open` is a comment. */
export const EVENTS: EventFormat = {
  event: eventText,
  failure: (failure, requestId) => `event: error\ndata: ${failureJson(failure, requestId)}\n\n`,
};

function eventText(event: GenerateEvent): string {
  switch (event.type) {
    case "open":
      return COMMENT;
    case "delta":
      return `event: delta\ndata: {"text":${JSON.stringify(event.text)}}\n\n`;
    case "trace":
      return `event: trace\ndata: {"step":${encode(TraceStepSchema, event.step)}}\n\n`;
    case "done":
      return `event: done\ndata: ${encode(StreamGenerateResponse_DoneSchema, event.done)}\n\n`;
  }
}
