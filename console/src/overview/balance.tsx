import type { Workspace } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { amount, roundAmount } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { Skeleton } from "../parts/skeleton.tsx";

interface Props {
  /** Undefined while it loads. */
  workspace: Workspace | undefined;
  /** Credits that the shown period has taken, for each of its days. Undefined: not known. */
  perDay?: number | undefined;
}

/** What is left, of which kind, and for how long. */
export function Balance({ workspace, perDay }: Props) {
  if (!workspace) {
    return (
      <Card class="balance">
        <Skeleton lines={3} />
      </Card>
    );
  }
  const { granted, purchased, held, running } = workspace;
  // Rounded to the decimals of credits, because sums of numbers have errors far below.
  const available = (Number(granted) + Number(purchased) - Number(held)).toFixed(6);
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
        {figure(
          "Available credits",
          available,
          ["for new requests", lasts(Number(available), perDay)].filter(Boolean).join(", "),
        )}
        {figure("Granted", granted, "used first")}
        {figure("Purchased", purchased, "counts toward spend limits")}
        {figure("Held", held, `by ${running} running ${running === 1 ? "request" : "requests"}`)}
      </dl>
    </Card>
  );
}

/** How long credits last at a pace, as a clause; empty if the pace says nothing. */
function lasts(credits: number, perDay: number | undefined): string {
  if (!perDay || credits <= 0) return "";
  const days = Math.round(credits / perDay);
  if (days > 365) return "for more than a year at this pace";
  return days < 1
    ? "for less than a day at this pace"
    : `for about ${days} ${days === 1 ? "day" : "days"} at this pace`;
}
