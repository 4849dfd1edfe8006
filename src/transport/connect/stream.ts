import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { StreamGenerateResponseSchema } from "../../../gen/chorus/v1/generation_pb.js";
import type { GenerateEvent } from "../../generate/request-context.ts";
import type { EventFormat } from "../call/format.ts";
import type { Method } from "../call/methods.ts";
import { envelope, serialize, type Wire } from "./encode.ts";
import { toConnectError } from "./failure.ts";

export function streamOfMessages({ json, contentType, reply }: Wire, { desc }: Method): EventFormat {
  return {
    headers: ["content-type", contentType],
    event: (event) => envelope(serialize(desc, create(StreamGenerateResponseSchema, { event: caseOf(event) }), json)),
    end: (requestId, failure) => reply(undefined, failure && toConnectError(failure, requestId)),
  };
}

function caseOf(event: GenerateEvent): MessageInitShape<typeof StreamGenerateResponseSchema>["event"] & object {
  switch (event.type) {
    case "open":
      return { case: "open", value: {} };
    case "delta":
      return { case: "delta", value: { text: event.text } };
    case "trace":
      return { case: "trace", value: { step: event.step } };
    case "tool_call":
      return { case: "toolCall", value: event.call };
    case "done":
      return { case: "done", value: event.done };
  }
}
