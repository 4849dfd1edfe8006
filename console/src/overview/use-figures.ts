import type { Client } from "@connectrpc/connect";
import type { UsageService } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { type Loaded, useLoad } from "../load.ts";
import { boundsOf, intervalOf, type Period } from "../parts/period.tsx";
import type { Figures } from "./stats.tsx";

/** The service returns latencies and failures of at most 92 days, and rounds the start down to a whole day. */
const MOST_LATENCY_MS = 91 * 86_400_000;

interface Of {
  calls: Client<typeof UsageService>;
  period: Period;
  /** Name of the workspace; an owner leaves it out. */
  workspace?: string;
  /** Identifier of the only key that counts; empty for all. */
  keyId?: string;
  /** Interval of reloading, in milliseconds; 0 for never. */
  everyMs: number;
}

/** Loads the usage of a period. */
export function useFigures({ calls, period, workspace = "", keyId = "", everyMs }: Of): Loaded<Figures> {
  return useLoad(
    async (signal) => {
      const { interval, ms } = intervalOf(period);
      const isLong = (period.to?.getTime() ?? Date.now()) - period.from.getTime() > MOST_LATENCY_MS;
      const request = { ...boundsOf(period), interval, keyId, workspace };
      const [{ usage: metrics }, performance] = await Promise.all([
        calls.getUsage(request, { signal }),
        isLong ? undefined : calls.getPerformance(request, { signal }),
      ]);
      if (!metrics) throw new Error("the service left the figures out");
      return { metrics, performance, ms };
    },
    `${workspace} ${period.key} ${keyId}`,
    everyMs,
  );
}
