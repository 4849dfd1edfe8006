import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { UsageService } from "../../gen/chorus/admin/v1/usage_pb.js";
import {
  MetricsGroupBy,
  MetricsInterval,
  type MetricsPoint,
  type MetricsTotals,
} from "../../gen/chorus/v1/generation_pb.js";
import { bar, sparkline } from "./chart.ts";
import { operatorClient, wantsJson } from "./clients.ts";
import { printJson, printTable, timeText } from "./print.ts";
import { CliError } from "./target.ts";
import { parseTime } from "./time.ts";

const INTERVALS: ReadonlyMap<string, MetricsInterval> = new Map([
  ["minute", MetricsInterval.MINUTE],
  ["hour", MetricsInterval.HOUR],
  ["day", MetricsInterval.DAY],
  ["month", MetricsInterval.MONTH],
]);

interface Options {
  from?: string;
  to?: string;
  interval: string;
  byKey: boolean;
}

export function addUsage(program: Command): void {
  program
    .command("usage")
    .description("show the usage of a workspace")
    .argument("[workspace]", "name or identifier; an owner can omit it", "")
    .option(
      "--from <time>",
      "start: a time such as 2027-01-31T00:00:00Z, or a duration before now such as 7d (default: 30 days before --to)",
    )
    .option("--to <time>", "end, in the same format (default: now)")
    .option("--interval <interval>", "minute, hour, day or month", "day")
    .option("--by-key", "split by key", false)
    .action(async (workspace: string, options: Options, command: Command) => {
      const interval = INTERVALS.get(options.interval);
      if (interval === undefined) {
        throw new CliError(`--interval must be ${[...INTERVALS.keys()].join(", ")}, but is "${options.interval}".`);
      }
      const client = await operatorClient(UsageService, command);
      const { workspace: name, usage } = await client.getUsage({
        workspace,
        interval,
        groupBy: options.byKey ? MetricsGroupBy.KEY : MetricsGroupBy.NONE,
        ...(options.from === undefined ? {} : { startTime: parseTime("--from", options.from, -1) }),
        ...(options.to === undefined ? {} : { endTime: parseTime("--to", options.to, -1) }),
      });
      if (!usage?.totals) return;
      if (wantsJson(command)) {
        printJson({
          workspace: name,
          ...(usage.startTime ? { from: timestampDate(usage.startTime).toISOString() } : {}),
          ...(usage.endTime ? { to: timestampDate(usage.endTime).toISOString() } : {}),
          interval: options.interval,
          totals: figures(usage.totals),
          series: usage.series.map((point) => ({
            ...(point.start ? { start: timestampDate(point.start).toISOString() } : {}),
            ...(point.keyId === undefined ? {} : { key_id: point.keyId }),
            ...figures(point),
          })),
        });
        return;
      }
      const key = (text: string) => (options.byKey ? [text] : []);
      const row = (of: MetricsPoint | MetricsTotals) => Object.values(figures(of)).map(String);
      const most = Math.max(...usage.series.map(({ credits }) => credits), 0);
      printTable(
        ["START (UTC)", ...key("KEY"), "REQUESTS", "FAILED", "INPUT", "OUTPUT", "CACHED", "CREDITS", ""],
        [
          ...usage.series.map((point) => [
            timeText(point.start),
            ...key(point.keyId ?? "-"),
            ...row(point),
            bar(point.credits, most),
          ]),
          ["total", ...key(""), ...row(usage.totals), ""],
        ],
      );
      const period = { from: usage.startTime, to: usage.endTime };
      const line = sparkline(creditsByStart(usage.series), period, options.interval);
      if (line) console.log(`\ncredits by ${options.interval}: ${line}`);
    });
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

function figures(of: MetricsPoint | MetricsTotals): Record<string, number> {
  return {
    requests: Number(of.requests),
    failed_requests: Number(of.failedRequests),
    input_tokens: Number(of.inputTokens),
    output_tokens: Number(of.outputTokens),
    cached_tokens: Number(of.cachedTokens),
    credits: of.credits,
  };
}
