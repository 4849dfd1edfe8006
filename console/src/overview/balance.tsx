import type { Workspace } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { amount, roundAmount } from "../format.ts";

/** The balance in one line. */
export function BalanceLine({ workspace }: { workspace: Workspace | undefined }) {
  const figure = (label: string, value: string | undefined, help: string) => (
    <div>
      <dt>{label}</dt>
      <dd title={value === undefined ? "" : `${amount(value)} credits`}>
        {value === undefined ? "…" : roundAmount(value)}
      </dd>
      <dd class="help">{help}</dd>
    </div>
  );
  const available =
    workspace && String(Number(workspace.granted) + Number(workspace.purchased) - Number(workspace.held));
  return (
    <dl class="figures" aria-label="Balance in credits">
      {figure("Available", available, "credits, for new requests")}
      {figure("Granted", workspace?.granted, "used first")}
      {figure("Purchased", workspace?.purchased, "counts toward spend limits")}
      {figure(
        "Held",
        workspace?.held,
        `by ${workspace?.running ?? 0} running ${workspace?.running === 1 ? "request" : "requests"}`,
      )}
    </dl>
  );
}
