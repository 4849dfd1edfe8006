import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { untrusted } from "../untrusted.ts";
import type { Draft } from "./draft.ts";

/** Characters of one draft that others get to see: what `DRAFT_TOKENS` usually come to. */
const SHOWN = 16_000;

const JUDGE =
  "Above is the request. Below are drafts of an answer to it, from others, in random order. Any of them may be wrong, also where several agree. " +
  "Work the answer out yourself, check it against the drafts, and settle what they disagree on. " +
  "Then answer the request, in the form that it asks for, as if there were no drafts; do not mention them.";

const ANALYSE =
  "Above is a request. Do not answer it. Below are drafts of an answer to it, from others, in random order. Compare them for whoever will write the " +
  'answer. Reply with one JSON object and nothing else: {"consensus":[…],"contradictions":[…],"gaps":[…]}. Each is a list of at most six short ' +
  "sentences: what the drafts agree on and is right; where they contradict each other, and which is right; what the request asks for that they lack or get wrong.";

const WRITE =
  "Above is the request. Below are drafts of an answer to it, from others, in random order, and an analysis of them where there is one. Write the best " +
  "answer to the request: keep what is right, settle contradictions by your own judgement, fill the gaps, leave out what is wrong or not asked for. " +
  "Answer in the form, length and language that the request asks for, as if there were no drafts; do not mention them.";

/** What the analysis found; each list may be empty. */
export interface Analysis {
  consensus: string[];
  contradictions: string[];
  gaps: string[];
}

/** The prompt for the call that decides a closed question. @param generation orders the drafts. */
export function judgePrompt(prompt: LanguageModelV4Prompt, drafts: readonly Draft[], generation: string) {
  return withAddition(prompt, [JUDGE, ...shown(drafts, generation)]);
}

export function analysisPrompt(prompt: LanguageModelV4Prompt, drafts: readonly Draft[], generation: string) {
  return withAddition(prompt, [ANALYSE, ...shown(drafts, generation)]);
}

export function writePrompt(
  prompt: LanguageModelV4Prompt,
  drafts: readonly Draft[],
  generation: string,
  analysis: Analysis | undefined,
) {
  const notes = analysis ? [untrusted("analysis", JSON.stringify(analysis))] : [];
  return withAddition(prompt, [WRITE, ...shown(drafts, generation), ...notes]);
}

/**
 * Adds to the last turn, which is the user's. What comes before stays as it is, so that vendors find it in their cache; a part of its own
 * is more than some servers of OpenAI's format can read.
 */
function withAddition(prompt: LanguageModelV4Prompt, additions: readonly string[]): LanguageModelV4Prompt {
  const addition = additions.join("\n\n");
  const last = prompt.at(-1);
  if (last?.role !== "user") return [...prompt, { role: "user", content: [{ type: "text", text: addition }] }];
  const at = last.content.findLastIndex(({ type }) => type === "text");
  const content = last.content.map((part, i) =>
    i === at && part.type === "text" ? { ...part, text: `${part.text}\n\n${addition}` } : part,
  );
  if (at < 0) content.push({ type: "text", text: addition });
  return [...prompt.slice(0, -1), { ...last, content }];
}

/** The drafts under names that tell nothing, in an order that is random but the same for each call of a generation. */
function shown(drafts: readonly Draft[], generation: string): string[] {
  const random = randomOf(generation);
  const order = drafts.map((draft) => ({ draft, key: random() })).sort((a, b) => a.key - b.key);
  return order.map(({ draft: { text } }, i) =>
    untrusted(`draft ${i + 1}`, text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text),
  );
}

/** Numbers from 1 up to 2³¹, by the generator of Park and Miller (MINSTD), seeded with FNV-1a. */
function randomOf(seed: string): () => number {
  let state = 0x811c9dc5;
  for (let at = 0; at < seed.length; at += 1) state = Math.imul(state ^ seed.charCodeAt(at), 0x01000193);
  state = ((state >>> 0) % 2_147_483_646) + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state;
  };
}
