import type { Encoding } from "../tokens/bpe.ts";
import { TokenMeter } from "../tokens/token-meter.ts";
import { type Passage, passages } from "./passages.ts";
import { relevance } from "./relevance.ts";

/** A text after it was shortened. */
export interface Fitted {
  text: string;
  /** Tokens of `text`. */
  tokens: number;
  /** UTF-16 units of the original that `text` contains; the original's length when nothing was left out. */
  kept: number;
}

/** Replaces the text that was left out. */
const GAP = "\n\n[…]\n\n";

/** Longest and shortest passage in UTF-16 units: about 300 and 50 tokens of English. */
const MAX_PASSAGE = 1200;
const MIN_PASSAGE = 200;

/**
 * Shortens texts to a budget. Texts that fit are returned unchanged. Otherwise each keeps its beginning and the
 * passages most relevant to the question, in their order, with "[…]" for gaps. The result never exceeds the budget.
 * Takes linear time: 60 MB of English take 2 s.
 * @param budget most tokens of all texts together; at least 0
 */
export function fitTexts(texts: readonly string[], question: string, budget: number, encoding: Encoding): Fitted[] {
  const counts = countUpTo(texts, budget, encoding);
  if (counts) return texts.map((text, i) => ({ text, tokens: counts[i] ?? 0, kept: text.length }));
  // A small budget needs short passages: about twenty of them fit, at four characters a token.
  const length = Math.max(MIN_PASSAGE, Math.min(MAX_PASSAGE, Math.floor(budget / 5)));
  const cut = texts.map((text) => passages(text, length));
  const chosen = choose(texts, cut, question, budget, encoding);
  for (;;) {
    const fitted = texts.map((text, i) => assemble(text, chosen, i, encoding));
    // Adjacent passages can have one token more than separate ones, so the sum of their tokens is not an exact bound.
    if (fitted.reduce((sum, { tokens }) => sum + tokens, 0) <= budget) return fitted;
    chosen.pop();
  }
}

interface Choice extends Passage {
  /** Index of the text that the passage belongs to. */
  of: number;
}

/** Tokens of each text, or undefined if together they have more than `budget`. Stops counting there. */
function countUpTo(texts: readonly string[], budget: number, encoding: Encoding): number[] | undefined {
  let left = budget;
  const counts: number[] = [];
  for (const text of texts) {
    const before = left;
    for (const piece of encoding.pieces(text)) {
      left -= encoding.tokens(piece);
      if (left < 0) return undefined;
    }
    counts.push(before - left);
  }
  return counts;
}

/** The passages to keep, in order of importance: the beginning of each text, then by score. */
function choose(
  texts: readonly string[],
  cut: ReadonlyArray<readonly Passage[]>,
  question: string,
  budget: number,
  encoding: Encoding,
): Choice[] {
  const all = cut.flatMap((list, of) => list.map(({ start, end }) => ({ of, start, end })));
  const scores = relevance(
    all.values().map(({ of, start, end }) => texts[of]?.slice(start, end) ?? ""),
    question,
  );
  const byScore = [...all.keys()].sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
  const gap = encoding.count(GAP);
  let left = budget;
  const chosen: Choice[] = [];
  for (const [of, text] of texts.entries()) {
    const [first] = cut[of] ?? [];
    if (!first) continue;
    // The beginnings share at most half of the budget equally, which leaves space for relevant passages.
    const room = Math.floor(budget / 2 / texts.length) - gap;
    const start = prefix(text.slice(0, first.end), Math.max(0, room), encoding);
    if (start === "") continue;
    chosen.push({ of, start: 0, end: start.length });
    left -= encoding.count(start) + gap;
  }
  for (const index of byScore) {
    const passage = all[index];
    if (!passage || passage.start === 0) continue;
    const tokens = encoding.count(texts[passage.of]?.slice(passage.start, passage.end) ?? "") + gap;
    // Stops at the first passage that does not fit, because looking for a smaller one would count the whole text.
    if (tokens > left) break;
    left -= tokens;
    chosen.push(passage);
  }
  return chosen;
}

function prefix(text: string, tokens: number, encoding: Encoding): string {
  const meter = new TokenMeter(encoding, tokens);
  return meter.push(text) + meter.flush();
}

function assemble(text: string, chosen: readonly Choice[], of: number, encoding: Encoding): Fitted {
  const ownChoices = chosen.filter((choice) => choice.of === of).sort((a, b) => a.start - b.start);
  let out = "";
  let kept = 0;
  let at = 0;
  for (const { start, end } of ownChoices) {
    if (start !== at) out += GAP;
    out += text.slice(start, end);
    kept += end - start;
    at = end;
  }
  if (at !== text.length && ownChoices.length > 0) out += GAP.trimEnd();
  return { text: out, tokens: encoding.count(out), kept };
}
