import { Failure } from "../contract/failure.ts";
import type { Learning } from "../learning/knowledge.ts";
import type { Member } from "../models/catalogue.ts";
import type { Tested } from "../models/test-call.ts";

/** The models of the catalogue in force. */
export interface ModelsInUse {
  /** All models of the catalogue, disabled ones too. */
  all(): readonly Member[];
  /** Reads which models are disabled. */
  disabledChanged(): Promise<void>;
  /** Sends a model a test call; undefined for an unknown model. */
  test(model: string): Promise<Tested | undefined>;
  /** Undefined: learning is off. */
  readonly learning: Pick<Learning, "refresh"> | undefined;
}

export function unknownModel(): Failure {
  return new Failure("unknown_entity", { field: "model", message: "The catalogue has no model with this name." });
}
