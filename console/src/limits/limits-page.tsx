import { useEffect } from "preact/hooks";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { usage, workspaces } from "../rpc.ts";
import { QuotaMeters } from "./quota-meters.tsx";
import { SpendLimits } from "./spend-limits.tsx";
import { TierSection } from "./tier.tsx";

const EVERY_MS = 5000;

/** The use of each limit, the tier, and the spend limits. */
export function LimitsPage() {
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
    if (isThere && location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }, [isThere]);
  return (
    <>
      <PageHead
        title="Limits and spend"
        lead="All keys of the workspace count together. A refused request uses nothing of any limit."
      />
      <Pending of={standing} what="limits" skeleton={<Skeletons />}>
        {({ quotas, workspace, next }) => (
          <>
            <SpendLimits workspace={workspace} quotas={quotas} changed={standing.reload} />
            <QuotaMeters quotas={quotas} />
            <TierSection workspace={workspace} next={next} />
          </>
        )}
      </Pending>
    </>
  );
}

function Skeletons() {
  return (
    <div class="cards">
      {["day", "week", "month"].map((name) => (
        <Card key={name}>
          <Skeleton tall="9rem" />
        </Card>
      ))}
    </div>
  );
}
