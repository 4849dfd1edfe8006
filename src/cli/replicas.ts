import type { Command } from "commander";
import {
  ListReplicasResponseSchema,
  OperationsService,
  type ReplicaState,
} from "../../gen/chorus/admin/v1/operations_pb.js";
import { operatorClient } from "./clients.ts";
import { show } from "./command.ts";
import { number, printTable, timeText } from "./print.ts";

const REPLICA = [
  ...["HOST", "PID", "VERSION", "STARTED (UTC)", "RUNNING", "MB", "LOOP MS", "JOURNAL", "SET ASIDE", "OVERLOAD"],
];
const GRANTS = ["HOST", "PID", "WORKSPACES", "CREDITS", "HELD", "CONCURRENT", "OLDEST (UTC)"];

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
