import { Failure } from "../contract/failure.ts";
import type { Learning } from "../learning/knowledge.ts";
import type { Member } from "../models/catalogue.ts";
import type { Tested } from "../models/test-call.ts";

/** The models that requests use now. */
export interface ModelsInUse {
  members(): readonly Member[];
  /** Sends a model a test call; undefined for an unknown model. */
  test(model: string): Promise<Tested | undefined>;
  /** Undefined: learning is off. */
  readonly learning: Pick<Learning, "refresh"> | undefined;
}

export function unknownModel(): Failure {
  return new Failure("unknown_entity", { field: "model", message: "The catalogue has no model with this name." });
}
