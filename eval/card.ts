import { readFileSync } from "node:fs";
import { envToConfig } from "../src/config/config.ts";
import type { Level } from "../src/contract/terms.ts";
import { type DifficultyRater, loadDifficultyRater } from "../src/engine/difficulty/difficulty.ts";
import { type LevelThresholds, levelOf } from "../src/engine/difficulty/level.ts";

/** A prompt of the card. No weight, word list or threshold may be chosen with it. */
export interface CardPrompt {
  /** The level that a careful person expects. */
  level: Level;
  /** ISO 639-1. */
  language: string;
  topic: string;
  prompt: string;
  /** Why this level. */
  why: string;
}

/** How well `auto` finds the levels of the card. Shares of 1. */
export interface CardPart {
  prompts: number;
  exact: number;
  /** Number of prompts that are `low` instead of `high` or the reverse. */
  two_levels_off: number;
  /** Number of prompts by expected level, then by the level that `auto` gives. */
  levels: Record<Level, Record<Level, number>>;
  exact_by_language: Record<string, number>;
  exact_by_topic: Record<string, number>;
}

const LEVELS: readonly Level[] = ["low", "medium", "high"];

/**
 * Reads the 150 prompts of the card. `low`: one step, common knowledge or wording only, which a fast model nearly
 * always gets right. `medium`: several dependent steps, a standard method of a subject, or several demands at once.
 * `high`: a long chain or a search, expert knowledge, or many constraints that all have to hold.
 */
export function readCard(): CardPrompt[] {
  const lines = readFileSync(new URL("card.jsonl", import.meta.url), "utf8")
    .trim()
    .split("\n");
  return lines.map((line): CardPrompt => JSON.parse(line));
}

/** Compares the levels of the card with those of `auto`. Default: the rater and the thresholds of the service. */
export function cardPart(
  card: readonly CardPrompt[] = readCard(),
  rater: DifficultyRater = loadDifficultyRater(),
  thresholds: LevelThresholds = envToConfig({}).levels,
): CardPart {
  const rated = card.map((one) => {
    const given = levelOf("auto", rater.rate(one.prompt), thresholds);
    return { ...one, given, off: Math.abs(LEVELS.indexOf(given) - LEVELS.indexOf(one.level)) };
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
    levels: { low: row("low"), medium: row("medium"), high: row("high") },
    exact_by_language: by("language"),
    exact_by_topic: by("topic"),
  };
}

/** The result in Markdown. */
export function cardSection({ prompts, exact, two_levels_off, levels, ...shares }: CardPart): string {
  const percent = (share: number) => `${Math.round(share * 100)} %`;
  const table = (by: Record<string, number>, title: string) =>
    [`| ${title} | exact |`, "| --- | --- |"]
      .concat(Object.entries(by).map(([name, share]) => `| ${name} | ${percent(share)} |`))
      .join("\n");
  return [
    "## card",
    `${prompts} prompts, each with the level that a careful person expects (eval/card.jsonl).`,
    `Exact: ${percent(exact)}. Two levels off: ${two_levels_off}.`,
    ["| expected | auto: low | medium | high |", "| --- | --- | --- | --- |"]
      .concat(LEVELS.map((level) => `| ${level} | ${LEVELS.map((given) => levels[level][given]).join(" | ")} |`))
      .join("\n"),
    table(shares.exact_by_language, "language"),
    table(shares.exact_by_topic, "topic"),
  ]
    .join("\n\n")
    .concat("\n");
}
