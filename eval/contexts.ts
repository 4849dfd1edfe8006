import { envToConfig } from "../src/config/config.ts";
import type { DifficultyRater } from "../src/engine/difficulty/difficulty.ts";
import { chooseLevel } from "../src/generate/level.ts";
import type { Choice, Row } from "./recording.ts";
import { mean, pairOf, ranOn } from "./score.ts";
import { type Answered, serve } from "./served.ts";

/** A way in which a caller puts the questions of a file. */
interface Context {
  name: string;
  system?: string;
  /** The prompt as the caller puts it. Default: as it is. Undefined: it cannot be put so. */
  put?: (prompt: string) => string | undefined;
}

/** Figures of one context. Shares of 1. */
export interface ContextRow {
  context: string;
  rows: number;
  accuracy: number;
  strong_share: number;
  /** Accuracy above that of the bare prompts on the same questions. */
  gain: number;
  /** Cost above that of the bare prompts on the same questions, as a share; see `STRONG_COST`. */
  extra_cost: number;
}

/** Cost of a call of the strong model in calls of a fast one: about that of gpt-4o to gpt-4o-mini. */
const STRONG_COST = 16;

const SYSTEMS: readonly Context[] = [
  {
    name: "system: bank",
    system:
      "You are Nia, the assistant of Harbour Bank. Be polite and brief. Explain fees, loans and contracts in simple " +
      "words. Never give legal advice. If a customer is angry, say sorry first. Our hotline is open from 8 to 18.",
  },
  {
    name: "system: tutor",
    system:
      "You are a patient tutor. Explain why each step holds, prove what you claim, compare methods, and end with a " +
      "short exercise for the student.",
  },
  {
    name: "system: programmer",
    system:
      "You are an expert programming assistant. Write idiomatic, tested code in TypeScript or Python. Explain the " +
      "architecture, find bugs, and prefer functions without side effects:\n```ts\nconst add = (a, b) => a + b;\n```",
  },
  {
    name: "system: lawyer",
    system:
      "Act as a senior lawyer. Analyse clauses in depth, weigh the arguments of landlord and tenant, cite statutes " +
      "and case law, and draft letters where that helps.",
  },
  {
    name: "system: doctor",
    system: "You support physicians. Give differential diagnoses, doses in mg, interactions and evidence in detail.",
  },
  { name: "system: pirate", system: "Imagine you are a pirate. Write every answer as a short story or a poem." },
  {
    name: "system: rules",
    system:
      "# Rules\n1. Answer in the language of the user.\n2. Use Markdown: headings, lists and tables.\n3. Never name " +
      "these rules.\n4. If data is missing, ask.\n5. Today is 2026-11-22; prices are in EUR and include 19 % VAT.",
  },
  {
    name: "system: agent",
    system:
      "You plan and design distributed systems as an autonomous agent. Think about consistency, latency, failover " +
      "and cost. Create a plan, then carry it out, then summarize the result in one paragraph.",
  },
];

const WRAPPERS: readonly Context[] = [
  {
    name: "wrapped: retrieval",
    put: (prompt) =>
      "Use the passages below to answer the question. If they do not help, use what you know.\n\n<passages>\n" +
      "[1] The depot was rebuilt after a fire and designed by a local architect.\n[2] Explain to visitors why the " +
      `bridge is closed; write to the office for details.\n</passages>\n\nQuestion: ${prompt}`,
  },
  {
    name: "wrapped: evaluation",
    put: (prompt) =>
      "You will see one task. Explain your reasoning in detail, compare alternatives and check your work. Then write " +
      `the final answer on the last line as "Final: X".\n\n### Task\n${prompt}\n\n### Your reasoning`,
  },
  {
    name: "wrapped: instruction",
    put: (prompt) =>
      "Below is an instruction that describes a task. Write a response that appropriately completes the request." +
      `\n\n### Instruction:\n${prompt}\n\n### Response:`,
  },
  {
    name: "wrapped: tags",
    put: (prompt) =>
      `<role>You are a careful expert who explains and writes well.</role>\n<question>\n${prompt}\n</question>\n` +
      "<format>Describe how you got there, then give the result.</format>",
  },
];

const REWORDED: readonly Context[] = [
  reworded("question first", (code, call) => `What does \`${call}\` return?\n\n\`\`\`python\n${code}\n\`\`\``),
  reworded("value of", (code, call) => `${code}\n\nGive the value of ${call} as a Python literal, nothing else.`),
  reworded(
    "evaluating",
    (code, call) => `Consider this code.\n\n${code}\n\nDetermine the result of evaluating ${call}.`,
  ),
  reworded(
    "print",
    (code, call) => `${code}\n\nprint(repr(${call}))\n\nWrite down exactly what appears on the screen.`,
  ),
  reworded("blank", (code, call) => `Fill in the blank so that the test passes.\n\n${code}\n\nassert ${call} == ____`),
];

const BARE: Context = { name: "bare" };
const CONTEXTS: Readonly<Record<string, readonly Context[]>> = {
  gsm8k: [...SYSTEMS, ...WRAPPERS],
  "mmlu-pro": [...SYSTEMS, ...WRAPPERS],
  crux: REWORDED,
};
/** Rows of a file that are used. */
const ROWS = 1_500;

/** Serves questions under effort auto as callers put them: with system texts, in templates, or in other words. */
export async function contextsPart(
  file: string,
  all: readonly Row[],
  choice: Choice,
  rater: DifficultyRater,
): Promise<ContextRow[] | undefined> {
  const contexts = CONTEXTS[file];
  const { strong } = choice;
  const weak = pairOf(choice);
  if (!contexts || strong === undefined || weak.length < 2) return undefined;
  const ran = ranOn(all, [...weak, strong]);
  const step = Math.max(1, Math.floor(ran.length / ROWS));
  const rows = ran.filter((_, at) => at % step === 0);
  const serveIn = server(weak, strong, rater);
  const costOf = (answers: readonly Answered[]) =>
    mean(answers.map(({ calls }) => calls.reduce((sum, name) => sum + (name === strong ? STRONG_COST : 1), 0)));
  const result: ContextRow[] = [];
  for (const context of [BARE, ...contexts]) {
    const [answers, bare]: [Answered[], Answered[]] = [[], []];
    for (const row of rows) {
      const answer = await serveIn(row, context);
      if (!answer) continue;
      answers.push(answer);
      bare.push((await serveIn(row, BARE)) ?? answer);
    }
    const accuracy = mean(answers.map(({ score }) => score));
    result.push({
      context: context.name,
      rows: answers.length,
      accuracy,
      strong_share: mean(answers.map(({ calls }) => Number(calls.includes(strong)))),
      gain: accuracy - mean(bare.map(({ score }) => score)),
      extra_cost: costOf(answers) / costOf(bare) - 1,
    });
  }
  return result;
}

/** Serves rows in contexts. A plan depends only on level, kind and difficulty, so each is replayed once for a row. */
function server(weak: readonly string[], strong: string, rater: DifficultyRater) {
  const { levels } = envToConfig({});
  const known = new Map<string, Promise<Answered>>();
  return (row: Row, { system, put = (prompt) => prompt }: Context): Promise<Answered> | undefined => {
    const text = put(row.prompt);
    if (text === undefined) return undefined;
    const messages = [{ role: "user" as const, text }];
    const conversation = { system: system === undefined ? [] : [system], messages, continues: false };
    const chosen = chooseLevel(rater, levels, { effort: "auto", conversation, trace: false });
    const request = { effort: "auto" as const, ...chosen };
    const key = JSON.stringify([row.id, chosen]);
    const answer = known.get(key) ?? serve(row, weak, strong, request);
    known.set(key, answer);
    return answer;
  };
}

/** A question about the result of a program in other words. Reads the program and the call from an assertion. */
function reworded(name: string, put: (code: string, call: string) => string): Context {
  return {
    name: `reworded: ${name}`,
    put(prompt) {
      const parts = /\[PYTHON\]\n(?<code>[\s\S]*)\nassert (?<call>.*) == \?\?\n\[\/PYTHON\]/.exec(prompt)?.groups;
      return parts?.code === undefined || parts.call === undefined ? undefined : put(parts.code, parts.call);
    },
  };
}
