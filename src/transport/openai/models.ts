import { create } from "@bufbuild/protobuf";
import {
  type ListModelsResponse,
  ListModelsResponseSchema,
  type Model,
  ModelSchema,
} from "../../../gen/chorus/v1/chat_pb.js";
import { CREATED, EFFORTS, unknownModel } from "../call/model-names.ts";

const MODELS = [...EFFORTS.keys()].map((id) =>
  create(ModelSchema, { id, object: "model", created: CREATED, ownedBy: "chorus" }),
);

/** The answer to `GET /v1/models`. */
export const MODEL_LIST: ListModelsResponse = create(ListModelsResponseSchema, { object: "list", data: MODELS });

/** The answer to `GET /v1/models/{model}`. @throws Failure unknown_entity */
export function findModel(path: string): Model {
  const model = MODELS.find(({ id }) => path.endsWith(`/${id}`));
  if (!model) throw unknownModel();
  return model;
}
