import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { QuotasResponse } from "../../../gen/chorus/v1/generation_pb.js";
import { count, duration } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { FillTag, fillOf, Meter } from "../parts/meter.tsx";
import { type QuotaRow, quotaRows } from "./quota-rows.ts";

const GROUPS = [
  ["now", "Running now"],
  ["minute", "This minute"],
  ["day", "Today"],
  ["month", "This month"],
] as const;

/** A meter for each limit, grouped by period. */
export function QuotaMeters({ quotas }: { quotas: QuotasResponse }) {
  const rows = quotaRows(quotas);
  return (
    <section class="part">
      <h2>Rate limits</h2>
      <div class="cards four">
        {GROUPS.map(([anchor, title]) => {
          const own = rows.filter((row) => row.anchor === anchor);
          return (
            <Card key={anchor} id={anchor} title={title} text={resets(own[0], quotas)}>
              {own.map((row) => (
                <Row key={row.name} row={row} />
              ))}
            </Card>
          );
        })}
      </div>
    </section>
  );
}

function resets(row: QuotaRow | undefined, { asOf }: QuotasResponse): string {
  if (!row?.resetsAt || !asOf) return "On all replicas together";
  return `Resets in ${duration(Math.max(1000, timestampDate(row.resetsAt).getTime() - timestampDate(asOf).getTime()))}`;
}

function Row({ row: { name, used, limit } }: { row: QuotaRow }) {
  return (
    <div class="limit">
      <p>
        <span>{name.replace(/ (this \w+|today)$/, "")}</span>
        {limit !== undefined && <FillTag fill={fillOf(used, limit)} />}
        <span class="figure">
          <strong>{count(used)}</strong>{" "}
          <span class="soft">{limit === undefined ? "no limit" : `of ${count(limit)}`}</span>
        </span>
      </p>
      {limit !== undefined && <Meter used={used} limit={limit} label={name} />}
    </div>
  );
}
