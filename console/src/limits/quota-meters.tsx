import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { QuotasResponse } from "../../../gen/chorus/v1/generation_pb.js";
import { count, duration } from "../format.ts";
import { FILL_WORDS, fillOf, Meter } from "../parts/meter.tsx";
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
    <section>
      <h2>Rate limits</h2>
      <div class="windows">
        {GROUPS.map(([anchor, title]) => {
          const own = rows.filter((row) => row.anchor === anchor);
          return (
            <section key={anchor} id={anchor}>
              <h3>
                {title} <span class="soft">{resets(own[0], quotas)}</span>
              </h3>
              {own.map((row) => (
                <Row key={row.name} row={row} />
              ))}
            </section>
          );
        })}
      </div>
    </section>
  );
}

function resets(row: QuotaRow | undefined, { asOf }: QuotasResponse): string {
  if (!row?.resetsAt || !asOf) return "";
  return `resets in ${duration(Math.max(1000, timestampDate(row.resetsAt).getTime() - timestampDate(asOf).getTime()))}`;
}

function Row({ row: { name, used, limit } }: { row: QuotaRow }) {
  const fill = limit === undefined ? "low" : fillOf(used, limit);
  return (
    <div class="limit">
      <p>
        <span>{name.replace(/ (this \w+|today)$/, "")}</span>
        {FILL_WORDS[fill] && <span class={`tag ${fill}`}>{FILL_WORDS[fill]}</span>}
        <span class="figure">
          <strong>{count(used)}</strong>{" "}
          {limit === undefined ? <span class="soft">no limit</span> : <span class="soft">of {count(limit)}</span>}
        </span>
      </p>
      {limit !== undefined && <Meter used={used} limit={limit} label={name} />}
    </div>
  );
}
