import { kindOf } from "../src/engine/difficulty/kind.ts";
import { read } from "../src/engine/difficulty/reading.ts";
import { costOfCall } from "./prices.ts";
import { replay } from "./replay.ts";
import { mean, paired } from "./score.ts";
import { formOf, scoreOf, type ToolRow, vendorOf } from "./tool-rows.ts";

/** Two fast models and a strong one, of three vendors. The catalogue states no accuracies. */
export const FAST = ["gpt-4o-mini-2024-07-18-FC", "gemini-1.5-flash-preview-0514"];
export const STRONG = "gpt-4o-2024-08-06-FC";
/** Large and middling models of three vendors that are about as accurate. */
export const PEERS = ["claude-3-5-sonnet-20240620", "Salesforce_xLAM-7b-fc-r", "meetkai_functionary-medium-v3.1-FC"];

/** Figures of one way to serve the questions. Shares of 1. */
export interface ToolPlanRow {
  served: string;
  category: string;
  rows: number;
  /** The model that is best on all questions among those that the plan may ask, and its accuracy on these. */
  best_member: string;
  best: number;
  accuracy: number;
  /** Accuracy above that model, with the bounds of its 95 % interval, paired by question. */
  gain: number;
  low: number;
  high: number;
  /** Calls of models for a question. */
  calls: number;
  /** Cost as a share of that of the best member alone, by list prices and the recorded tokens. */
  cost_share: number;
}

interface Served {
  readonly row: ToolRow;
  readonly score: number;
  readonly calls: readonly string[];
}

/**
 * Serves every question by the plan of a level, as the service does: canonical forms, plan, comparison. Calls that must
 * not leave count as wrong, because the request fails.
 * @returns a row for all questions and one for each category; nothing if a model did not run
 */
export async function toolPlansPart(rows: readonly ToolRow[]): Promise<ToolPlanRow[]> {
  const plans = [
    { title: "medium: two fast models, else the strong one", fast: FAST, strong: [STRONG], level: "medium" },
    { title: "high: the same three", fast: FAST, strong: [STRONG], level: "high" },
    { title: "high: a vote of three peers", fast: [], strong: PEERS, level: "high" },
  ] as const;
  const found: ToolPlanRow[] = [];
  for (const { title, fast, strong, level } of plans) {
    const names = [...fast, ...strong];
    const own = rows.filter(({ models }) => names.every((name) => models[name]));
    if (own.length === 0) continue;
    const best = bestOf(own, names);
    const served: Served[] = [];
    for (const row of own) served.push(await serve(row, fast, strong, level));
    for (const category of ["all", ...new Set(own.map((row) => row.category))]) {
      const some = served.filter(({ row }) => category === "all" || row.category === category);
      found.push(figures(title, category, some, best));
    }
  }
  return found;
}

async function serve(
  row: ToolRow,
  fast: readonly string[],
  strong: readonly string[],
  level: "medium" | "high",
): Promise<Served> {
  const crew = [...fast, ...strong].map((name) => ({
    name,
    vendor: vendorOf(name),
    tier: fast.includes(name) ? ("fast" as const) : ("strong" as const),
    accuracy: undefined,
    recording: { answer: "No call.", score: 0 },
    written: row.models[name]?.calls ?? [],
  }));
  const { written, calls } = await replay(crew, {
    prompt: row.prompt,
    level,
    kind: kindOf(read(row.prompt)),
    shape: "text",
    read: () => undefined,
    readCalls: (some) => formOf(some, row.tools),
  });
  const chosen = calls.map((name) => row.models[name]).find((draft) => draft?.calls === written);
  return { row, score: scoreOf(row, formOf(written, row.tools), chosen), calls };
}

/** The most accurate of some models. */
export function bestOf(rows: readonly ToolRow[], names: readonly string[]): string {
  const accuracy = (name: string) => mean(rows.map(({ models }) => models[name]?.score ?? 0));
  return names.toSorted((a, b) => accuracy(b) - accuracy(a))[0] ?? "";
}

function figures(served: string, category: string, some: readonly Served[], best: string): ToolPlanRow {
  const cost = ({ models }: ToolRow, name: string) => costOfCall(name, models[name]?.tokens);
  return {
    served,
    category,
    rows: some.length,
    best_member: best,
    best: mean(some.map(({ row }) => row.models[best]?.score ?? 0)),
    accuracy: mean(some.map(({ score }) => score)),
    ...paired(some.map(({ row, score }) => score - (row.models[best]?.score ?? 0))),
    calls: mean(some.map(({ calls }) => calls.length)),
    cost_share:
      mean(some.map(({ row, calls }) => calls.reduce((sum, name) => sum + cost(row, name), 0))) /
      mean(some.map(({ row }) => cost(row, best))),
  };
}
