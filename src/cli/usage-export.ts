import { once } from "node:events";
import { type Command, Option } from "commander";
import { UsageService } from "../../gen/chorus/admin/v1/usage_pb.js";
import { MetricsGroupBy } from "../../gen/chorus/v1/generation_pb.js";
import { isPrice, USAGE_FORMATS, type UsageFormat, usageLines } from "../contract/usage-file.ts";
import { operatorClient } from "./clients.ts";
import { groupBy, OWN_WORKSPACE, wantsJson } from "./command.ts";
import { CliError } from "./target.ts";
import { periodOf } from "./time.ts";

interface ExportOptions {
  from?: string;
  to?: string;
  format: UsageFormat;
  by: string;
  currency?: string;
  price?: string;
}

/** `chorus usage export`: writes usage by day as CSV, JSON lines or FOCUS, page by page. */
export function addUsageExport(usage: Command): void {
  usage
    .command("export")
    .description("write the usage of each day as CSV, JSON lines or FOCUS 1.3, for billing and finance")
    .argument("[workspace]", OWN_WORKSPACE)
    .option("--from <time>", "start: a time or a date, or a duration before now such as 90d (default: 30 days ago)")
    .option("--to <time>", "end, in the same format (default: now)")
    .addOption(new Option("--format <format>", "format").choices(USAGE_FORMATS).default("csv"))
    .option("--by <group>", "a row for each key, user or tag:NAME", "key")
    .option("--currency <code>", "FOCUS, with --price: currency of the costs (ISO 4217; default: XXX, for credits)")
    .option("--price <amount>", "FOCUS, with --currency: price of a credit in this currency")
    .action(exportUsage);
}

async function exportUsage(workspace = "", _: unknown, command: Command): Promise<void> {
  // The command `usage` has taken those options that it has, too.
  const options = command.optsWithGlobals<ExportOptions>();
  const { format } = options;
  if (wantsJson(command))
    throw new CliError("usage export cannot be used with --json. For JSON lines, use --format jsonl.");
  const costs = costsOf(options);
  const client = await operatorClient(UsageService, command);
  const group = groupBy(options.by);
  const request = {
    ...{ workspace, ...group, pageSize: 1_000 },
    ...periodOf(options),
  };
  const member = { [MetricsGroupBy.USER]: "user", [MetricsGroupBy.TAG]: options.by.slice(4) }[group.groupBy as 3 | 4];
  const file = { format, member, ...costs };
  let pageToken = "";
  do {
    const page = await client.exportUsage({ ...request, pageToken });
    await write(usageLines(page, file, pageToken === ""));
    ({ nextPageToken: pageToken } = page);
  } while (pageToken !== "");
}

/** Reads in what the costs are: by default, in credits. @throws CliError */
function costsOf({ format, currency, price }: ExportOptions): { currency: string; price: string } {
  if (currency === undefined && price === undefined) return { currency: "XXX", price: "1" };
  if (format !== "focus")
    throw new CliError("--currency and --price are for --format focus; other formats have credits. Leave them out.");
  // Without its price, a credit would count as one unit of the currency.
  if (currency === undefined || price === undefined)
    throw new CliError("--currency and --price go together: the currency, and what a credit costs in it. Set both.");
  if (!isPrice(price))
    throw new CliError(
      `--price must be a decimal number from 0 such as 0.01, with up to nine digits on each side, but is "${price}".`,
    );
  if (!/^[A-Z]{3}$/.test(currency))
    throw new CliError(`--currency must be three capital letters such as USD, but is "${currency}".`);
  return { currency, price };
}

/** Waits while the reader of standard output does not keep up. */
async function write(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, "drain");
}
