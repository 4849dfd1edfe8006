import type { Command } from "commander";
import { CheckBooksResponseSchema, CreditService } from "../../gen/chorus/admin/v1/credits_pb.js";
import { OperationsService } from "../../gen/chorus/admin/v1/operations_pb.js";
import { operatorClient } from "./clients.ts";
import { wantsJson } from "./command.ts";
import { messageJson, printJson, printTable } from "./print.ts";
import { CliError } from "./target.ts";

/** `chorus check`: prints what does not agree between ledger, balances, holds and usage, and then exits with code 1. */
export function addCheck(program: Command): void {
  program
    .command("check")
    .description("check that ledger, balances, holds and usage agree, and that no line of a journal is set aside")
    .argument("[workspace]", "name or identifier; default: all workspaces")
    .action(async (workspace = "", _: unknown, command: Command) => {
      const client = await operatorClient(CreditService, command);
      const response = await client.checkBooks({ workspace });
      const { differences } = response;
      const setAside = await findSetAside(command);
      if (wantsJson(command)) {
        printJson({ ...messageJson(CheckBooksResponseSchema, response), set_aside: setAside.map((of) => ({ ...of })) });
      } else {
        if (differences.length === 0) console.log("Ledger, balances, holds and usage agree.");
        else {
          const rows = differences.map((of) => [of.workspace, of.check, of.subject || "-", of.expected, of.found]);
          printTable(["WORKSPACE", "CHECK", "SUBJECT", "EXPECTED", "FOUND"], rows);
        }
        for (const { host, lines } of setAside) console.log(`${lines} lines of the journal on ${host} are set aside.`);
      }
      if (differences.length > 0) {
        throw new CliError(`Differences found: ${differences.length}. This is a defect of Chorus: please report it.`);
      }
      if (setAside.length > 0) {
        throw new CliError(
          "Nothing is charged for lines that are set aside. They are in the files damaged and refused of " +
            "DATA_DIR/journal on that machine.",
        );
      }
    });
}

async function findSetAside(command: Command): Promise<{ host: string; lines: number }[]> {
  const { replicas } = await (await operatorClient(OperationsService, command)).listReplicas({});
  const byHost = Map.groupBy(replicas, ({ host }) => host);
  // The replicas of one machine share a folder, and each counts all of its lines.
  return [...byHost]
    .map(([host, of]) => {
      const counts = of.map(({ journal }) => Number((journal?.damaged ?? 0n) + (journal?.refused ?? 0n)));
      return { host, lines: Math.max(...counts) };
    })
    .filter(({ lines }) => lines > 0);
}
