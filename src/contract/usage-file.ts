import { create } from "@bufbuild/protobuf";
import { type ExportUsageResponse, type UsageRow, UsageRowSchema } from "../../gen/chorus/admin/v1/usage_pb.js";

/** Formats of an export of usage: CSV (RFC 4180), JSON lines, and FOCUS 1.3 as CSV. */
export const USAGE_FORMATS = ["csv", "jsonl", "focus"] as const;
export type UsageFormat = (typeof USAGE_FORMATS)[number];

/** How the rows of an export are written. */
export interface UsageFile {
  readonly format: UsageFormat;
  /** Name of the column of the subject: `user`, or the name of a tag; undefined: the rows are about keys. */
  readonly member: string | undefined;
  /** FOCUS: currency of the costs (ISO 4217; XXX: credits). */
  readonly currency: string;
  /** FOCUS: price of a credit in this currency; see `isPrice`. */
  readonly price: string;
}

/** Whether a text is a price: a decimal number from 0, with up to nine digits before and after the point. */
export function isPrice(text: string): boolean {
  return /^\d{1,9}(\.\d{1,9})?$/.test(text);
}

type Value = string | number | null;

/** A row of the export by the names of its columns, in their order. */
type Columns = Record<string, Value>;

type Page = Pick<ExportUsageResponse, "workspace" | "workspaceId" | "rows">;

/** All rows of a file have the same columns, so those of any row name them where there is none. */
const ANY_ROW = create(UsageRowSchema, { day: "2000-01-01" });

/**
 * Writes a page of usage as lines.
 * @param isFirst whether it is the first page; then CSV begins with the names of the columns
 */
export function usageLines(page: Page, file: UsageFile, isFirst: boolean): string {
  const columnsOf = (row: UsageRow) => (file.format === "focus" ? focusOf : plainOf)(row, page, file);
  const rows = page.rows.map(columnsOf);
  if (file.format === "jsonl") return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  const head = isFirst ? csvLine(Object.keys(columnsOf(ANY_ROW))) : "";
  return head + rows.map((row) => csvLine(Object.values(row))).join("");
}

function plainOf(row: UsageRow, { workspace }: Page, { member }: UsageFile): Columns {
  const place = { day: row.day, workspace };
  const figures = {
    requests: Number(row.requests),
    failed_requests: Number(row.failedRequests),
    input_tokens: Number(row.inputTokens),
    output_tokens: Number(row.outputTokens),
    cached_tokens: Number(row.cachedTokens),
    credits: row.credits,
  };
  if (member === undefined) return { ...place, key_id: row.subject, key_name: row.keyName, ...figures };
  // A tag can have the name of another column, or a number, which an object would put first.
  const isTaken = Object.hasOwn({ ...place, ...figures }, member) || /^\d+$/.test(member);
  return { ...place, [isTaken ? `tag.${member}` : member]: row.subject, ...figures };
}

/** A row of FOCUS 1.3 (https://focus.finops.org). Columns that say nothing here are null, as the standard allows. */
function focusOf(row: UsageRow, { workspace, workspaceId }: Page, { member, currency, price }: UsageFile): Columns {
  const start = new Date(`${row.day}T00:00:00Z`);
  const time = (...parts: [year: number, month: number, day: number]) =>
    new Date(Date.UTC(...parts)).toISOString().replace(".000Z", "Z");
  const [year, month, day] = [start.getUTCFullYear(), start.getUTCMonth(), start.getUTCDate()];
  const tokens = Number(row.inputTokens + row.outputTokens);
  const cost = product(row.credits, price);
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

/** The exact product of two decimal numbers from 0, such as `0.0987` and `0.3`, without trailing zeros. */
function product(one: string, other: string): string {
  const decimals = (text: string) => text.split(".")[1]?.length ?? 0;
  const digits = (text: string) => BigInt(text.replace(".", ""));
  const places = decimals(one) + decimals(other);
  const text = String(digits(one) * digits(other)).padStart(places + 1, "0");
  const fraction = text.slice(text.length - places).replace(/0+$/, "");
  return text.slice(0, text.length - places) + (fraction === "" ? "" : `.${fraction}`);
}

/**
 * A line of CSV (RFC 4180), which ends with a line feed. A text that a spreadsheet would run as a formula begins with
 * an apostrophe; see https://owasp.org/www-community/attacks/CSV_Injection.
 */
function csvLine(cells: readonly Value[]): string {
  const texts = cells.map((cell) => {
    const text = typeof cell === "string" && /^[=+@\t\r-]/.test(cell) ? `'${cell}` : String(cell ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${texts.join(",")}\n`;
}
