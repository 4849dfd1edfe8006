import type { Command } from "commander";
import {
  DisableModelResponseSchema,
  EnableModelResponseSchema,
  type ModelState,
  OperationsService,
} from "../../gen/chorus/admin/v1/operations_pb.js";
import { operatorClient } from "./clients.ts";
import { show } from "./command.ts";
import { safe, timeText } from "./print.ts";

/** `chorus models disable` and `enable`. */
export function addDisable(models: Command): void {
  models
    .command("disable")
    .description("take a model out of service on all replicas, also over restarts, until it is enabled")
    .argument("<model>", "name in the catalogue")
    .option("--reason <text>", "why, for other operators", "")
    .action(async (model: string, { reason }: { reason: string }, command: Command) => {
      const response = await (await operatorClient(OperationsService, command)).disableModel({ model, reason });
      show(command, DisableModelResponseSchema, response, ({ enabledModels, enabledInTier, tier }) => {
        console.log(safe(`disabled ${model}`));
        if (enabledModels === 0) console.log("No model is left, so no request is answered until you enable one.");
        else if (enabledInTier === 0) console.log(`No ${tier} model is left: those of the other tier replace it.`);
      });
    });
  models
    .command("enable")
    .description("put a disabled model back into service on all replicas")
    .argument("<model>", "name in the catalogue")
    .action(async (model: string, _: unknown, command: Command) => {
      const response = await (await operatorClient(OperationsService, command)).enableModel({ model });
      show(command, EnableModelResponseSchema, response, ({ wasDisabled }) =>
        console.log(safe(wasDisabled ? `enabled ${model}` : `${model} was not disabled`)),
      );
    });
}

/** A line for each disabled model: since when, by whom and why. */
export function disabledText(models: readonly ModelState[]): string[] {
  return models.flatMap(({ name, disabled }) => {
    if (!disabled) return [];
    const { at, actorId, reason } = disabled;
    return [`${name}: disabled at ${timeText(at)} UTC by ${actorId}${reason && `: ${reason}`}.`];
  });
}
