import type { Command } from "commander";
import { CheckBooksResponseSchema, CreditService } from "../../gen/chorus/admin/v1/credits_pb.js";
import { operatorClient, wantsJson } from "./clients.ts";
import { messageJson, printJson, printTable } from "./print.ts";
import { CliError } from "./target.ts";

/** `chorus check`: prints what does not agree between ledger, balances, holds and usage, and then exits with code 1. */
export function addCheck(program: Command): void {
  program
    .command("check")
    .description("check that ledger, balances, holds and usage agree")
    .argument("[workspace]", "name or identifier; default: all workspaces")
    .action(async (workspace = "", _: unknown, command: Command) => {
      const client = await operatorClient(CreditService, command);
      const response = await client.checkBooks({ workspace });
      const { differences } = response;
      if (wantsJson(command)) printJson(messageJson(CheckBooksResponseSchema, response));
      else if (differences.length === 0) console.log("Ledger, balances, holds and usage agree.");
      else {
        const rows = differences.map((of) => [of.workspace, of.check, of.subject || "-", of.expected, of.found]);
        printTable(["WORKSPACE", "CHECK", "SUBJECT", "EXPECTED", "FOUND"], rows);
      }
      if (differences.length > 0) {
        throw new CliError(`Differences found: ${differences.length}. This is a defect of Chorus: please report it.`);
      }
    });
}
