import type { Workspace } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { type QuotasResponse, SpendPeriod } from "../../../gen/chorus/v1/generation_pb.js";
import { SpendLimitForm } from "./spend-limit-form.tsx";

const PERIODS = [
  [SpendPeriod.DAY, "Daily limit"],
  [SpendPeriod.WEEK, "Weekly limit, from Monday"],
  [SpendPeriod.MONTH, "Monthly limit"],
] as const;

interface Props {
  workspace: Workspace;
  quotas: QuotasResponse;
  changed: () => void;
}

/** The owner's limits on spending purchased credit. */
export function SpendLimits({ workspace, quotas, changed }: Props) {
  return (
    <section id="spend" class="part">
      <h2>Spend limits</h2>
      <p class="lead">
        Limit the purchased credit that the workspace may spend. Granted credit is used first and does not count. A
        request that would exceed a limit is refused with <code>spend_limit_reached</code>.
      </p>
      <div class="cards">
        {PERIODS.map(([period, title]) => (
          <SpendLimitForm
            key={period}
            period={period}
            title={title}
            set={workspace.spendLimits.find((limit) => limit.period === period)?.amount}
            state={quotas.spendLimits.find((limit) => limit.period === period)}
            changed={changed}
          />
        ))}
      </div>
    </section>
  );
}
