import { envToConfig } from "../src/config/config.ts";
import type { Effort } from "../src/contract/terms.ts";
import type { DifficultyRater } from "../src/engine/difficulty/difficulty.ts";
import { chooseLevel } from "../src/generate/level.ts";
import { usualCost } from "./prices.ts";
import type { Choice, Row } from "./recording.ts";
import { type Player, type Request, replay } from "./replay.ts";
import { accuracyOf, mean, paired, pairOf, ranOn, scoreOf } from "./score.ts";

/** Figures of one way to serve a file's questions. Shares of 1. */
export interface ServedRow {
  served: string;
  accuracy: number;
  /** Share of the questions for which the strong model was called. */
  strong_share: number;
  /** Calls of models for a question. */
  calls: number;
  /** Cost as a share of asking the strong model alone, by list prices and calls of usual length. */
  cost_share: number;
  /** Accuracy of a random choice between the first fast model and the strong one with the same share. */
  random_mix: number;
  /** Accuracy above the strong model alone, with its 95 % interval, paired by question. */
  over_strong: string;
}

const EFFORTS: readonly Effort[] = ["auto", "low", "medium", "high"];

/**
 * Serves every question by each effort as the service does: difficulty, kind, level, plan and fusion. The catalogue
 * has the fast models and the strong one without stated accuracies. The rows after the efforts are the cascade for
 * every question and each model alone.
 * @param rater of a scorer that was not trained on this file
 * @returns undefined without a strong model and two fast ones that ran on the same question
 */
export async function servedPart(
  all: readonly Row[],
  choice: Choice,
  rater: DifficultyRater,
): Promise<ServedRow[] | undefined> {
  const { strong } = choice;
  const weak = pairOf(choice);
  if (strong === undefined || weak.length === 0) return undefined;
  const names = [...weak, strong];
  const rows = ranOn(all, names);
  if (rows.length === 0) return undefined;
  const { levels } = envToConfig({});
  const served: ServedRow[] = [];
  const add = async (title: string, request: (row: Row) => Omit<Request, "prompt" | "shape" | "read">) => {
    const answers: Answered[] = [];
    for (const row of rows) answers.push(await serve(row, weak, strong, request(row)));
    served.push(figures(title, answers, weak[0] ?? strong, strong));
  };
  for (const effort of EFFORTS) {
    await add(effort, ({ prompt }) => {
      const conversation = { system: [], messages: [{ role: "user" as const, text: prompt }], continues: false };
      return { effort, ...chooseLevel(rater, levels, { effort, conversation, trace: false }) };
    });
  }
  await add("cascade for all", () => ({ level: "medium", kind: "closed" }));
  for (const name of names) {
    const alone = rows.map((row) => ({ row, score: row.models[name]?.score ?? 0, calls: [name] }));
    served.push(figures(name, alone, weak[0] ?? strong, strong));
  }
  return served;
}

/** A question as it was answered. */
export interface Answered {
  row: Row;
  score: number;
  /** Name of the model of each call. */
  calls: string[];
}

/** Answers a question as the service does after its level and kind are chosen. */
export async function serve(
  row: Row,
  weak: readonly string[],
  strong: string,
  request: Omit<Request, "prompt" | "shape" | "read">,
): Promise<Answered> {
  const crew = [...weak, strong].map(
    (name): Player => ({
      name,
      tier: name === strong ? "strong" : "fast",
      accuracy: undefined,
      recording: row.models[name],
    }),
  );
  const { text, calls } = await replay(crew, {
    ...request,
    prompt: row.prompt,
    shape: "text",
    read: () => undefined,
  });
  return { row, score: scoreOf(row, text, [...new Set([...calls.toReversed(), ...weak])]), calls };
}

function figures(served: string, answers: readonly Answered[], weak: string, strong: string): ServedRow {
  const rows = answers.map(({ row }) => row);
  const share = mean(answers.map(({ calls }) => Number(calls.includes(strong))));
  const { gain, low, high } = paired(answers.map(({ row, score }) => score - (row.models[strong]?.score ?? 0)));
  return {
    served,
    accuracy: mean(answers.map(({ score }) => score)),
    strong_share: share,
    calls: mean(answers.map(({ calls }) => calls.length)),
    cost_share:
      mean(answers.map(({ calls }) => calls.reduce((sum, name) => sum + usualCost(name), 0))) / usualCost(strong),
    random_mix: share * accuracyOf(rows, strong) + (1 - share) * accuracyOf(rows, weak),
    over_strong: [gain, low, high].map((each) => each.toFixed(3)).join(" / "),
  };
}
