import { create } from "@bufbuild/protobuf";
import { type StreamGenerateResponse, StreamGenerateResponseSchema } from "../../../gen/chorus/v1/generation_pb.js";
import type { GenerateEvent } from "../../generate/request-context.ts";
import type { EventFormat } from "../call/format.ts";
import type { Method } from "../call/methods.ts";
import { envelope, serialize, type Wire } from "./encode.ts";
import { toConnectError } from "./failure.ts";

/** How the events of a stream become messages, each in an envelope. */
export function streamOfMessages({ json, contentType, reply }: Wire, { desc }: Method): EventFormat {
  return {
    headers: ["content-type", contentType],
    event: (event) => envelope(serialize(desc, eventMessage(event), json)),
    end: (requestId, failure) => reply(undefined, failure && toConnectError(failure, requestId)),
  };
}

function eventMessage(event: GenerateEvent): StreamGenerateResponse {
  switch (event.type) {
    case "open":
      return create(StreamGenerateResponseSchema, { event: { case: "open", value: {} } });
    case "delta":
      return create(StreamGenerateResponseSchema, { event: { case: "delta", value: { text: event.text } } });
    case "trace":
      return create(StreamGenerateResponseSchema, { event: { case: "trace", value: { step: event.step } } });
    case "done":
      return create(StreamGenerateResponseSchema, { event: { case: "done", value: event.done } });
  }
}
