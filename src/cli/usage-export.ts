import { once } from "node:events";
import { type Command, Option } from "commander";
import { type ExportUsageResponse, UsageService } from "../../gen/chorus/admin/v1/usage_pb.js";
import { MetricsGroupBy } from "../../gen/chorus/v1/generation_pb.js";
import { operatorClient } from "./clients.ts";
import { OWN_WORKSPACE } from "./command.ts";
import { CliError } from "./target.ts";
import { parseTime } from "./time.ts";

interface ExportOptions {
  from?: string;
  to?: string;
  format: "csv" | "jsonl" | "focus";
  by: string;
  currency: string;
  price: string;
}

type Value = string | number | null;

/** A row of the export by the names of its columns, in their order. */
type Columns = Record<string, Value>;

/** `chorus usage export`: writes usage by day as CSV, JSON lines or FOCUS, page by page. */
export function addUsageExport(usage: Command): void {
  usage
    .command("export")
    .description("write the usage of each day as CSV, JSON lines or FOCUS 1.3, for billing and finance")
    .argument("[workspace]", OWN_WORKSPACE, "")
    .option("--from <time>", "start: a time or a date, or a duration before now such as 90d (default: 30 days ago)")
    .option("--to <time>", "end, in the same format (default: now)")
    .addOption(new Option("--format <format>", "format").choices(["csv", "jsonl", "focus"]).default("csv"))
    .option("--by <group>", "a row for each key, user or tag:NAME", "key")
    .option("--currency <code>", "FOCUS: currency of the costs (ISO 4217; XXX: credits)", "XXX")
    .option("--price <amount>", "FOCUS: price of a credit in this currency", "1")
    .action(exportUsage);
}

async function exportUsage(workspace: string, _: unknown, command: Command): Promise<void> {
  // The command `usage` has taken those options that it has, too.
  const options = command.optsWithGlobals<ExportOptions>();
  const { from, to, format } = options;
  const price = Number(options.price);
  if (!(price >= 0)) throw new CliError(`--price must be a number from 0, but is "${options.price}".`);
  if (!/^[A-Z]{3}$/.test(options.currency))
    throw new CliError(`--currency must be three capital letters such as USD, but is "${options.currency}".`);
  const client = await operatorClient(UsageService, command);
  const group = groupOf(options.by);
  const request = {
    ...{ workspace, ...group, pageSize: 1_000 },
    ...(from === undefined ? {} : { startTime: parseTime("--from", from, -1) }),
    ...(to === undefined ? {} : { endTime: parseTime("--to", to, -1) }),
  };
  const member = { [MetricsGroupBy.USER]: "user", [MetricsGroupBy.TAG]: options.by.slice(4) }[group.groupBy as 3 | 4];
  let pageToken = "";
  let isFirst = true;
  do {
    const page = await client.exportUsage({ ...request, pageToken });
    const focus = { member, currency: options.currency, price };
    const rows = page.rows.map((row) => (format === "focus" ? focusOf(row, page, focus) : plainOf(row, page, member)));
    const [first] = rows;
    if (first && isFirst && format !== "jsonl") await write(line(Object.keys(first)));
    for (const row of rows) await write(format === "jsonl" ? `${JSON.stringify(row)}\n` : line(Object.values(row)));
    if (first) isFirst = false;
    ({ nextPageToken: pageToken } = page);
  } while (pageToken !== "");
}

/** @throws CliError */
function groupOf(by: string): { groupBy: MetricsGroupBy; groupTag?: string } {
  if (by === "key") return { groupBy: MetricsGroupBy.KEY };
  if (by === "user") return { groupBy: MetricsGroupBy.USER };
  if (by.startsWith("tag:")) return { groupBy: MetricsGroupBy.TAG, groupTag: by.slice(4) };
  throw new CliError(`--by must be key, user or tag:NAME, but is "${by}".`);
}

type Row = ExportUsageResponse["rows"][number];

function plainOf(row: Row, { workspace }: ExportUsageResponse, member: string | undefined): Columns {
  return {
    day: row.day,
    workspace,
    ...(member === undefined ? { key_id: row.subject, key_name: row.keyName } : { [member]: row.subject }),
    requests: Number(row.requests),
    failed_requests: Number(row.failedRequests),
    input_tokens: Number(row.inputTokens),
    output_tokens: Number(row.outputTokens),
    cached_tokens: Number(row.cachedTokens),
    credits: row.credits,
  };
}

/** A row of FOCUS 1.3 (https://focus.finops.org). Columns that say nothing here are null, as the standard allows. */
function focusOf(
  row: Row,
  { workspace, workspaceId }: ExportUsageResponse,
  { member, currency, price }: { member: string | undefined; currency: string; price: number },
): Columns {
  const start = new Date(`${row.day}T00:00:00Z`);
  const time = (...parts: [year: number, month: number, day: number]) =>
    new Date(Date.UTC(...parts)).toISOString().replace(".000Z", "Z");
  const [year, month, day] = [start.getUTCFullYear(), start.getUTCMonth(), start.getUTCDate()];
  const tokens = Number(row.inputTokens + row.outputTokens);
  // Credits are exact decimals; another currency is rounded as binary numbers are.
  const cost = price === 1 ? row.credits : String(Number(row.credits) * price);
  const isKey = member === undefined;
  return {
    BilledCost: cost,
    BillingAccountId: workspaceId,
    BillingAccountName: workspace,
    BillingCurrency: currency,
    BillingPeriodEnd: time(year, month + 1, 1),
    BillingPeriodStart: time(year, month, 1),
    ChargeCategory: "Usage",
    ChargeClass: null,
    ChargeDescription: `Text generation: ${row.requests} requests`,
    ChargeFrequency: "Usage-Based",
    ChargePeriodEnd: time(year, month, day + 1),
    ChargePeriodStart: time(year, month, day),
    ConsumedQuantity: tokens,
    ConsumedUnit: "tokens",
    ContractedCost: cost,
    EffectiveCost: cost,
    HostProviderName: "Chorus",
    InvoiceIssuerName: "Chorus",
    ListCost: cost,
    PricingCategory: "Standard",
    PricingCurrency: "CREDIT",
    PricingCurrencyEffectiveCost: row.credits,
    PricingQuantity: tokens,
    PricingUnit: "tokens",
    ProviderName: "Chorus",
    PublisherName: "Chorus",
    ResourceId: isKey ? row.subject : null,
    ResourceName: isKey ? row.keyName || null : null,
    ServiceCategory: "AI and Machine Learning",
    ServiceName: "Chorus",
    ServiceProviderName: "Chorus",
    Tags: isKey || row.subject === "" ? "{}" : JSON.stringify({ [member]: row.subject }),
  };
}

/** A line of CSV (RFC 4180). A cell that a spreadsheet would take for a formula begins with an apostrophe. */
function line(cells: readonly Value[]): string {
  const texts = cells.map((cell) => {
    const text = typeof cell === "string" && /^[=+@\t\r-]/.test(cell) ? `'${cell}` : String(cell ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${texts.join(",")}\n`;
}

/** Waits while the reader of standard output does not keep up. */
async function write(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, "drain");
}
