import type { Command } from "commander";
import {
  ListModelsResponseSchema,
  ListReplicasResponseSchema,
  type ModelFailure,
  ModelHealthSchema,
  type ModelState,
  OperationsService,
  type ReplicaState,
} from "../../gen/chorus/admin/v1/operations_pb.js";
import { wordOf } from "../contract/json-names.ts";
import { operatorClient } from "./clients.ts";
import { show } from "./command.ts";
import { addDisable, disabledText } from "./disable-model.ts";
import { addResetLearned, printLearned } from "./learned.ts";
import { agoText, grouped, number, printTable, safe, timeText } from "./print.ts";
import { addTest, saidText } from "./test-model.ts";

const MODEL = [
  ...["MODEL", "ANSWERED AS", "TIER", "VENDOR", "HEALTH", "CALLS", "SHARE", "FAILED"],
  ...["FIRST MS", "95 % MS", "USD", "RUNNING", "LAST ERROR"],
];
const REPLICA = [
  ...["HOST", "PID", "VERSION", "STARTED (UTC)", "RUNNING", "MB", "LOOP MS", "JOURNAL", "SET ASIDE", "OVERLOAD"],
];
const GRANTS = ["HOST", "PID", "WORKSPACES", "CREDITS", "HELD", "CONCURRENT", "OLDEST (UTC)"];

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

/** `chorus replicas`: the processes of the service, and what each has reserved of workspaces. */
export function addReplicas(program: Command): void {
  program
    .command("replicas")
    .description("list the replicas that run: state, journal, what they refused under overload, and grants")
    .action(async (_: unknown, command: Command) => {
      const response = await (await operatorClient(OperationsService, command)).listReplicas({});
      show(command, ListReplicasResponseSchema, response, ({ replicas }) => {
        printTable(REPLICA, replicas.map(replicaRow));
        console.log("\nGrants: what replicas have reserved of workspaces");
        printTable(GRANTS, replicas.map(grantsRow));
      });
    });
}

function replicaRow(of: ReplicaState) {
  const { waiting = 0n, damaged = 0n, refused = 0n } = of.journal ?? {};
  const overload = of.overload.map(({ cause, requests }) => `${cause} ${requests}`).join(", ");
  return [
    of.host,
    `${of.pid}`,
    of.version,
    timeText(of.startedAt),
    number(of.running),
    number(of.memoryBytes / 1_000_000n),
    number(of.loopDelayMs.toFixed(1)),
    number(waiting),
    number(damaged + refused),
    overload || "-",
  ];
}

function grantsRow({ host, pid, grants }: ReplicaState) {
  return [
    host,
    `${pid}`,
    number(grants?.workspaces ?? 0n),
    number(grants?.reservedCredits ?? "0"),
    number(grants?.heldCredits ?? "0"),
    number(grants?.concurrentRequests ?? 0n),
    timeText(grants?.oldestAt),
  ];
}

function percent(share: number): string {
  return (share * 100).toFixed(1);
}
