import { readFileSync } from "node:fs";
import { type Config, envToConfig } from "../src/config/config.ts";
import type { Level } from "../src/contract/terms.ts";
import { type DifficultyRater, type Kind, loadDifficultyRater } from "../src/engine/difficulty/difficulty.ts";
import { chooseLevel } from "../src/generate/level.ts";

/** A prompt of a card. No weight, word list or threshold may be chosen with it. */
export interface CardPrompt {
  /** The level that a careful person expects. */
  level: Level;
  /** ISO 639-1. */
  language: string;
  topic: string;
  /** The caller's instructions. */
  system?: string;
  /** Texts of the conversation before the prompt: a user's, an assistant's and so on. */
  earlier?: string[];
  prompt: string;
  /** Whether answers can be compared, because one is right. Absent on the first card. */
  one_answer?: boolean;
  /** Why this level. */
  why: string;
}

/** How well `auto` finds the levels of a card. Shares of 1. */
export interface CardPart {
  prompts: number;
  exact: number;
  /** Number of prompts that are `low` instead of `high` or the reverse. */
  two_levels_off: number;
  /** Share of the prompts for which `auto` is right on whether one answer is right. */
  one_answer?: number;
  /** Number of prompts by expected level, then by the level that `auto` gives. */
  levels: Record<Level, Record<Level, number>>;
  exact_by_language: Record<string, number>;
  exact_by_topic: Record<string, number>;
}

const LEVELS: readonly Level[] = ["low", "medium", "high"];
const ONE_ANSWER: ReadonlySet<Kind> = new Set<Kind>(["closed", "maths", "output", "extraction"]);

/** Cards by title. The rater has not been changed with the prompts of a card before its first scoring. */
export const CARDS = {
  card: "card.jsonl",
  "card of languages": "card-languages.jsonl",
  "card of contexts": "card-context.jsonl",
} as const;

/**
 * Reads the prompts of a card. `low`: one step, common knowledge or wording only, which a fast model nearly
 * always gets right. `medium`: several dependent steps, a standard method of a subject, or several demands at once.
 * `high`: a long chain or a search, expert knowledge, or many constraints that all have to hold.
 */
export function readCard(file: string = CARDS.card): CardPrompt[] {
  const lines = readFileSync(new URL(file, import.meta.url), "utf8")
    .trim()
    .split("\n");
  return lines.map((line): CardPrompt => JSON.parse(line));
}

/** Compares the levels of the card with those of `auto`. Default: the rater and the thresholds of the service. */
export function cardPart(
  card: readonly CardPrompt[] = readCard(),
  rater: DifficultyRater = loadDifficultyRater(),
  thresholds: Config["levels"] = envToConfig({}).levels,
): CardPart {
  const rated = card.map((one) => {
    const { level: given, kind } = chooseLevel(rater, thresholds, requestOf(one));
    const off = Math.abs(LEVELS.indexOf(given) - LEVELS.indexOf(one.level));
    return { ...one, given, off, isRight: ONE_ANSWER.has(kind) === one.one_answer };
  });
  const exact = (some: typeof rated) => some.filter(({ off }) => off === 0).length / (some.length || 1);
  const by = (key: "language" | "topic") =>
    Object.fromEntries([...Map.groupBy(rated, (one) => one[key])].map(([name, some]) => [name, exact(some)]));
  const count = (level: Level, given: Level) =>
    rated.filter((one) => one.level === level && one.given === given).length;
  const row = (level: Level) => ({
    low: count(level, "low"),
    medium: count(level, "medium"),
    high: count(level, "high"),
  });
  return {
    prompts: rated.length,
    exact: exact(rated),
    two_levels_off: rated.filter(({ off }) => off === 2).length,
    ...(card.some((one) => one.one_answer !== undefined) && {
      one_answer: rated.filter(({ isRight }) => isRight).length / rated.length,
    }),
    levels: { low: row("low"), medium: row("medium"), high: row("high") },
    exact_by_language: by("language"),
    exact_by_topic: by("topic"),
  };
}

/** The request that asks for the answer to a prompt. */
function requestOf({ system, earlier = [], prompt }: CardPrompt) {
  const messages = [...earlier, prompt].map((text, at) => {
    return { role: at % 2 === 0 ? ("user" as const) : ("assistant" as const), text };
  });
  const conversation = { system: system === undefined ? [] : [system], messages, continues: false };
  return { effort: "auto" as const, conversation, trace: false };
}

/** The result in Markdown. */
export function cardSection(part: CardPart, title: keyof typeof CARDS = "card"): string {
  const { prompts, exact, two_levels_off, one_answer, levels, ...shares } = part;
  const percent = (share: number) => `${Math.round(share * 100)} %`;
  const table = (by: Record<string, number>, title: string) =>
    [`| ${title} | exact |`, "| --- | --- |"]
      .concat(Object.entries(by).map(([name, share]) => `| ${name} | ${percent(share)} |`))
      .join("\n");
  return [
    `## ${title}`,
    `${prompts} prompts, each with the level that a careful person expects (eval/${CARDS[title]}).`,
    `Exact: ${percent(exact)}. Two levels off: ${two_levels_off}.`.concat(
      one_answer === undefined ? "" : ` Right on whether answers can be compared: ${percent(one_answer)}.`,
    ),
    ["| expected | auto: low | medium | high |", "| --- | --- | --- | --- |"]
      .concat(LEVELS.map((level) => `| ${level} | ${LEVELS.map((given) => levels[level][given]).join(" | ")} |`))
      .join("\n"),
    table(shares.exact_by_language, "language"),
    table(shares.exact_by_topic, "topic"),
  ]
    .join("\n\n")
    .concat("\n");
}
