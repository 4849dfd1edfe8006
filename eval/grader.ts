import { closedAnswer } from "../src/engine/fuse/closed-answer.ts";
import type { PairCount } from "../src/learning/fit.ts";
import type { Row } from "./recording.ts";
import { shuffled, uniform } from "./shuffle.ts";

/** Share of verdicts of the simulated grader that are right. */
const RIGHT = 0.8;
/** Models of the catalogue that draft an answer to one question. */
const DRAFTS = 5;

/**
 * Wins and losses of the models in simulated graded disagreements: five models draft, and if their answers differ, a
 * grader names the right one. It is wrong in one case of five and then names another draft.
 * @param number graded disagreements
 */
export function gradedPairs(rows: readonly Row[], names: readonly string[], number: number, seed: number): PairCount[] {
  const random = uniform(seed);
  const pairs = new Map<string, PairCount>();
  let graded = 0;
  for (const { models } of shuffled(rows, seed)) {
    const drafts = shuffled(names, Math.floor(random() * 1e9))
      .slice(0, DRAFTS)
      .map((name) => ({ name, form: closedAnswer(models[name]?.answer ?? "") ?? name, score: models[name]?.score }));
    const forms = [...new Set(drafts.map(({ form }) => form))];
    if (forms.length < 2) continue;
    const right = drafts.find(({ score }) => score === 1)?.form;
    const wrong = forms.filter((form) => form !== right);
    const verdict = random() < RIGHT ? right : wrong[Math.floor(random() * wrong.length)];
    for (const winner of drafts.filter(({ form }) => form === verdict))
      for (const loser of drafts.filter(({ form }) => form !== verdict)) count(pairs, winner.name, loser.name);
    graded += 1;
    if (graded === number) break;
  }
  return [...pairs.values()];
}

function count(pairs: Map<string, PairCount>, winner: string, loser: string): void {
  const [one = "", other = ""] = [winner, loser].sort();
  const pair = pairs.get(`${one} ${other}`) ?? { one, other, wins: 0, losses: 0 };
  if (winner === one) pair.wins += 1;
  else pair.losses += 1;
  pairs.set(`${one} ${other}`, pair);
}
