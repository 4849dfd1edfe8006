import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type {
  GetPerformanceResponseSchema,
  GetUsageResponseSchema,
  LevelUsageSchema,
  ListTopKeysResponseSchema,
} from "../../../gen/chorus/admin/v1/usage_pb.js";
import { Effort } from "../../../gen/chorus/v1/generation_pb.js";
import { DAY, HOUR, NOW, noise } from "./clock.ts";

/** Request of a page, as JSON. */
type Request = Record<string, unknown>;

function stepsOf(request: Request): { starts: number[]; step: number; end: number } {
  const step = request.interval === "METRICS_INTERVAL_HOUR" ? HOUR : DAY;
  const end = request.to === undefined ? NOW : Date.parse(String(request.to));
  const first = Math.floor(Date.parse(String(request.from)) / step) * step;
  const starts: number[] = [];
  for (let at = first; at < end; at += step) starts.push(at);
  return { starts, step, end };
}

/** Requests rise towards midday; the interval that runs has only its first part. */
function loadAt(at: number, step: number, end: number): number {
  const wave = step === HOUR ? 0.6 - 0.5 * Math.cos(((at / HOUR - 2) * Math.PI) / 12) : 1;
  return wave * (0.75 + 0.5 * noise(at / HOUR)) * Math.min(1, (end - at) / step);
}

/** Usage that depends on the time only. @param part of the requests that are counted, 0 to 1 */
export function usage(request: Request, part = 1): MessageInitShape<typeof GetUsageResponseSchema> {
  const { starts, step, end } = stepsOf(request);
  const series = starts.map((at) => {
    const requests = Math.round(loadAt(at, step, end) * (step / HOUR) * 1300 * part);
    return {
      start: timestampFromMs(at),
      requests: BigInt(requests),
      failedRequests: BigInt(Math.round(requests * 0.012 * noise(at / HOUR + 3))),
      inputTokens: BigInt(requests * 612),
      cachedTokens: BigInt(requests * 208),
      outputTokens: BigInt(requests * 131),
      credits: requests * 0.00271,
    };
  });
  const sum = (of: (point: (typeof series)[number]) => bigint) => series.reduce((all, point) => all + of(point), 0n);
  return {
    usage: {
      startTime: timestampFromMs(starts[0] ?? end),
      endTime: timestampFromMs(end),
      series,
      totals: {
        requests: sum((point) => point.requests),
        failedRequests: sum((point) => point.failedRequests),
        inputTokens: sum((point) => point.inputTokens),
        cachedTokens: sum((point) => point.cachedTokens),
        outputTokens: sum((point) => point.outputTokens),
        credits: series.reduce((all, point) => all + point.credits, 0),
      },
    },
  };
}

/** Latencies and failures that depend on the time only. */
export function performance(request: Request): MessageInitShape<typeof GetPerformanceResponseSchema> {
  const { starts, step, end } = stepsOf(request);
  const failures = [
    { code: "upstream_failed", requests: 61n },
    { code: "timed_out", requests: 22n },
    { code: "caller_gone", requests: 9n },
  ];
  return {
    total: { latencyP50Ms: 812, latencyP95Ms: 3904, failures },
    series: starts.map((at) => ({
      start: timestampFromDate(new Date(at)),
      performance: {
        latencyP50Ms: Math.round(700 + 260 * noise(at / HOUR)),
        latencyP95Ms: Math.round(2900 + 2100 * noise(at / HOUR + 5)),
        levels: levelsOf(Math.round(loadAt(at, step, end) * (step / HOUR) * 1300)),
      },
    })),
  };
}

/** Few requests need a high level, but they take most of the credit. */
function levelsOf(requests: number): MessageInitShape<typeof LevelUsageSchema>[] {
  const shares = [
    [Effort.LOW, 0.7, 0.2],
    [Effort.MEDIUM, 0.2, 0.3],
    [Effort.HIGH, 0.1, 0.5],
  ] as const;
  return shares.map(([level, share, ofCredits]) => ({
    level,
    requests: BigInt(Math.round(requests * share)),
    credits: (requests * 0.00271 * ofCredits).toFixed(6),
  }));
}

const NAMES = ["Checkout assistant", "support-bot (production)", "Nightly summaries", "staging", "console"];

export const topKeys: MessageInitShape<typeof ListTopKeysResponseSchema> = {
  keys: NAMES.map((keyName, i) => ({
    keyId: `key_${i + 1}`,
    keyName,
    totals: {
      requests: BigInt(Math.round(18_000 / (i + 1) ** 2)),
      failedRequests: BigInt(Math.round(90 / (i + 1) ** 2)),
      inputTokens: BigInt(Math.round(11_016_000 / (i + 1) ** 2)),
      outputTokens: BigInt(Math.round(2_358_000 / (i + 1) ** 2)),
      credits: 48.78 / (i + 1) ** 2,
    },
  })),
};
