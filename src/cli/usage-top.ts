import { type Command, Option } from "commander";
import { type SubjectUsage, SubjectUsageSchema, UsageService } from "../../gen/chorus/admin/v1/usage_pb.js";
import { CapFigureSchema } from "../../gen/chorus/v1/generation_pb.js";
import { numberOf } from "../contract/json-names.ts";
import { operatorClient } from "./clients.ts";
import { groupBy, limitOf, OWN_WORKSPACE, readPages, wantsJson } from "./command.ts";
import { messageJson, number, periodJson, printJson, printTable } from "./print.ts";
import { periodOf } from "./time.ts";

interface TopOptions {
  from?: string;
  to?: string;
  by: string;
  figure: string;
  search?: string;
  limit: string;
}

/** `chorus usage top`: lists the keys, end users or values of a tag that used the most. */
export function addUsageTop(usage: Command): void {
  usage
    .command("top")
    .description("list the keys, end users or values of a tag by what they used, the largest first")
    .argument("[workspace]", OWN_WORKSPACE)
    .option("--from <time>", "start: a time or a date, or a duration before now such as 7d (default: 30 days ago)")
    .option("--to <time>", "end, in the same format (default: now)")
    .option("--by <group>", "key, user or tag:NAME", "key")
    .addOption(
      new Option("--figure <figure>", "what they are ordered by")
        .choices(["credits", "requests", "input_tokens", "output_tokens"])
        .default("credits"),
    )
    .option("--search <text>", "only those that start with this text")
    .option("--limit <n>", "number of rows", "20")
    .action(showTop);
}

async function showTop(workspace = "", _: unknown, command: Command): Promise<void> {
  // The command `usage` has taken those options that it has, too.
  const options = command.optsWithGlobals<TopOptions>();
  const { by, figure, search = "" } = options;
  const request = {
    ...{ workspace, ...groupBy(by), search, figure: numberOf(CapFigureSchema, figure) },
    ...periodOf(options),
  };
  const most = limitOf(options.limit);
  const client = await operatorClient(UsageService, command);
  let first: Awaited<ReturnType<typeof client.listTopSubjects>> | undefined;
  const { entries, hasMore } = await readPages(
    "subjects",
    async (page) => {
      const read = await client.listTopSubjects({ ...request, ...page });
      first ??= read;
      return read;
    },
    most,
  );
  if (wantsJson(command)) {
    const { total } = first ?? {};
    return printJson({
      ...periodJson(first ?? {}),
      subjects: entries.map((row) => messageJson(SubjectUsageSchema, row)),
      ...(total ? { total: messageJson(SubjectUsageSchema, total) } : {}),
      has_more: hasMore,
    });
  }
  const head = by.startsWith("tag:") ? by.slice(4) : by;
  printTable(
    [head.toUpperCase(), ...(by === "key" ? ["NAME"] : []), "REQUESTS", "FAILED", "INPUT", "OUTPUT", "CREDITS"],
    [
      ...entries.map((row) => [row.subject, ...(by === "key" ? [row.keyName || "-"] : []), ...numbers(row)]),
      ["all requests", ...(by === "key" ? [""] : []), ...(first?.total ? numbers(first.total) : [])],
    ],
  );
}

function numbers({ requests, failedRequests, inputTokens, outputTokens, credits }: SubjectUsage) {
  return [requests, failedRequests, inputTokens, outputTokens, credits].map((figure) => number(figure));
}
