import type { QuotasResponse } from "../../../gen/chorus/v1/generation_pb.js";
import { quotaRows } from "../limits/quota-rows.ts";
import { Link } from "../parts/link.tsx";
import { FILL_WORDS, fillOf } from "../parts/meter.tsx";
import { pathOf } from "../route.ts";

/** The limits of which 50 % or more is used. */
export function NearLimits({ quotas }: { quotas: QuotasResponse }) {
  const near = quotaRows(quotas)
    .flatMap(({ limit, ...row }) => (limit === undefined ? [] : [{ ...row, limit, fill: fillOf(row.used, limit) }]))
    .filter(({ fill }) => fill !== "low")
    .sort((a, b) => b.used / (b.limit || 1) - a.used / (a.limit || 1));
  if (near.length === 0) return <p class="close-limits soft">Less than half of each limit is used.</p>;
  return (
    <section class="close-limits" aria-label="Limits that are near">
      <ul>
        {near.map(({ name, fill, anchor, write, used, limit }) => (
          <li key={name} class={fill}>
            <span class={`tag ${fill}`}>{FILL_WORDS[fill]}</span> <Link to={pathOf("limits", {}, anchor)}>{name}</Link>
            <span class="soft">{` ${write(used)} of ${write(limit)}`}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
