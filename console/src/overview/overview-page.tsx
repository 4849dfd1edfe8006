import { useLoad } from "../load.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { KeyFilter } from "../parts/key-filter.tsx";
import { boundsOf, intervalOf, PeriodPicker, periodOf } from "../parts/period.tsx";
import { useRoute } from "../route.ts";
import { usage, workspaces } from "../rpc.ts";
import { BalanceLine } from "./balance.tsx";
import { Charts } from "./charts.tsx";
import { NearLimits } from "./near-limits.tsx";
import { TopKeys } from "./top-keys.tsx";

const EVERY_MS = 15_000;

/** The service returns latencies and failures of at most 92 days, and rounds the start down to a whole day. */
const MOST_LATENCY_MS = 91 * 86_400_000;

/** Balance, limits and usage of the workspace. */
export function OverviewPage() {
  const { query } = useRoute();
  const period = periodOf(query);
  const keyId = query.get("key") ?? "";
  const name = `${period.name} ${query.get("from")} ${query.get("to")}`;

  const standing = useLoad(
    async (signal) => {
      const [{ workspace }, { quotas }] = await Promise.all([
        workspaces.getWorkspace({}, { signal }),
        usage.getQuotas({}, { signal }),
      ]);
      return { workspace, quotas };
    },
    "standing",
    EVERY_MS,
  );
  const figures = useLoad(
    async (signal) => {
      const { interval, ms } = intervalOf(period);
      const isLong = (period.to?.getTime() ?? Date.now()) - period.from.getTime() > MOST_LATENCY_MS;
      const request = { ...boundsOf(period), interval, keyId };
      const [{ usage: metrics }, performance] = await Promise.all([
        usage.getUsage(request, { signal }),
        isLong ? undefined : usage.getPerformance(request, { signal }),
      ]);
      return { metrics, performance, ms };
    },
    `${name} ${keyId}`,
    EVERY_MS,
  );
  const top = useLoad((signal) => usage.listTopKeys({ ...boundsOf(period), pageSize: 10 }, { signal }), name, EVERY_MS);
  const keyName = top.data?.keys.find((key) => key.keyId === keyId)?.keyName;

  const { workspace, quotas } = standing.data ?? {};
  return (
    <>
      <h1 tabIndex={-1}>Overview</h1>
      {standing.error !== undefined && <FailureNote error={standing.error} retry={standing.reload} />}
      <BalanceLine workspace={workspace} />
      {quotas && <NearLimits quotas={quotas} />}
      <div class="toolbar">
        <PeriodPicker period={period} />
        <KeyFilter keyId={keyId} keyName={keyName} />
        <button
          type="button"
          onClick={() => {
            standing.reload();
            figures.reload();
            top.reload();
          }}
        >
          Refresh
        </button>
      </div>
      <Charts figures={figures} />
      <TopKeys top={top} chosen={keyId} />
    </>
  );
}
