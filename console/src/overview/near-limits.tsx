import type { QuotasResponse } from "../../../gen/chorus/v1/generation_pb.js";
import { limitRows } from "../limits/limit-rows.ts";
import { Card } from "../parts/card.tsx";
import { Link } from "../parts/link.tsx";
import { FillTag, fillOf, Meter } from "../parts/meter.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { pathOf } from "../route.ts";

/** The limits of which 50 % or more is used, the fullest first. @param quotas undefined while they load */
export function NearLimits({ quotas }: { quotas: QuotasResponse | undefined }) {
  const near = (quotas ? limitRows(quotas) : [])
    .flatMap(({ limit, used, ...row }) =>
      limit === undefined || used === undefined ? [] : [{ ...row, limit, used, fill: fillOf(used, limit) }],
    )
    .filter(({ fill }) => fill !== "low")
    .sort((a, b) => b.used / (b.limit || 1) - a.used / (a.limit || 1));
  return (
    <Card class="near" title="Limits that are near" actions={<Link to={pathOf("limits")}>All limits</Link>}>
      {!quotas && <Skeleton lines={3} />}
      {quotas && near.length === 0 && <p class="soft">Less than half of each limit is used.</p>}
      <ul>
        {near.map(({ name, fill, anchor, writeUsed, writeLimit, used, limit }) => (
          <li key={name}>
            <p>
              <Link to={pathOf("limits", {}, anchor)}>{name}</Link>
              <FillTag fill={fill} />
              <span class="soft">{`${writeUsed(used)} of ${writeLimit(limit)}`}</span>
            </p>
            <Meter used={used} limit={limit} label={name} />
          </li>
        ))}
      </ul>
    </Card>
  );
}
