/** Occurs once in each token of the upstream and nowhere else in a response, so that tokens can be counted in bytes. */
export const MARK = "Q";

/** What the static upstream answers to a prompt. */
export interface Script {
  prompt: string;
  /** Text that a request must have besides the prompt; absent: none. */
  also?: string;
  tokens: readonly string[];
  /** Time between two tokens, in milliseconds. 0: all in one write. Infinity: only the first token is ever sent. */
  intervalMs: number;
}

const END = "and say nothing else. Start with the first one that comes to mind.";

export const SCRIPTS = {
  burst: { prompt: `Name sixty words, one after the other, ${END}`, tokens: words(60), intervalMs: 0 },
  paced: { prompt: `Name a hundred words, one after the other, ${END}`, tokens: words(100), intervalMs: 20 },
  held: { prompt: `Name two words, one after the other, ${END}`, tokens: words(2), intervalMs: Infinity },
} satisfies Record<string, Script>;

/** Names of the models of a panel. */
export const PANEL_MODELS = ["bench-a", "bench-b", "bench-c"] as const;
const [, second, third] = PANEL_MODELS;

/** Questions to a panel of three models. Each draft reasons in as many words as the answer of one model has. */
export const PANEL_PROMPTS = {
  agree: "What is 17 times 23? Work it out, then end with a line that has only the answer.",
  differ: "What is 19 times 29? Work it out, then end with a line that has only the answer.",
  silent: "What is 13 times 31? Work it out, then end with a line that has only the answer.",
};

/** What the models of a panel answer, and the judge. The first script that fits a request answers it. */
export const PANEL_SCRIPTS: readonly Script[] = [
  { prompt: PANEL_PROMPTS.agree, tokens: worked(391), intervalMs: 0 },
  { prompt: PANEL_PROMPTS.differ, also: "Below are drafts", tokens: worked(551), intervalMs: 0 },
  { prompt: PANEL_PROMPTS.differ, also: `"${second}"`, tokens: worked(541), intervalMs: 0 },
  { prompt: PANEL_PROMPTS.differ, also: `"${third}"`, tokens: worked(561), intervalMs: 0 },
  { prompt: PANEL_PROMPTS.differ, tokens: worked(551), intervalMs: 0 },
  { prompt: PANEL_PROMPTS.silent, tokens: worked(403), intervalMs: Infinity },
];

/** Length of a paced stream, in seconds. */
export const PACED_SECONDS = (SCRIPTS.paced.tokens.length * SCRIPTS.paced.intervalMs) / 1_000;

/** Number of tokens of which `bytes` contain the mark. */
export function countTokens(bytes: Uint8Array): number {
  const mark = MARK.charCodeAt(0);
  let count = 0;
  // A plain loop is faster than `indexOf` for each token.
  for (let i = 0; i < bytes.length; i++) if (bytes[i] === mark) count++;
  return count;
}

function words(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${i === 0 ? "" : " "}${MARK}uad${i}`);
}

function worked(result: number): string[] {
  return [...words(60), `\n\nAnswer: ${result}`];
}
