import { create } from "@bufbuild/protobuf";
import { type ListModelsResponse, ListModelsResponseSchema, ModelSchema } from "../../../gen/chorus/v1/chat_pb.js";
import { CREATED, EFFORTS } from "../call/model-names.ts";

/** The answers to `GET /v1/models/{model}`. */
export const MODELS = [...EFFORTS.keys()].map((id) =>
  create(ModelSchema, { id, object: "model", created: CREATED, ownedBy: "chorus" }),
);

/** The answer to `GET /v1/models`. */
export const MODEL_LIST: ListModelsResponse = create(ListModelsResponseSchema, { object: "list", data: MODELS });
