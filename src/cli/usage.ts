import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import { type KeyUsage, UsageService } from "../../gen/chorus/admin/v1/usage_pb.js";
import {
  MetricsGroupBy,
  MetricsIntervalSchema,
  type MetricsPoint,
  type MetricsTotals,
} from "../../gen/chorus/v1/generation_pb.js";
import { numberOf, words } from "../contract/json-names.ts";
import { bar, sparkline } from "./chart.ts";
import { operatorClient } from "./clients.ts";
import { OWN_WORKSPACE, wantsJson } from "./command.ts";
import { number, periodJson, printJson, printTable, timeText } from "./print.ts";
import { CliError } from "./target.ts";
import { periodOf } from "./time.ts";
import { addUsageExport } from "./usage-export.ts";
import { addUsageTop } from "./usage-top.ts";

const FIGURES = ["REQUESTS", "FAILED", "INPUT", "OUTPUT", "CACHED", "CREDITS"];

/** Most keys with names and totals. */
const MAX_KEYS = 100;

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
  const period = { ...(startTime ? { startTime } : {}), ...(endTime ? { endTime } : {}) };
  const keys = options.byKey
    ? (await client.listTopKeys({ workspace, ...period, pageSize: MAX_KEYS })).keys
    : undefined;
  const names = new Map(keys?.map((key) => [key.keyId, key.keyName]));
  if (wantsJson(command)) {
    printJson({
      workspace: name,
      ...periodJson(usage),
      interval: options.interval,
      totals: figures(totals),
      ...(keys ? { keys: keys.map((key) => ({ key_id: key.keyId, name: key.keyName, ...figures(key.totals) })) } : {}),
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
  if (keys) printKeys(keys);
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

/** Prints the totals of each key, the largest first. */
function printKeys(keys: readonly KeyUsage[]): void {
  const most = Math.max(...keys.map(({ totals }) => totals?.credits ?? 0), 0);
  console.log("\nBy key:");
  printTable(
    ["KEY", "NAME", ...FIGURES, ""],
    keys.map(({ keyId, keyName, totals }) => [
      keyId,
      keyName || "-",
      ...numbers(totals),
      bar(totals?.credits ?? 0, most),
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

function figures(of: MetricsPoint | MetricsTotals | undefined): Record<string, number> {
  return {
    requests: Number(of?.requests ?? 0),
    failed_requests: Number(of?.failedRequests ?? 0),
    input_tokens: Number(of?.inputTokens ?? 0),
    output_tokens: Number(of?.outputTokens ?? 0),
    cached_tokens: Number(of?.cachedTokens ?? 0),
    credits: of?.credits ?? 0,
  };
}

function numbers(of: MetricsPoint | MetricsTotals | undefined) {
  return Object.values(figures(of)).map((figure) => number(figure));
}
