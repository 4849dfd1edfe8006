import {
  type GetNextTierResponse,
  type Limit,
  LimitName,
  LimitNameSchema,
  type Workspace,
} from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { amount, count, words } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { Meter } from "../parts/meter.tsx";

/** The order of the rows. */
const NAMES = [
  LimitName.CONCURRENT_REQUESTS,
  LimitName.REQUESTS_PER_MINUTE,
  LimitName.INPUT_TOKENS_PER_MINUTE,
  LimitName.OUTPUT_TOKENS_PER_MINUTE,
  LimitName.REQUESTS_PER_DAY,
  LimitName.INPUT_TOKENS_PER_DAY,
  LimitName.OUTPUT_TOKENS_PER_DAY,
  LimitName.REQUESTS_PER_MONTH,
  LimitName.INPUT_TOKENS_PER_MONTH,
  LimitName.OUTPUT_TOKENS_PER_MONTH,
];

/** The current tier, and the requirement and limits of the next one. */
export function TierSection({
  workspace,
  next: { tier, missing },
}: {
  workspace: Workspace;
  next: GetNextTierResponse;
}) {
  const names = NAMES.filter((name) =>
    [...workspace.limits, ...(tier?.limits ?? [])].some((limit) => limit.name === name),
  );
  const columns: Column<LimitName>[] = [
    {
      title: "Limit",
      cell: (name) => (
        <span>
          {capital(words(wordOf(LimitNameSchema, name)))}{" "}
          {workspace.overriddenLimits.includes(name) && <span class="tag">set by the operator</span>}
        </span>
      ),
    },
    { title: "Now", figure: true, cell: (name) => limitOf(workspace.limits, name) },
    ...(tier
      ? [{ title: `Tier ${tier.name}`, figure: true, cell: (name: LimitName) => limitOf(tier.limits, name) }]
      : []),
  ];
  return (
    <section class="part">
      <h2>Tier</h2>
      <Card id="tier" flush title={`Tier ${workspace.tier}`} text={<TierText workspace={workspace} isLast={!tier} />}>
        {tier && (
          <div class="limit next-tier">
            <p>
              <span>
                Needed for tier {tier.name}: <strong>{amount(missing)} credits</strong>
              </span>
              <span class="figure soft">
                {amount(workspace.purchasedTotal)} of {amount(tier.purchased)} purchased
              </span>
            </p>
            <Meter
              used={Number(workspace.purchasedTotal)}
              limit={Number(tier.purchased)}
              label={`Purchased toward tier ${tier.name}`}
              tone="progress"
            />
          </div>
        )}
        {names.length === 0 ? (
          <Empty title="This tier has no limits." />
        ) : (
          <DataTable label="Limits of the tier" columns={columns} rows={names} keyOf={String} />
        )}
      </Card>
    </section>
  );
}

function TierText({ workspace, isLast }: { workspace: Workspace; isLast: boolean }) {
  if (workspace.tierOverridden) return <>Assigned by the operator; purchases do not change it.</>;
  return <>{isLast ? "The highest tier that purchases lead to." : "Purchases lead to higher limits."}</>;
}

function limitOf(limits: readonly Limit[], name: LimitName): string {
  const limit = limits.find((one) => one.name === name);
  return limit ? count(limit.value) : "no limit";
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
