import { setTimeout as sleep } from "node:timers/promises";
import { repeat } from "../concurrency/repeat.ts";
import type { Catalogue, Probed } from "../models/catalogue.ts";

/** Time between two probes of models that were refused, in milliseconds. */
const AGAIN_MS = 30_000;

/** Time that the greeting waits for the first probe, in milliseconds. */
const FIRST_MS = 1_500;

export interface Probes {
  /** Resolves to what the first probe of all models has found, or after 1.5 s to nothing. */
  first(): Promise<readonly Probed[]>;
  /** Probes all models, because they may have changed. */
  again(): void;
  stop(): Promise<void>;
}

/** Probes all models, then those that were refused every 30 seconds, so that a mended key is noticed. */
export function startProbes(models: () => Catalogue): Probes {
  let all = true;
  const found = Promise.withResolvers<readonly Probed[]>();

  const probing = repeat(async (signal) => {
    const onlyRefused = !all;
    all = false;
    found.resolve(await models().probe(signal, { onlyRefused }));
  }, AGAIN_MS);
  return {
    first: () => Promise.race([found.promise, sleep(FIRST_MS, [], { ref: false })]),
    again() {
      all = true;
      probing.soon();
    },
    stop: probing.stop,
  };
}

/** See `Parts.vendors` of the services. @param canMend whether vendors are probed, and no model has answered yet */
export function vendorsOf(models: Catalogue, canMend: boolean): "ok" | "disabled" | "refuse" | "refuse_start" {
  // Stays in service: the console, in which the operator enables models, may be behind the same load balancer.
  if (models.members.length === 0) return "disabled";
  if (!models.isRefused()) return "ok";
  // A replica that has answered stays in service, because all others are refused as well. So does one whose models a
  // probe does not bring back: it needs a call to notice that it answers again.
  return canMend && models.mayBeMended() ? "refuse_start" : "refuse";
}

/** What the greeting says of the vendors. @param probes undefined if vendors are not probed */
export async function whatProbesFound(
  probes: Probes | undefined,
  { members, all }: Pick<Catalogue, "members" | "all">,
): Promise<{ canAnswer: boolean; problems: string[] }> {
  const disabled = all.filter((one) => !members.includes(one)).map(({ name }) => name);
  // The probe may have begun before it was known which models are disabled.
  const failing = ((await probes?.first()) ?? []).filter(({ entry }) => !disabled.includes(entry.name));
  const problems = problemsOf(failing);
  if (disabled.length > 0) {
    problems.push(`Disabled: ${disabled.join(", ")}. No request calls them until \`chorus models enable NAME\`.`);
  }
  return { canAnswer: failing.length < members.length, problems };
}

/** Sentences for the operator: what failed, and what to do. */
function problemsOf(found: readonly Probed[]): string[] {
  const groups = Map.groupBy(found, ({ entry: { vendor, baseUrl }, failure: { status, code, action } }) =>
    JSON.stringify([vendor, baseUrl, status, code, action]),
  );
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    return first ? [sentence(first, group.map(({ entry }) => entry.name).join(", "))] : [];
  });
}

function sentence({ entry, failure }: Probed, names: string): string {
  const { vendor, baseUrl, model, apiKeyEnv } = entry;
  const { status, action = "" } = failure;
  const why = [status, failure.code].filter(Boolean).join(" ");
  const where = baseUrl ? `${vendor} at ${new URL(baseUrl).origin}` : vendor;
  const effect = `so ${names} cannot answer.`;
  if (status === undefined) {
    return `${where} cannot be reached${why && ` (${why})`}, ${effect} Start it, or correct its address.`;
  }
  if (status === 404) return `${where} has no model "${model}" (${why}), ${effect} ${action}`;
  return `${where} refuses ${apiKeyEnv ?? "calls without a key"} (${why}), ${effect} ${action}`;
}
