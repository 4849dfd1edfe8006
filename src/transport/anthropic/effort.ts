import { Effort } from "../../../gen/chorus/v1/generation_pb.js";
import {
  type CreateMessageRequest,
  OutputEffort,
  type ThinkingConfig,
  ThinkingType,
} from "../../../gen/chorus/v1/messages_pb.js";
import { EFFORTS, smallestEffort } from "../call/model-names.ts";

/** Budget for thoughts, in tokens, from which the effort is `high`. */
const HIGH_FROM = 8_192;

const OUTPUT: Readonly<Record<OutputEffort, Effort>> = {
  [OutputEffort.UNSPECIFIED]: Effort.UNSPECIFIED,
  [OutputEffort.LOW]: Effort.LOW,
  [OutputEffort.MEDIUM]: Effort.MEDIUM,
  [OutputEffort.HIGH]: Effort.HIGH,
  [OutputEffort.XHIGH]: Effort.HIGH,
  [OutputEffort.MAX]: Effort.HIGH,
};

/** The smallest one of the efforts that `model`, `thinking` and `output_config` name. */
export function effortOf({ model, thinking, outputConfig }: CreateMessageRequest): Effort {
  return smallestEffort(EFFORTS.get(model), thinkingEffort(thinking), outputConfig && OUTPUT[outputConfig.effort]);
}

function thinkingEffort(thinking: ThinkingConfig | undefined): Effort {
  if (thinking?.type === ThinkingType.DISABLED) return Effort.LOW;
  if (thinking?.type !== ThinkingType.ENABLED) return Effort.UNSPECIFIED;
  return (thinking.budgetTokens ?? 0) < HIGH_FROM ? Effort.MEDIUM : Effort.HIGH;
}
