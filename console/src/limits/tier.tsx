import type { GetNextTierResponse, Workspace } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { amount } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { Meter } from "../parts/meter.tsx";

interface Props {
  workspace: Workspace;
  next: GetNextTierResponse;
}

/** The tier, and what the next one needs. */
export function TierCard({ workspace, next: { tier, missing } }: Props) {
  return (
    <Card id="tier" title={`Tier ${workspace.tier}`} text={textOf(workspace, !tier)}>
      {tier && (
        <div class="limit">
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
    </Card>
  );
}

function textOf({ tierOverridden }: Workspace, isLast: boolean): string {
  if (tierOverridden) return "Assigned by the operator; purchases do not change it.";
  return isLast ? "The highest tier that purchases lead to." : "Purchases lead to higher limits.";
}
