import {
  StreamGenerateResponse_DoneSchema,
  StreamGenerateResponse_ToolCallSchema,
  TraceStepSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import { failureJson } from "../../contract/failure-json.ts";
import type { GenerateEvent } from "../../generate/request-context.ts";
import { COMMENT, type EventFormat, SSE_HEADERS } from "../call/format.ts";
import { encode } from "./encode.ts";

/** The format of the events of `/v1/generate:stream`. The event `open` is a comment. */
export const EVENTS: EventFormat = {
  headers: SSE_HEADERS,
  comment: COMMENT,
  event: eventText,
  end: (requestId, failure) => ({
    body: failure ? `event: error\ndata: ${failureJson(failure, requestId)}\n\n` : "",
  }),
};

function eventText(event: GenerateEvent): string {
  switch (event.type) {
    case "open":
      return COMMENT;
    case "delta":
      return `event: delta\ndata: {"text":${JSON.stringify(event.text)}}\n\n`;
    case "trace":
      return `event: trace\ndata: {"step":${encode(TraceStepSchema, event.step)}}\n\n`;
    case "tool_call":
      return `event: tool_call\ndata: ${encode(StreamGenerateResponse_ToolCallSchema, event.call)}\n\n`;
    case "done":
      return `event: done\ndata: ${encode(StreamGenerateResponse_DoneSchema, event.done)}\n\n`;
  }
}
