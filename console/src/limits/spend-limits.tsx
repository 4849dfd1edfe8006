import type { Workspace } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { type QuotasResponse, SpendPeriod } from "../../../gen/chorus/v1/generation_pb.js";
import { SpendLimitRow } from "./spend-limit-row.tsx";

const PERIODS = [
  [SpendPeriod.DAY, "Each day"],
  [SpendPeriod.WEEK, "Each week, from Monday"],
  [SpendPeriod.MONTH, "Each month"],
] as const;

/** The owner's limits on spending purchased credit. */
export function SpendLimits({
  workspace,
  quotas,
  changed,
}: {
  workspace: Workspace;
  quotas: QuotasResponse;
  changed: () => void;
}) {
  return (
    <section id="spend">
      <h2>Spend limits</h2>
      <p>
        They apply to the purchased credit of the whole workspace. Granted credit is used first and does not count. A
        new request that would exceed a limit is refused with <code>spend_limit_reached</code>.
      </p>
      {PERIODS.map(([period, title]) => (
        <SpendLimitRow
          key={period}
          period={period}
          title={title}
          set={workspace.spendLimits.find((limit) => limit.period === period)?.amount}
          state={quotas.spendLimits.find((limit) => limit.period === period)}
          changed={changed}
        />
      ))}
    </section>
  );
}
