import type { Command } from "commander";
import {
  ActivityService,
  ActorKindSchema,
  type AuditEntry,
  AuditEntrySchema,
} from "../../gen/chorus/admin/v1/activity_pb.js";
import { wordOf } from "../contract/json-names.ts";
import { operatorClient, wantsJson } from "./clients.ts";
import { messageJson, printJson, printTable, timeText } from "./print.ts";
import { CliError } from "./target.ts";

const MAX_PAGE = 1_000;

/** `chorus audit`: who changed what. */
export function addAudit(program: Command): void {
  program
    .command("audit")
    .description("list the changes that operators, owners and the service made, newest first")
    .argument("[workspace]", "name or identifier; an owner can omit it; for an operator, default: the whole service")
    .option("--limit <n>", "most changes to list", "100")
    .action(async (workspace = "", options: { limit: string }, command: Command) => {
      const limit = /^\d{1,9}$/.test(options.limit) ? Number(options.limit) : 0;
      if (limit < 1) throw new CliError(`--limit must be a whole number from 1, but is "${options.limit}".`);
      const client = await operatorClient(ActivityService, command);
      const entries: AuditEntry[] = [];
      let pageToken = "";
      do {
        const pageSize = Math.min(MAX_PAGE, limit - entries.length);
        const page = await client.listAudit({ workspace, pageSize, pageToken });
        entries.push(...page.entries);
        pageToken = page.nextPageToken;
      } while (pageToken !== "" && entries.length < limit);
      if (wantsJson(command)) {
        const all = entries.map((entry) => ({
          ...messageJson(AuditEntrySchema, entry),
          details: JSON.parse(entry.details),
        }));
        printJson({ entries: all });
        return;
      }
      const rows = entries.map((of) => [
        timeText(of.at),
        wordOf(ActorKindSchema, of.actorKind),
        of.actorId,
        of.action,
        of.details,
      ]);
      printTable(["AT (UTC)", "WHO", "TOKEN OR REASON", "ACTION", "DETAILS"], rows);
      if (pageToken !== "") console.log(`\nThere are older changes; --limit ${limit * 10} shows more.`);
    });
}
