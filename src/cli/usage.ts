import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import { KeyService } from "../../gen/chorus/admin/v1/keys_pb.js";
import { UsageService } from "../../gen/chorus/admin/v1/usage_pb.js";
import {
  MetricsGroupBy,
  MetricsIntervalSchema,
  type MetricsPoint,
  type MetricsTotals,
} from "../../gen/chorus/v1/generation_pb.js";
import { numberOf, words } from "../contract/json-names.ts";
import { bar, sparkline } from "./chart.ts";
import { operatorClient } from "./clients.ts";
import { OWN_WORKSPACE, readPages, wantsJson } from "./command.ts";
import { number, periodJson, printJson, printTable, timeText } from "./print.ts";
import { CliError } from "./target.ts";
import { periodOf } from "./time.ts";
import { addUsageExport } from "./usage-export.ts";
import { addUsageTop } from "./usage-top.ts";

const FIGURES = ["REQUESTS", "FAILED", "INPUT", "OUTPUT", "CACHED", "CREDITS"];

type Figures = ReturnType<typeof figures>;

interface Options {
  from?: string;
  to?: string;
  interval: string;
  byKey?: boolean;
  byUser?: boolean;
  byTag?: string;
}

export function addUsage(program: Command): void {
  const usage = program
    .command("usage")
    .description("show the usage of a workspace")
    .argument("[workspace]", OWN_WORKSPACE)
    .option(
      "--from <time>",
      "start: a time such as 2027-01-31T00:00:00Z, or a duration before now such as 7d (default: 30 days before --to)",
    )
    .option("--to <time>", "end, in the same format (default: now)")
    .option("--interval <interval>", "minute, hour, day or month", "day")
    .option("--by-key", "split by key, with the names and totals of keys")
    .addOption(new Option("--by-user", "split by end user").conflicts("byKey"))
    .addOption(new Option("--by-tag <name>", "split by the values of a tag").conflicts(["byKey", "byUser"]))
    .action(showUsage);
  addUsageExport(usage);
  addUsageTop(usage);
}

async function showUsage(workspace = "", options: Options, command: Command): Promise<void> {
  const interval = numberOf(MetricsIntervalSchema, options.interval);
  if (interval === 0) {
    const known = [...words(MetricsIntervalSchema).values()].join(", ");
    throw new CliError(`--interval must be ${known}, but is "${options.interval}".`);
  }
  const client = await operatorClient(UsageService, command);
  const { workspace: name, usage } = await client.getUsage({
    workspace,
    interval,
    ...groupOf(options),
    ...periodOf(options),
  });
  if (!usage?.totals) return;
  const { startTime, endTime, totals, series } = usage;
  const names = options.byKey ? await namesOfKeys(workspace, command) : new Map<string, string>();
  const keys = options.byKey ? sumsOfKeys(series) : undefined;
  if (wantsJson(command)) {
    printJson({
      workspace: name,
      ...periodJson(usage),
      interval: options.interval,
      totals: figures(totals),
      ...(keys
        ? { keys: keys.map(({ keyId, sums }) => ({ key_id: keyId, name: names.get(keyId) ?? "", ...sums })) }
        : {}),
      series: series.map((point) => ({
        ...(point.start ? { start: timestampDate(point.start).toISOString() } : {}),
        ...(point.keyId === undefined ? {} : { key_id: point.keyId }),
        ...(point.user === undefined ? {} : { user: point.user }),
        ...(point.tag === undefined ? {} : { tag: point.tag }),
        ...figures(point),
      })),
    });
    return;
  }
  printSeries(
    series,
    totals,
    groupName(options),
    (point) => names.get(point.keyId ?? "") || (point.keyId ?? point.user ?? point.tag ?? "-"),
  );
  if (keys) printKeys(keys, names);
  const line = sparkline(creditsByStart(series), { from: startTime, to: endTime }, options.interval);
  if (line) console.log(`\ncredits by ${options.interval}: ${line}`);
}

function groupOf({ byKey, byUser, byTag = "" }: Options) {
  const groupBy = byKey ? MetricsGroupBy.KEY : byUser ? MetricsGroupBy.USER : MetricsGroupBy.NONE;
  return byTag === "" ? { groupBy } : { groupBy: MetricsGroupBy.TAG, groupTag: byTag };
}

/** The head of the column that tells the groups apart; undefined: the series is not split. */
function groupName({ byKey, byUser, byTag }: Options): string | undefined {
  return byKey ? "KEY" : byUser ? "USER" : byTag?.toUpperCase();
}

/** @param group the head of the column for what `groupOfPoint` returns; undefined: there is none */
function printSeries(
  series: readonly MetricsPoint[],
  totals: MetricsTotals,
  group: string | undefined,
  groupOfPoint: (point: MetricsPoint) => string,
): void {
  const column = (text: string) => (group === undefined ? [] : [text]);
  const most = Math.max(...series.map(({ credits }) => credits), 0);
  printTable(
    ["START (UTC)", ...column(group ?? ""), ...FIGURES, ""],
    [
      ...series.map((point) => [
        timeText(point.start),
        ...column(groupOfPoint(point)),
        ...numbers(point),
        bar(point.credits, most),
      ]),
      ["total", ...column(""), ...numbers(totals), ""],
    ],
  );
}

/** The names of the keys of a workspace by identifier. */
async function namesOfKeys(workspace: string, command: Command): Promise<Map<string, string>> {
  const client = await operatorClient(KeyService, command);
  const { entries } = await readPages("keys", (page) => client.listKeys({ workspace, ...page }));
  return new Map(entries.map(({ id, name }) => [id, name]));
}

/** The sums of each key over a series that is split by key, so that they add up to its totals; the largest first. */
function sumsOfKeys(series: readonly MetricsPoint[]): { keyId: string; sums: Figures }[] {
  const points = Map.groupBy(series, ({ keyId = "" }) => keyId);
  const rows = [...points].map(([keyId, of]) => ({ keyId, sums: of.map(figures).reduce(sumOf) }));
  return rows.sort((one, other) => other.sums.credits - one.sums.credits);
}

function sumOf(one: Figures, other: Figures): Figures {
  return {
    requests: one.requests + other.requests,
    failed_requests: one.failed_requests + other.failed_requests,
    input_tokens: one.input_tokens + other.input_tokens,
    output_tokens: one.output_tokens + other.output_tokens,
    cached_tokens: one.cached_tokens + other.cached_tokens,
    // Credit is counted in millionths.
    credits: Number((one.credits + other.credits).toFixed(6)),
  };
}

function printKeys(keys: ReturnType<typeof sumsOfKeys>, names: ReadonlyMap<string, string>): void {
  const most = Math.max(...keys.map(({ sums }) => sums.credits), 0);
  console.log("\nBy key:");
  printTable(
    ["KEY", "NAME", ...FIGURES, ""],
    keys.map(({ keyId, sums }) => [
      keyId,
      names.get(keyId) || "-",
      ...Object.values(sums).map((figure) => number(figure)),
      bar(sums.credits, most),
    ]),
  );
}

/** Credits of each interval, over all keys. */
function creditsByStart(series: readonly MetricsPoint[]): Map<number, number> {
  const sums = new Map<number, number>();
  for (const { start, credits } of series) {
    const at = start ? timestampDate(start).getTime() : 0;
    sums.set(at, (sums.get(at) ?? 0) + credits);
  }
  return sums;
}

function figures(of: MetricsPoint | MetricsTotals) {
  return {
    requests: Number(of.requests),
    failed_requests: Number(of.failedRequests),
    input_tokens: Number(of.inputTokens),
    output_tokens: Number(of.outputTokens),
    cached_tokens: Number(of.cachedTokens),
    credits: of.credits,
  };
}

function numbers(of: MetricsPoint | MetricsTotals) {
  return Object.values(figures(of)).map((figure) => number(figure));
}
