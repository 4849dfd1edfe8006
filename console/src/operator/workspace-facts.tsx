import { LimitNameSchema, type Workspace } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { amount, count, timeText, words } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { Detail } from "../parts/details.tsx";

/** Who a workspace is, its tier and its limits. */
export function WorkspaceFacts({ of }: { of: Workspace }) {
  const overridden = new Set(of.overriddenLimits);
  const removed = of.overriddenLimits.filter((name) => of.limits.every((limit) => limit.name !== name));
  return (
    <Card title="Tier and limits">
      <dl class="details wide">
        <Detail name="Identifier" copy={of.id}>
          <code>{of.id}</code>
        </Detail>
        <Detail name="Created">{timeText(of.createdAt)}</Detail>
        <Detail name="Tier">
          {of.tier} {of.tierOverridden && <span class="tag">set by an operator</span>}
        </Detail>
        <Detail name="Purchased in total">{amount(of.purchasedTotal)}</Detail>
        {of.limits.map(({ name, value }) => (
          <Detail key={name} name={words(wordOf(LimitNameSchema, name))}>
            {count(value)} {overridden.has(name) && <span class="tag">set by an operator</span>}
          </Detail>
        ))}
        {removed.map((name) => (
          <Detail key={name} name={words(wordOf(LimitNameSchema, name))}>
            no limit <span class="tag">set by an operator</span>
          </Detail>
        ))}
      </dl>
    </Card>
  );
}
