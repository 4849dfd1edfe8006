import { useEffect, useState } from "preact/hooks";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { toast } from "../parts/toasts.tsx";
import { usage, workspaces } from "../rpc.ts";
import type { LimitRow } from "./limit-rows.ts";
import { LimitTable } from "./limit-table.tsx";
import { SetSpendLimit } from "./set-spend-limit.tsx";
import { TierCard } from "./tier.tsx";

const EVERY_MS = 5000;

/** The use and pace of each limit, and the tier. Spend limits are set here. */
export function LimitsPage() {
  const [changing, setChanging] = useState<LimitRow>();
  const standing = useLoad(
    async (signal) => {
      const [{ quotas }, { workspace }, next] = await Promise.all([
        usage.getQuotas({}, { signal }),
        workspaces.getWorkspace({}, { signal }),
        workspaces.getNextTier({}, { signal }),
      ]);
      if (!quotas || !workspace) throw new Error("the service left the figures out");
      return { quotas, workspace, next };
    },
    "standing",
    EVERY_MS,
  );
  const isThere = standing.data !== undefined;
  useEffect(() => {
    // The anchor of the address exists only now, so the browser has not scrolled to it yet.
    if (isThere && location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView({ block: "center" });
  }, [isThere]);
  const close = () => setChanging(undefined);
  return (
    <>
      <PageHead
        title="Limits and spend"
        lead="All keys of the workspace count together. A refused request uses nothing of any limit."
      />
      <Pending of={standing} what="limits" skeleton={<Skeletons />}>
        {({ quotas, workspace, next }) => (
          <>
            <TierCard workspace={workspace} next={next} />
            <section class="part">
              <h2>Limits</h2>
              <p class="lead">
                Spend limits count purchased credit; granted credit is used first and does not count. A request that
                would exceed one is refused with <code>spend_limit_reached</code>.
              </p>
              <LimitTable workspace={workspace} quotas={quotas} next={next} change={setChanging} />
            </section>
            {changing && (
              <SetSpendLimit
                period={changing.spend}
                set={workspace.spendLimits.find(({ period }) => period === changing.spend)?.amount ?? ""}
                close={close}
                done={(sentence) => {
                  close();
                  toast(sentence);
                  standing.reload();
                }}
              />
            )}
          </>
        )}
      </Pending>
    </>
  );
}

function Skeletons() {
  return (
    <>
      <Card>
        <Skeleton lines={2} />
      </Card>
      <Card>
        <Skeleton tall="24rem" />
      </Card>
    </>
  );
}
