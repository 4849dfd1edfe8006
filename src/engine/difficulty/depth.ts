import { regex } from "../regex.ts";

/**
 * Wording that asks for depth: a proof, a comparison, a design. The training data has almost no such prompts, so
 * training cannot learn how hard they are.
 */
const MARKS: ReadonlyArray<[phrase: string, pattern: RegExp]> = [
  [
    "a proof or a derivation is asked for",
    regex("i")`
      (?:^|[.!?:)*\n-]\s{0,3}|\b(?:please|and|then|also|to|you)\s)(?:prove|disprove|derive
      |show that|give an? .{0,20}proof|beweise|zeige, dass|démontre[rz]?|demuestra)\b
    `,
  ],
  [
    "depth is asked for",
    regex("i")`
      \b(?:in[- ]depth|in (?:great|full|more) detail|detailed|thorough(?:ly)?|rigorous(?:ly)?
      |comprehensive(?:ly)?|critically)\b
    `,
  ],
  [
    "things are to be weighed against each other",
    regex("i")`
      \b(?:compar(?:e|ing)|contrast(?:ing)?|trade-?offs?|pros and cons|strengths and weaknesses
      |weigh(?:ing)? (?:up )?the)\b
    `,
  ],
  [
    "a design or a plan is asked for",
    regex("i")`
      (?:^|[.!?:)*\n-]\s{0,3}|\b(?:please|and|then|to|you)\s)(?:design|architect|devise
      |plan)\s(?:an?|the|my|our|how)\b
    `,
  ],
  [
    // "Think step by step" is a hint to the model and asks for no depth.
    "each step is to be shown",
    /\bstep[- ]by[- ]step\b(?<!\b(?:think|thinking|reason|reasoning|solve|work)\b.{0,45})/i,
  ],
  [
    "demands on how the code works",
    regex("i")`
      \bO\((?:1|n|m|log|n log)[^)]{0,20}\)|\b(?:thread-safe|lock-free|concurren(?:t|cy)
      |distributed (?:systems?|locks?|caches?|queues?|databases?|transactions?|services?)|scalable
      |zero[- ]downtime|race condition|deadlock|time complexity|edge cases)\b
    `,
  ],
];

/** The demands for depth in a prompt, as phrases for the trace. Each kind of demand occurs at most once. */
export function demands(text: string): string[] {
  return MARKS.filter(([, pattern]) => pattern.test(text)).map(([phrase]) => phrase);
}
