import { create } from "@bufbuild/protobuf";
import {
  type ListModelsResponse,
  ListModelsResponseSchema,
  type Model,
  ModelSchema,
} from "../../../gen/chorus/v1/chat_pb.js";
import { Effort } from "../../../gen/chorus/v1/generation_pb.js";
import { Failure } from "../../contract/failure.ts";

/** The model whose effort the service chooses. Every name that is not in `EFFORTS` stands for it, too. */
export const DEFAULT_MODEL = "chorus";

/** The names that a request can have as its `model`, and the effort of each. */
export const EFFORTS: ReadonlyMap<string, Effort> = new Map([
  [DEFAULT_MODEL, Effort.UNSPECIFIED],
  ["chorus-low", Effort.LOW],
  ["chorus-medium", Effort.MEDIUM],
  ["chorus-high", Effort.HIGH],
]);

/** 1 January 2026, in seconds since 1970. Clients require a time, and it has no meaning here. */
const CREATED = 1_767_225_600n;

const MODELS = [...EFFORTS.keys()].map((id) =>
  create(ModelSchema, { id, object: "model", created: CREATED, ownedBy: "chorus" }),
);

/** The answer to `GET /v1/models`. */
export const MODEL_LIST: ListModelsResponse = create(ListModelsResponseSchema, { object: "list", data: MODELS });

/** The answer to `GET /v1/models/{model}`. @throws Failure unknown_entity */
export function findModel(path: string): Model {
  const model = MODELS.find(({ id }) => path.endsWith(`/${id}`));
  if (model) return model;
  const names = [...EFFORTS.keys()].join(", ");
  throw new Failure("unknown_entity", { field: "model", message: `There is no such model. There are ${names}.` });
}
