import { create } from "@bufbuild/protobuf";
import { ListModelsResponseSchema, ModelSchema } from "../../../gen/chorus/v1/chat_pb.js";
import { Effort } from "../../../gen/chorus/v1/generation_pb.js";
import { Failure } from "../../contract/failure.ts";
import { encode } from "../rest/encode.ts";
import type { Exchange } from "../rest/handler.ts";
import { sendJson } from "../rest/json-response.ts";

/** The model that answers requests for a name that is not in `EFFORTS`. */
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

const LIST = encode(ListModelsResponseSchema, create(ListModelsResponseSchema, { object: "list", data: MODELS }));

/** Serves `GET /v1/models`. */
export async function sendModels(exchange: Exchange): Promise<void> {
  sendJson(exchange, 200, LIST);
}

/** Serves `GET /v1/models/{model}`. @throws Failure unknown_entity */
export async function sendModel(exchange: Exchange): Promise<void> {
  const model = MODELS.find(({ id }) => exchange.path.endsWith(`/${id}`));
  if (!model) {
    const names = [...EFFORTS.keys()].join(", ");
    throw new Failure("unknown_entity", { field: "model", message: `There is no such model. There are ${names}.` });
  }
  sendJson(exchange, 200, encode(ModelSchema, model));
}
