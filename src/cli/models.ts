import type { Command } from "commander";
import {
  DisableModelResponseSchema,
  EnableModelResponseSchema,
  type LearnedAbility,
  ListLearnedResponseSchema,
  ListModelsResponseSchema,
  type ModelFailure,
  ModelHealthSchema,
  type ModelState,
  OperationsService,
  ResetLearnedResponseSchema,
  type TestModelResponse,
  TestModelResponseSchema,
} from "../../gen/chorus/admin/v1/operations_pb.js";
import { wordOf } from "../contract/json-names.ts";
import { operatorClient } from "./clients.ts";
import { show } from "./command.ts";
import { agoText, grouped, number, printTable, safe, timeText } from "./print.ts";

const MODEL = [
  ...["MODEL", "ANSWERED AS", "TIER", "VENDOR", "API", "HEALTH", "CALLS", "SHARE", "FAILED"],
  ...["FIRST MS", "95 % MS", "USD", "RUNNING", "LAST ERROR"],
];

/** `chorus models`: what is configured, and what the replicas know of it. */
export function addModels(program: Command): void {
  const models = program
    .command("models")
    .description("list the models of the catalogue: health, and calls of the last 15 minutes over all replicas")
    .option("--learned", "list what has been learned of them from graded answers")
    .action(async ({ learned }: { learned?: true }, command: Command) => {
      if (learned) return printLearned(command);
      const response = await (await operatorClient(OperationsService, command)).listModels({});
      show(command, ListModelsResponseSchema, response, ({ models }) => {
        printTable(MODEL, models.map(modelRow));
        for (const line of [...disabledText(models), ...advice(models)]) console.log(safe(`\n${line}`));
      });
    });
  addTest(models);
  addDisable(models);
  addResetLearned(models);
}

function modelRow(of: ModelState) {
  const ms = (value: number | undefined) => (value === undefined ? "-" : number(value));
  const health = wordOf(ModelHealthSchema, of.health);
  const some = of.openCircuits > 0 && of.openCircuits < of.replicas;
  return [
    of.name,
    of.unexpectedVersion ? `${of.servedVersion} (unexpected)` : of.servedVersion || "-",
    of.tier,
    of.vendor,
    of.api || "-",
    some ? `${health} (not called by ${of.openCircuits} of ${of.replicas} replicas)` : health,
    number(of.calls),
    number(percent(of.shareOfCalls), " %"),
    number(percent(of.calls === 0n ? 0 : Number(of.failedCalls) / Number(of.calls)), " %"),
    ms(of.firstTextP50Ms),
    ms(of.firstTextP95Ms),
    number(of.costUsd.toFixed(4)),
    number(of.running),
    of.lastFailure ? failureText(of.lastFailure) : "-",
  ];
}

/** Such as "401 invalid_api_key, 2 min ago, 14 times". */
function failureText({ status, code, at, count }: ModelFailure): string {
  const what = [status, code].filter(Boolean).join(" ") || "failed";
  return [what, ...(at ? [agoText(at)] : []), ...(count > 1n ? [`${grouped(count)} times`] : [])].join(", ");
}

/** What to do about the models that vendors refuse: a line for those with the same remedy. */
function advice(models: readonly ModelState[]): string[] {
  const refused = models.filter(({ lastFailure }) => lastFailure?.needsOperator);
  const groups = Map.groupBy(refused, ({ lastFailure }) => `${lastFailure?.message}|${lastFailure?.action}`);
  return [...groups.values()].map((group) => {
    const names = group.map(({ name }) => name).join(", ");
    return `${names}: waiting does not help.${saidText(group[0]?.lastFailure)}`;
  });
}

function percent(share: number): string {
  return (share * 100).toFixed(1);
}

/** `chorus models test`. */
function addTest(models: Command): void {
  models
    .command("test")
    .description("send a short prompt to a model, which its vendor bills; exit code 1 if it does not answer in 30 s")
    .argument("<model>", "name in the catalogue")
    .action(async (model: string, _: unknown, command: Command) => {
      const response = await (await operatorClient(OperationsService, command)).testModel({ model });
      if (!response.answered) process.exitCode = 1;
      show(command, TestModelResponseSchema, response, () => console.log(safe(testText(model, response))));
    });
}

/** Such as "fast answers: 412 ms, 14 + 2 tokens, 0.000012 USD, gpt-4o-2024-08-06". */
function testText(model: string, of: TestModelResponse): string {
  const time = `${grouped(of.durationMs)} ms`;
  const { failure } = of;
  if (failure) {
    const what = [failure.status, failure.code].filter(Boolean).join(" ") || "failed";
    return `${model} does not answer: ${what}, ${time}.${saidText(failure)}`;
  }
  const tokens = `${grouped(of.inputTokens)} + ${grouped(of.outputTokens)} tokens`;
  const cost = of.costUsd === undefined ? [] : [`${of.costUsd.toFixed(6)} USD`];
  return `${model} answers: ${[time, tokens, ...cost, ...(of.servedVersion ? [of.servedVersion] : [])].join(", ")}`;
}

/** What the vendor says, and what to do. */
export function saidText({ message = "", action = "" }: { message?: string; action?: string } = {}): string {
  return (message && ` The vendor says: ${message}.`) + (action && ` ${action}`);
}

/** `chorus models disable` and `enable`. */
function addDisable(models: Command): void {
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
function disabledText(models: readonly ModelState[]): string[] {
  return models.flatMap(({ name, disabled }) => {
    if (!disabled) return [];
    const { at, actorId, reason } = disabled;
    return [`${name}: disabled at ${timeText(at)} UTC by ${actorId}${reason && `: ${reason}`}.`];
  });
}

const LEARNED = ["ABILITY", "MODEL", "ACCURACY", "95 % INTERVAL", "WINS", "LOSSES", "STATE"];

/** `chorus models --learned`: the models of each ability, best first. */
async function printLearned(command: Command): Promise<void> {
  const response = await (await operatorClient(OperationsService, command)).listLearned({});
  show(command, ListLearnedResponseSchema, response, ({ on, abilities }) => {
    if (!on) console.log("Learning is off: requests do not use these figures (CHORUS_LEARNING).");
    if (abilities.length === 0) console.log("No disagreement of models is graded yet.");
    else printTable(LEARNED, abilities.flatMap(learnedRows));
  });
}

function learnedRows({ ability, enough, stated, models }: LearnedAbility) {
  return models.map((of) => [
    ability,
    of.name,
    number(percent(of.accuracy), " %"),
    `${percent(of.accuracyLow)} to ${percent(of.accuracyHigh)} %`,
    number(of.wins),
    number(of.losses),
    stated ? "not used" : enough ? (of.held ? "order held" : "learned") : "too few",
  ]);
}

/** `chorus models reset-learned`. */
function addResetLearned(models: Command): void {
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
