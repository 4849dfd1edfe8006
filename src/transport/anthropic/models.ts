import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type ListMessageModelsRequest,
  type ListMessageModelsResponse,
  ListMessageModelsResponseSchema,
  MessageModelSchema,
} from "../../../gen/chorus/v1/messages_pb.js";
import { invalidField } from "../../contract/failure.ts";
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

const PAGE = { usual: 20, most: 1_000 };

/** A page of the answer to `GET /v1/models` in Anthropic's format. @throws Failure naming the parameter */
export function listModels(request: ListMessageModelsRequest): ListMessageModelsResponse {
  const { limit = PAGE.usual, afterId, beforeId } = request;
  if (limit < 1 || limit > PAGE.most) throw invalidField("limit", `must be a whole number from 1 to ${PAGE.most}.`);
  const from = afterId === "" ? 0 : placeOf("after_id", afterId) + 1;
  const to = beforeId === "" ? MODELS.length : placeOf("before_id", beforeId);
  const asked = MODELS.slice(from, to);
  const data = beforeId === "" ? asked.slice(0, limit) : asked.slice(-limit);
  return create(ListMessageModelsResponseSchema, {
    data,
    hasMore: data.length < asked.length,
    firstId: data.at(0)?.id ?? "",
    lastId: data.at(-1)?.id ?? "",
  });
}

function placeOf(parameter: string, id: string): number {
  const place = MODELS.findIndex((model) => model.id === id);
  if (place < 0) throw invalidField(parameter, "must be a name of the list.");
  return place;
}
