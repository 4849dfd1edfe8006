import type { CataloguesRow } from "./catalogues.ts";
import type { ContextRow } from "./contexts.ts";
import type { PanelsRow } from "./panels.ts";
import type { ServedRow } from "./served.ts";
import type { ToolPlanRow } from "./tool-plans.ts";

/** A figure that a file of the published reference must reach. */
interface Gate {
  file: string;
  /** What must hold, for the report. */
  holds: string;
  isMet(served: ReadonlyMap<string, ServedRow>): boolean;
}

const auto = (served: ReadonlyMap<string, ServedRow>) => served.get("auto");

/** Holds for the models that `npm run eval` chooses for these files. */
const GATES: readonly Gate[] = [
  {
    file: "mmlu-pro",
    holds: "auto: accuracy of at least .725 with at most 40 % strong calls",
    isMet: (served) => (auto(served)?.accuracy ?? 0) >= 0.725 && (auto(served)?.strong_share ?? 1) <= 0.4,
  },
  {
    file: "gsm8k",
    holds: "auto: accuracy of at least .965 with at most 10 % strong calls",
    isMet: (served) => (auto(served)?.accuracy ?? 0) >= 0.965 && (auto(served)?.strong_share ?? 1) <= 0.1,
  },
  {
    file: "crux",
    holds: "auto: at most 2 points below the strong model alone",
    isMet: (served) => (auto(served)?.accuracy ?? 0) >= (served.get("gpt-4o-2024-08-06")?.accuracy ?? 1) - 0.02,
  },
];

/** Largest loss of the mean of near-peers to a plain plurality, in points: what the choice of 100 panels changes. */
const PLURALITY_TOLERANCE = 0.2;
/** Largest loss of a panel to its best member, in points, where the tiers are known. */
const LARGEST_LOSS = 1;

/** What random panels of a file miss, as sentences. */
export function missedByPanels(file: string, panels: readonly PanelsRow[]): string[] {
  return panels.flatMap((row) => {
    const where = `${file} misses a gate. Panels (${row.panels}; known: ${row.knows})`;
    if (row.panels === "near-peers" && row.knows === "accuracies")
      return row.mean_gain < row.plain_plurality - PLURALITY_TOLERANCE || row.significantly_below > 0
        ? [`${where}: expected the mean gain of a plain plurality, and none below its best member.`]
        : [];
    const isLoss = row.knows.startsWith("tiers") && row.worst_gain < -LARGEST_LOSS;
    return isLoss ? [`${where}: expected at most ${LARGEST_LOSS} point of loss.`] : [];
  });
}

/** Smallest gain of `auto` over the best single model in points: mean, that of a harder file, and worst. */
const AIMS = {
  given: { mean: 0, "mmlu-pro": -1.5, worst: -3 },
  learned: { mean: -1, "mmlu-pro": -2.5, worst: Number.NEGATIVE_INFINITY },
};
/** Largest loss of effort `high` to `auto`, in points. */
const HIGH_LOSS = 0.5;

/**
 * What random catalogues of a file miss, as sentences. A mean misses its aim if it is below it by more than chance,
 * which is half of its 95 % interval over the catalogues. Hidden accuracies have no aim except that of `high`.
 */
export function missedByCatalogues(file: string, rows: readonly CataloguesRow[]): string[] {
  return rows.flatMap(({ tiers, accuracies, effort, mean_gain, margin, worst_gain, over_auto, over_margin = 0 }) => {
    const where = `${file} misses a gate. Catalogues (${tiers}; accuracies ${accuracies}; ${effort})`;
    if (over_auto !== undefined)
      return over_auto + over_margin < -HIGH_LOSS
        ? [`${where}: expected at most ${HIGH_LOSS} points less than auto.`]
        : [];
    if (accuracies === "hidden") return [];
    const aims = AIMS[accuracies];
    const mean = file === "mmlu-pro" ? aims[file] : aims.mean;
    if (mean_gain + margin >= mean && worst_gain >= aims.worst) return [];
    return [`${where}: expected a mean of ${mean} and a worst of ${aims.worst} points or more.`];
  });
}

/** What a context may cost at most: accuracy, and calls as a share of those of bare prompts. */
const CONTEXT = { loss: 0.005, rewordedLoss: 0.01, extraCost: 0.1 };

/** The contexts in which a file's questions are answered worse or at a higher cost than alone, as sentences. */
export function missedByContexts(file: string, rows: readonly ContextRow[]): string[] {
  return rows.flatMap(({ context, gain, extra_cost }) => {
    const loss = context.startsWith("reworded") ? CONTEXT.rewordedLoss : CONTEXT.loss;
    if (-gain <= loss && extra_cost <= CONTEXT.extraCost) return [];
    const expected = `expected at most ${100 * loss} points of loss and ${100 * CONTEXT.extraCost} % of extra cost`;
    return [`${file} misses a gate. ${context}: ${expected}.`];
  });
}

/** The gates that a file misses, as sentences. Files without a gate miss none. */
export function missedGates(file: string, served: readonly ServedRow[]): string[] {
  const byName = new Map(served.map((row) => [row.served, row]));
  return GATES.filter((gate) => gate.file === file && !gate.isMet(byName)).map(
    ({ holds }) => `${file} misses a gate. Expected ${holds}.`,
  );
}

/** What the plans for tools miss, as sentences: each must gain, and lose nothing where no call is right. */
export function missedByToolPlans(file: string, plans: readonly ToolPlanRow[]): string[] {
  const watched = plans.filter(({ category }) => category === "all" || category === "relevance");
  return watched.flatMap(({ served, category, gain }) =>
    gain < 0 ? [`${file} misses a gate. ${served} (${category}): expected no loss to the best member.`] : [],
  );
}
