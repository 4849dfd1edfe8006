#!/usr/bin/env node
import addCompletion from "@bomb.sh/tab/commander";
import { ConnectError } from "@connectrpc/connect";
import { Command, CommanderError } from "commander";
import { FailureDetailSchema } from "../../gen/chorus/v1/failure_pb.js";
import { VERSION } from "../contract/version.ts";
import { addAlerts } from "./alerts.ts";
import { addAsk } from "./ask.ts";
import { addAudit } from "./audit.ts";
import { addCalibrate } from "./calibrate.ts";
import { addCaps } from "./caps.ts";
import { addCheck } from "./check.ts";
import { addCredits } from "./credits.ts";
import { addKeys } from "./keys.ts";
import { addLimits, addSpendLimits, addTiers } from "./limits.ts";
import { addMembers } from "./members.ts";
import { addMigrate } from "./migrate.ts";
import { addModels } from "./models.ts";
import { addOperators } from "./operators.ts";
import { addOutcome } from "./outcome.ts";
import { addOwners } from "./owners.ts";
import { durationText, safe } from "./print.ts";
import { addProfiles } from "./profile.ts";
import { addReplicas } from "./replicas.ts";
import { addRuns } from "./runs.ts";
import { CliError } from "./target.ts";
import { addUsage } from "./usage.ts";
import { addWorkspaces } from "./workspaces.ts";

const program = new Command("chorus")
  .version(VERSION)
  .description("Operates a Chorus service through its internal listener.")
  .option(
    "--rpc-url <url>",
    "address of the internal listener (default: CHORUS_RPC_URL, else the service that uses DATA_DIR, else the profile)",
  )
  .option("--profile <name>", "use a named service (default: CHORUS_PROFILE); see chorus profile")
  .option("--json", "print one JSON document instead of a table")
  .addHelpText(
    "after",
    [
      "",
      "The operator token is read from OPERATOR_TOKEN. If that is not set, it is read from DATA_DIR (.chorus),",
      "where a service on this machine stores it, else from the default profile. A stored token is sent only to the",
      "service of that folder or profile, whatever --rpc-url and CHORUS_RPC_URL say.",
      "The owner of a workspace sets OWNER_TOKEN instead and can omit the workspace.",
    ].join("\n"),
  )
  .exitOverride();
addWorkspaces(program);
addOwners(program);
addMembers(program);
addKeys(program);
addCredits(program);
addCheck(program);
addCalibrate(program);
addLimits(program);
addSpendLimits(program);
addTiers(program);
addUsage(program);
addCaps(program);
addModels(program);
addReplicas(program);
addRuns(program);
addAudit(program);
addOperators(program);
addAlerts(program);
addMigrate(program);
addProfiles(program);
// src/cli/chorus.cjs carries it out: the command line is a program of its own.
program
  .command("start")
  .description("start the service, where it is installed as a package")
  .action(() => {
    throw new CliError("In a clone, start the service with npm start; elsewhere with chorus start, without options.");
  });
addAsk(program);
addOutcome(program);
addCompletion(program);
program.hook("preAction", (_, command) => refuseOthers(command));

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // A reader such as `head` closes the pipe early. That is no error.
  if (error.code === "EPIPE") process.exit(0);
  process.stderr.write(`chorus: The output cannot be written completely: ${safe(error.message)}.\n`);
  process.exit(1);
});

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode;
  else {
    process.stderr.write(`chorus: ${safe(message(error))}\n`);
    process.exitCode = 1;
  }
}

/** Refuses options that a command above has taken, such as `--by-user` of `usage`, and the command itself lacks. */
function refuseOthers(command: Command): void {
  const own = new Set(command.options.map(({ long }) => long));
  for (let above = command.parent; above && above !== program; above = above.parent) {
    for (const option of above.options) {
      if (above.getOptionValueSource(option.attributeName()) !== "cli" || own.has(option.long)) continue;
      command.error(`error: unknown option '${option.long}'`, { code: "commander.unknownOption" });
    }
  }
}

/** How long the service asks to wait; an empty text if it does not. */
function waitOf(error: ConnectError): string {
  const { retryAfterMs } = error.findDetails(FailureDetailSchema)[0] ?? {};
  return retryAfterMs === undefined ? "" : ` The wait is ${durationText(Number(retryAfterMs))}.`;
}

function message(error: unknown): string {
  if (error instanceof ConnectError) return error.rawMessage + waitOf(error);
  if (error instanceof CliError) return error.message;
  // Errors of the file system name the operation and the path.
  if (error instanceof Error && "syscall" in error) return error.message;
  throw error;
}
