import type { Workspace } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { amount, roundAmount } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { Skeleton } from "../parts/skeleton.tsx";

/** What is left, and of which kind. @param workspace undefined while it loads */
export function Balance({ workspace }: { workspace: Workspace | undefined }) {
  if (!workspace) {
    return (
      <Card class="balance">
        <Skeleton lines={3} />
      </Card>
    );
  }
  const { granted, purchased, held, running } = workspace;
  const available = String(Number(granted) + Number(purchased) - Number(held));
  const figure = (label: string, value: string, help: string) => (
    <div title={`${amount(value)} credits`}>
      <dt>{label}</dt>
      <dd>{roundAmount(value)}</dd>
      <dd class="help">{help}</dd>
    </div>
  );
  return (
    <Card class="balance">
      <dl aria-label="Balance in credits">
        {figure("Available credits", available, "for new requests")}
        {figure("Granted", granted, "used first")}
        {figure("Purchased", purchased, "counts toward spend limits")}
        {figure("Held", held, `by ${running} running ${running === 1 ? "request" : "requests"}`)}
      </dl>
    </Card>
  );
}
