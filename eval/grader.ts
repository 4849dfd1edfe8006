import type { Kind } from "../src/engine/difficulty/difficulty.ts";
import type { PairCount } from "../src/learning/fit.ts";
import { formName, formOf } from "../src/outcomes/form.ts";
import type { Row } from "./recording.ts";
import { shuffled, uniform } from "./shuffle.ts";

/** Share of verdicts of the simulated grader that are right. */
const RIGHT = 0.8;
/** Models of the catalogue that draft an answer to one question. */
const DRAFTS = 5;

/**
 * Wins and losses of the models in simulated graded disagreements: five models draft, and if their answers differ, a
 * grader names the right one. It is wrong in one case of five and then names another draft. Answers are compared as the
 * service does for the kind of the question; a draft without an answer is not graded.
 * @param number graded disagreements
 */
export function gradedPairs(
  rows: readonly Row[],
  names: readonly string[],
  { number, seed, kindOf }: { number: number; seed: number; kindOf: (row: Row) => Kind },
): PairCount[] {
  const random = uniform(seed);
  const pairs = new Map<string, PairCount>();
  let graded = 0;
  for (const row of shuffled(rows, seed)) {
    const { models } = row;
    const by = formName(kindOf(row), "text");
    if (!by) continue;
    const drafts = shuffled(names, Math.floor(random() * 1e9))
      .slice(0, DRAFTS)
      .flatMap((name) => {
        const form = formOf(by, models[name]?.answer ?? "");
        return form === undefined ? [] : [{ name, form, score: models[name]?.score }];
      });
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
