/**
 * Words by which a prompt asks for more than an answer. Recordings hold next to none of these requests (they ask for a letter, a number, a short text), so
 * that what they need cannot be learned from them.
 */
const MARKS: ReadonlyArray<[words: string, pattern: RegExp]> = [
  [
    "a proof or a derivation is asked for",
    /(?:^|[.!?:)*\n-]\s{0,3}|\b(?:please|and|then|also|to|you)\s)(?:prove|disprove|derive|show that|give an? .{0,20}proof|beweise|zeige, dass|démontre[rz]?|demuestra)\b/i,
  ],
  [
    "depth is asked for",
    /\b(?:in[- ]depth|in (?:great|full|more) detail|detailed|thorough(?:ly)?|rigorous(?:ly)?|comprehensive(?:ly)?|critically)\b/i,
  ],
  [
    "things are to be weighed against each other",
    /\b(?:compar(?:e|ing)|contrast(?:ing)?|trade-?offs?|pros and cons|strengths and weaknesses|weigh(?:ing)? (?:up )?the)\b/i,
  ],
  [
    "a design or a plan is asked for",
    /(?:^|[.!?:)*\n-]\s{0,3}|\b(?:please|and|then|to|you)\s)(?:design|architect|devise|plan)\s(?:an?|the|my|our|how)\b/i,
  ],
  [
    // That a model should think step by step asks for nothing more.
    "each step is to be shown",
    /\bstep[- ]by[- ]step\b(?<!\b(?:think|thinking|reason|reasoning|solve|work)\b.{0,45})/i,
  ],
  [
    "demands on how the code works",
    /\bO\((?:1|n|m|log|n log)[^)]{0,20}\)|\b(?:thread-safe|lock-free|concurren(?:t|cy)|distributed (?:systems?|locks?|caches?|queues?|databases?|transactions?|services?)|scalable|zero[- ]downtime|race condition|deadlock|time complexity|edge cases)\b/i,
  ],
];

/** What a prompt asks for beyond an answer, in words for people; each kind of demand once. */
export function demands(text: string): string[] {
  return MARKS.filter(([, pattern]) => pattern.test(text)).map(([words]) => words);
}
