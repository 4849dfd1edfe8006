import {
  type GetNextTierResponse,
  type Limit,
  LimitName,
  LimitNameSchema,
  type Workspace,
} from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { wordOf } from "../../../src/json-names.ts";
import { amount, count, words } from "../format.ts";
import { Scroll } from "../parts/scroll.tsx";

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
export function TierSection({ workspace, next }: { workspace: Workspace; next: GetNextTierResponse }) {
  const { tier } = next;
  const names = NAMES.filter((name) =>
    [...workspace.limits, ...(tier?.limits ?? [])].some((limit) => limit.name === name),
  );
  return (
    <section id="tier">
      <h2>Tier {workspace.tier}</h2>
      {tier ? (
        <p>
          Tier {tier.name} begins at {amount(tier.purchased)} purchased credits in all.{" "}
          {amount(workspace.purchasedTotal)} have been purchased so far;{" "}
          <strong>{amount(next.missing)} are missing.</strong>
        </p>
      ) : (
        <p>
          {workspace.tierOverridden
            ? "The operator of this service has assigned this tier; purchases do not change it."
            : "This is the highest tier that you can reach with purchases."}
        </p>
      )}
      {workspace.overriddenLimits.length > 0 && (
        <p>The operator has overridden the limits that are marked below. They stay when the tier changes.</p>
      )}
      {names.length === 0 ? (
        <p class="soft">This tier has no limits.</p>
      ) : (
        <Scroll label="Limits of the tier">
          <table>
            <thead>
              <tr>
                <th scope="col">Limit</th>
                <th scope="col" class="figure">
                  Now
                </th>
                {tier && (
                  <th scope="col" class="figure">
                    Tier {tier.name}
                  </th>
                )}
              </tr>
            </thead>
            <tbody>
              {names.map((name) => (
                <tr key={name}>
                  <th scope="row">
                    {capital(words(wordOf(LimitNameSchema, name)))}
                    {workspace.overriddenLimits.includes(name) && <span class="soft"> · set by hand</span>}
                  </th>
                  <td class="figure">{limitOf(workspace.limits, name)}</td>
                  {tier && <td class="figure">{limitOf(tier.limits, name)}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </section>
  );
}

function limitOf(limits: readonly Limit[], name: LimitName): string {
  const limit = limits.find((one) => one.name === name);
  return limit ? count(limit.value) : "no limit";
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
