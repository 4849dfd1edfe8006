import { Effort } from "../../../gen/chorus/v1/generation_pb.js";
import { Failure } from "../../contract/failure.ts";
import { notice } from "../../generate/notices.ts";

/** The model whose effort the service chooses. Every name that is not in `EFFORTS` stands for it, too. */
export const DEFAULT_MODEL = "chorus";

/** The names that a request of another API can have as its `model`, and the effort of each. */
export const EFFORTS: ReadonlyMap<string, Effort> = new Map([
  [DEFAULT_MODEL, Effort.UNSPECIFIED],
  ["chorus-low", Effort.LOW],
  ["chorus-medium", Effort.MEDIUM],
  ["chorus-high", Effort.HIGH],
]);

/** 1 January 2026, in seconds since 1970. Clients require a time of each model, and it has no meaning here. */
export const CREATED = 1_767_225_600n;

/** The notice about any other name. */
export const OTHER_MODEL = notice(
  "unknown_model",
  "The service chooses the models. The name in model was taken as chorus.",
  "model",
);

/** The name of the model in an answer, and whether the request names one that the service does not have. */
export function readModel(name: string): { readonly model: string; readonly isOtherModel: boolean } {
  const isOtherModel = name !== "" && !EFFORTS.has(name);
  return { model: isOtherModel || name === "" ? DEFAULT_MODEL : name, isOtherModel };
}

/** The model that a path such as `/v1/models/chorus` names. @throws Failure unknown_entity */
export function findModel<M extends { readonly id: string }>(models: readonly M[], path: string): M {
  const model = models.find(({ id }) => path.endsWith(`/${id}`));
  if (model) return model;
  const names = [...EFFORTS.keys()].join(", ");
  throw new Failure("unknown_entity", { field: "model", message: `There is no such model. There are ${names}.` });
}

/** The smallest one of the efforts that a request names, if it names any. */
export function smallestEffort(...efforts: (Effort | undefined)[]): Effort {
  const limits = efforts.filter((effort) => effort !== undefined && effort !== Effort.UNSPECIFIED);
  return limits.length === 0 ? Effort.UNSPECIFIED : Math.min(...limits);
}
