import type { Command } from "commander";
import { ActivityService, ActorKindSchema, AuditEntrySchema } from "../../gen/chorus/admin/v1/activity_pb.js";
import { numberOf, wordOf } from "../contract/json-names.ts";
import { operatorClient } from "./clients.ts";
import { limitOf, readPages, wantsJson } from "./command.ts";
import { messageJson, printJson, printTable, timeText } from "./print.ts";
import { periodOf } from "./time.ts";

interface Options {
  action?: string;
  by?: string;
  from?: string;
  to?: string;
  limit: string;
}

/** `chorus audit`: who changed what. */
export function addAudit(program: Command): void {
  program
    .command("audit")
    .description("list the changes that operators, owners and the service made, newest first")
    .argument("[workspace]", "name or identifier; an owner can omit it; for an operator, default: every change")
    .option("--action <action>", "only this action, such as key.create, or this kind of action, such as key")
    .option("--by <who>", "only by operator, owner, member or service, or by one token or person: tok_…, per_…")
    .option("--from <time>", "start: a time or a date, or a duration before now such as 7d (default: the oldest)")
    .option("--to <time>", "end, in the same format (default: now)")
    .option("--limit <n>", "most changes to list", "100")
    .action(async (workspace = "", options: Options, command: Command) => {
      const limit = limitOf(options.limit);
      const filter = filterOf(options);
      const client = await operatorClient(ActivityService, command);
      const read = (page: object) => client.listAudit({ workspace, ...filter, ...page });
      const { entries, hasMore } = await readPages("entries", read, limit);
      if (wantsJson(command)) {
        const all = entries.map((entry) => ({
          ...messageJson(AuditEntrySchema, entry),
          details: JSON.parse(entry.details),
        }));
        return printJson({ entries: all, has_more: hasMore });
      }
      // An owner sees the changes of one workspace.
      const isOfMany = workspace === "" && new Set(entries.map(({ workspaceId }) => workspaceId)).size > 1;
      const rows = entries.map((of) => [
        timeText(of.at),
        ...(isOfMany ? [of.workspace || "-"] : []),
        wordOf(ActorKindSchema, of.actorKind),
        of.actorName ? `${of.actorName} (${of.actorId})` : of.actorId,
        of.action,
        of.details,
      ]);
      printTable(
        ["AT (UTC)", ...(isOfMany ? ["WORKSPACE"] : []), "WHO", "PERSON, TOKEN OR REASON", "ACTION", "DETAILS"],
        rows,
      );
      if (hasMore) console.log(`\nThere are older changes; --limit ${limit * 10} shows more.`);
    });
}

/** The filter that options name. A word of `--by` that is no kind of actor is an identifier. */
function filterOf({ action = "", by = "", ...period }: Options) {
  const actorKind = numberOf(ActorKindSchema, by);
  return {
    ...{ action, actorKind, actorId: actorKind === 0 ? by : "" },
    ...periodOf(period),
  };
}
