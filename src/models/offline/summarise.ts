import type { Tier } from "../../terms.ts";
import { type Sentence, terms } from "./language.ts";

const COUNTS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
const COUNT = new RegExp(`\\b(\\d+|${COUNTS.join("|")})[ -](?:\\w+ )?(?:sentence|bullet|point)`, "i");

/**
 * Summarises a text by its first sentences (`fast`) or its most important ones (`strong`). The instruction can name a
 * topic and a number of sentences; the default number is a fifth of them.
 */
export function summarise(all: readonly Sentence[], instruction: string, tier: Tier): string {
  const prose = all.filter(({ text, terms }) => terms.size >= 4 && /[.!?…"”)]$/.test(text));
  const topic = terms(/\b(?:about|regarding|focus on) ([^\n.:]{1,100})/i.exec(instruction)?.[1] ?? "");
  const onTopic = prose.filter((sentence) => !sentence.terms.isDisjointFrom(topic));
  const usable = [onTopic, prose, all].find((list) => list.length > 0) ?? [];
  const bullets = /bullet|points/i.test(instruction);
  const named = COUNT.exec(instruction)?.[1]?.toLowerCase() ?? "";
  const usual = Math.min(5, Math.max(bullets ? 3 : 1, Math.round(usable.length / 5)));
  const count = Number(named) || COUNTS.indexOf(named) + 1 || usual;
  const ranked = tier === "strong" ? byWeight(usable) : usable;
  const chosen = new Set(ranked.slice(0, Math.min(20, count)));
  const lines = usable.filter((sentence) => chosen.has(sentence)).map(({ text }) => text);
  return bullets ? lines.map((line) => `- ${line.replace(/^[-*•]\s*/, "")}`).join("\n") : lines.join(" ");
}

/** Sorts sentences by importance. The first sentence of the text weighs half as much again. */
function byWeight(all: readonly Sentence[]): Sentence[] {
  const counts = new Map<string, number>();
  for (const term of all.flatMap(({ terms }) => [...terms])) counts.set(term, (counts.get(term) ?? 0) + 1);
  const weighed = all.map((sentence, i) => {
    const sum = [...sentence.terms].reduce((sum, term) => sum + Math.log(counts.get(term) ?? 1), 0);
    return { sentence, weight: (sum / Math.sqrt(sentence.terms.size + 1)) * (i === 0 ? 1.5 : 1) };
  });
  return weighed.sort((a, b) => b.weight - a.weight).map(({ sentence }) => sentence);
}
