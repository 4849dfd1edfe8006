import type { Command } from "commander";
import {
  type LearnedAbility,
  ListLearnedResponseSchema,
  OperationsService,
  ResetLearnedResponseSchema,
} from "../../gen/chorus/admin/v1/operations_pb.js";
import { operatorClient } from "./clients.ts";
import { show } from "./command.ts";
import { number, printTable } from "./print.ts";

const LEARNED = ["ABILITY", "MODEL", "ACCURACY", "95 % INTERVAL", "WINS", "LOSSES", "STATE"];

/** `chorus models --learned`: the models of each ability, best first. */
export async function printLearned(command: Command): Promise<void> {
  const response = await (await operatorClient(OperationsService, command)).listLearned({});
  show(command, ListLearnedResponseSchema, response, ({ on, abilities }) => {
    if (!on) console.log("Learning is off: requests do not use these figures (CHORUS_LEARNING).");
    if (abilities.length === 0) console.log("No disagreement of models is graded yet.");
    else printTable(LEARNED, abilities.flatMap(learnedRows));
  });
}

function learnedRows({ ability, enough, models }: LearnedAbility) {
  const share = (value: number) => (value * 100).toFixed(1);
  return models.map((of) => [
    ability,
    of.name,
    number(share(of.accuracy), " %"),
    `${share(of.accuracyLow)} to ${share(of.accuracyHigh)} %`,
    number(of.wins),
    number(of.losses),
    enough ? (of.held ? "order held" : "learned") : "too few",
  ]);
}

/** `chorus models reset-learned`. */
export function addResetLearned(models: Command): void {
  models
    .command("reset-learned")
    .description("forget what has been learned of the models; recorded outcomes stay")
    .option("--model <name>", "only of this model (default: all)")
    .option("--ability <ability>", "only for this ability: knowledge, maths, code, extraction or prose (default: all)")
    .action(async ({ model = "", ability = "" }: { model?: string; ability?: string }, command: Command) => {
      const response = await (await operatorClient(OperationsService, command)).resetLearned({ model, ability });
      show(command, ResetLearnedResponseSchema, response, ({ graded }) =>
        console.log(`forgot ${graded} graded disagreements`),
      );
    });
}
