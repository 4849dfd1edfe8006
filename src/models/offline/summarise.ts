import type { Tier } from "../../config.ts";
import { type Sentence, terms } from "./language.ts";

const COUNTS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
const COUNT = new RegExp(`\\b(\\d+|${COUNTS.join("|")}|an?)[ -](?:\\w+ ){0,2}(?:sentence|bullet|point)`, "i");

/**
 * A summary made of sentences of the text, in their order: a fifth of them and five at most, unless the instruction names a number of
 * sentences or points, or a topic. `fast` takes the leading ones, `strong` the most telling ones.
 */
export function summarise(all: readonly Sentence[], instruction: string, tier: Tier): string {
  const prose = all.filter(({ text, terms }) => terms.size >= 4 && /[.!?…"”)]$/.test(text));
  const topic = terms(/\b(?:about|regarding|concerning|focus\w* on) ([^\n.:]{1,100})/i.exec(instruction)?.[1] ?? "");
  const onTopic = prose.filter((sentence) => !sentence.terms.isDisjointFrom(topic));
  const usable = [onTopic, prose, all].find((list) => list.length > 0) ?? [];
  const bullets = /bullet|(?:key|main) points/i.test(instruction);
  const named = COUNT.exec(instruction)?.[1]?.toLowerCase();
  const usual = Math.min(5, Math.max(bullets ? 3 : 1, Math.round(usable.length / 5)));
  const count = named ? Math.min(20, Number(named) || COUNTS.indexOf(named) + 1 || 1) : usual;
  const chosen = tier === "fast" ? usable.slice(0, count) : telling(usable, count);
  const lines = usable.filter((sentence) => chosen.includes(sentence)).map(({ text }) => text);
  return bullets ? lines.map((line) => `- ${line.replace(/^[-*•]\s*/, "")}`).join("\n") : lines.join(" ");
}

/**
 * The sentences with the most words that many sentences share. What has been said counts less from then on, so that the next one says
 * something else; the opening sentence weighs a half more.
 */
function telling(all: readonly Sentence[], count: number): Sentence[] {
  const counts = new Map<string, number>();
  for (const term of all.flatMap(({ terms }) => [...terms])) counts.set(term, (counts.get(term) ?? 0) + 1);
  const weights = new Map([...counts].map(([term, sentences]) => [term, Math.log(1 + sentences) - 0.5]));
  const left = new Set(all);
  const score = (sentence: Sentence) => {
    const sum = [...sentence.terms].reduce((sum, term) => sum + (weights.get(term) ?? 0), 0);
    return (sum / Math.sqrt(sentence.terms.size + 1)) * (sentence === all[0] ? 1.5 : 1);
  };
  while (left.size > 0 && left.size > all.length - count) {
    const [best] = [...left]
      .map((sentence) => ({ sentence, score: score(sentence) }))
      .sort((a, b) => b.score - a.score);
    if (!best) break;
    left.delete(best.sentence);
    for (const term of best.sentence.terms) weights.set(term, (weights.get(term) ?? 0) * 0.3);
  }
  return all.filter((sentence) => !left.has(sentence));
}
