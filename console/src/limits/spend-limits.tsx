import type { Workspace } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { type QuotasResponse, SpendPeriod } from "../../../gen/chorus/v1/generation_pb.js";
import { SpendLimitRow } from "./spend-limit-row.tsx";

const PERIODS = [
  [SpendPeriod.DAY, "Each day"],
  [SpendPeriod.WEEK, "Each week, from Monday"],
  [SpendPeriod.MONTH, "Each month"],
] as const;

/** The owner's limits on what of the purchased credit may be spent. */
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
        They hold for the purchased credit of the whole workspace; granted credit is used first and does not count. You
        set them here. They bind the requests that come from now on, which are refused with{" "}
        <code>spend_limit_reached</code> when there is no room left.
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
