/** Occurs once in each token of the upstream and nowhere else in a response, so that tokens can be counted in bytes. */
export const MARK = "Q";

/** What the static upstream answers to a prompt. */
export interface Script {
  prompt: string;
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
