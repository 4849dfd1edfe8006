import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type ListMessageModelsResponse,
  ListMessageModelsResponseSchema,
  MessageModelSchema,
} from "../../../gen/chorus/v1/messages_pb.js";
import { CREATED, EFFORTS } from "../call/model-names.ts";

/** The answers to `GET /v1/models/{model}` in Anthropic's format. */
export const MODELS = [...EFFORTS.keys()].map((id) => {
  const displayName = id.replace("-", " ").replace(/^./, (first) => first.toUpperCase());
  return create(MessageModelSchema, {
    type: "model",
    id,
    displayName,
    createdAt: timestampFromMs(Number(CREATED) * 1_000),
  });
});

/** The answer to `GET /v1/models` in Anthropic's format. */
export const MODEL_LIST: ListMessageModelsResponse = create(ListMessageModelsResponseSchema, {
  data: MODELS,
  hasMore: false,
  firstId: MODELS.at(0)?.id ?? "",
  lastId: MODELS.at(-1)?.id ?? "",
});
