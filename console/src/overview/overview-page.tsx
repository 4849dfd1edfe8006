import { UsageService } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { later } from "../later.tsx";
import { type Loaded, useLoad } from "../load.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { Refresh } from "../parts/icon-button.tsx";
import { KeyFilter } from "../parts/key-filter.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { boundsOf, type Period, PeriodPicker, PREVIOUS_MS, periodOf, previousOf } from "../parts/period.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { useRoute } from "../route.ts";
import { usage, workspaces } from "../rpc.ts";
import { can } from "../session/session.ts";
import { groupOf } from "../subjects/group.ts";
import { GroupPicker } from "../subjects/group-picker.tsx";
import { Balance } from "./balance.tsx";
import { Charts, Failures } from "./charts.tsx";
import { NearLimits } from "./near-limits.tsx";
import { type Figures, UsageStats } from "./stats.tsx";
import { TopKeys } from "./top-keys.tsx";
import { useFigures } from "./use-figures.ts";

const GROUPS = [
  ["", "Not split"],
  ["key", "By key"],
  ["user", "By user"],
] as const;

const ByGroup = later(undefined, async () => (await import("./by-group.tsx")).ByGroup);

const EVERY_MS = 15_000;

/** Balance, limits and usage of the workspace. */
export function OverviewPage() {
  const { query } = useRoute();
  const period = periodOf(query);
  const maySplit = can(UsageService.method.listTopSubjects);
  const group = maySplit ? groupOf(query.get("by")) : undefined;
  const keyId = group ? "" : (query.get("key") ?? "");

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
  const figures = useFigures({ calls: usage, period, keyId, everyMs: EVERY_MS });
  const before = useFigures({ calls: usage, period: previousOf(period), keyId, everyMs: PREVIOUS_MS });
  const top = useLoad(
    (signal) => usage.listTopKeys({ ...boundsOf(period), pageSize: 10 }, { signal }),
    period.key,
    EVERY_MS,
  );
  const keyName = top.data?.keys.find((key) => key.keyId === keyId)?.keyName;
  const failed = [standing, figures, top].find(({ error }) => error !== undefined);
  const refresh = () => {
    for (const each of [standing, figures, before, top]) each.reload();
  };
  return (
    <>
      <PageHead title="Overview">
        {maySplit && <GroupPicker group={group} options={GROUPS} />}
        {!group && <KeyFilter keyId={keyId} keyName={keyName} />}
        <PeriodPicker period={period} />
        <Refresh run={refresh} />
      </PageHead>
      {failed && <FailureNote error={failed.error} retry={refresh} />}
      {isShown(standing) && (
        <div class="standing" aria-busy={standing.loading}>
          <Balance workspace={standing.data?.workspace} perDay={keyId ? undefined : perDay(figures.data, period)} />
          <NearLimits quotas={standing.data?.quotas} />
        </div>
      )}
      {isShown(figures) && (
        <Usage figures={figures} before={before.data} period={period} isSplit={group !== undefined} />
      )}
      <div class="lower">
        {isShown(figures) && <Failures figures={figures.data} period={period} keyId={keyId} />}
        {!group && isShown(top) && <TopKeys top={top} chosen={keyId} />}
      </div>
    </>
  );
}

const DAY_MS = 86_400_000;

/** Credits of a period for each day so far. Undefined for less than a day, which says nothing of the next ones. */
function perDay(figures: Figures | undefined, { from, to }: Period): number | undefined {
  const days = (Math.min(to?.getTime() ?? Infinity, Date.now()) - from.getTime()) / DAY_MS;
  return figures && days >= 0.99 ? (figures.metrics.totals?.credits ?? 0) / days : undefined;
}

/** Whether there is something to show: data, or that they load. One note at the top reports all failures. */
function isShown({ data, error }: Loaded<unknown>): boolean {
  return data !== undefined || error === undefined;
}

interface UsageProps {
  figures: Loaded<Figures>;
  before: Figures | undefined;
  period: Period;
  isSplit: boolean;
}

function Usage({ figures: { data, loading }, before, period, isSplit }: UsageProps) {
  return (
    <div class="pending" aria-busy={loading}>
      <UsageStats figures={data} before={before} />
      {isSplit && <ByGroup />}
      {!isSplit && data && <Charts figures={data} period={period} />}
      {!isSplit && !data && (
        <div class="charts">
          {["requests", "spend", "tokens", "latency"].map((name) => (
            <div key={name} class="card">
              <Skeleton tall="16.5rem" />
            </div>
          ))}
        </div>
      )}
    </div>
  );
}
