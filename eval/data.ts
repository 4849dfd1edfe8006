import { readFileSync } from "node:fs";
import { basename } from "node:path";
import type { Recording, Row } from "./recording.ts";
import type { RawOutput } from "./repair.ts";
import { readToolRow, type ToolRow } from "./tool-rows.ts";

export interface RecordedFile {
  /** Path as given. */
  path: string;
  /** File name without folder and extension. */
  name: string;
  rows: Row[];
  raw: RawOutput[];
  /** Questions with tools. */
  toolRows: ToolRow[];
  /** Number of lines that are none of these, and were skipped. */
  skipped: number;
}

/**
 * Reads a file of recorded answers with one JSON object per line: `{id, group, prompt, gold, models}` or `{id, model,
 * output}` or `{id, category, question, functions, outputs}`. Fills in missing ids and groups. Ignores a recording
 * without a valid score, as if the model had not run.
 * Skips and counts other lines.
 * @throws Error if the file cannot be read or has no usable line
 */
export function readRecorded(path: string): RecordedFile {
  const file: RecordedFile = {
    path,
    name: basename(path).replace(/\.jsonl?$/, ""),
    rows: [],
    raw: [],
    toolRows: [],
    skipped: 0,
  };
  for (const [index, line] of contents(path)
    .replace(/^\uFEFF/, "")
    .split("\n")
    .entries()) {
    if (line.trim() === "") continue;
    const item = parse(line);
    const id = text(item?.id) ?? String(index + 1);
    const [prompt, model, output] = [text(item?.prompt), text(item?.model), text(item?.output)];
    if (prompt !== undefined && isRecord(item?.models)) {
      const models = Object.entries(item.models).flatMap(([name, reply]) => {
        const read = recorded(reply);
        return read ? [[name, read] as const] : [];
      });
      file.rows.push({
        id,
        group: text(item.group) ?? "",
        prompt,
        gold: text(item.gold) ?? null,
        models: Object.fromEntries(models),
      });
    } else if (model !== undefined && output !== undefined) file.raw.push({ id, model, output });
    else {
      const row = item && readToolRow(item);
      if (row) file.toolRows.push(row);
      else file.skipped++;
    }
  }
  if (file.rows.length + file.raw.length + file.toolRows.length === 0)
    throw new Error(
      `${path}: no recorded answers. Expected one JSON object per line: {"id","group","prompt","gold","models"}.`,
    );
  file.rows = asDelivered(file.rows);
  return file;
}

function contents(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? ` (${error.code})` : "";
    throw new Error(`${path}: cannot be read${reason}. Expected a file of recorded answers.`);
  }
}

/** Default models: the pairs of the published reference figures. With `file` only for the file of that name. */
const KNOWN: ReadonlyArray<{ file?: string; weak: string[]; strong: string }> = [
  { file: "crux", weak: ["gemini-1.5-flash-exp-0827", "gpt-4o-mini-2024-07-18"], strong: "gpt-4o-2024-08-06" },
  { weak: ["mixtral-8x7b"], strong: "gpt-4-1106" },
  { weak: ["gemini-1.5-flash-002", "Meta-Llama-3_1-70B-Instruct"], strong: "gpt-4o-2024-05-13" },
  { weak: ["gemini-1.5-flash", "gpt-4o-mini-2024-07-18"], strong: "gpt-4o-2024-08-06" },
];

/** Matches names of cheap models. */
const CHEAP = /flash|mini|nano|haiku|lite|small|fast|instant|mixtral|\b[1-9]b\b/i;

export interface Models {
  weak: string[];
  strong: string;
}

/**
 * Chooses the weak models and the strong one: those that are named, else a known pair. Otherwise the strong model is
 * the most accurate one that ran on at least half of the rows. The first weak model is then the cheapest one (by
 * recorded cost, or by name if no cost is recorded) within 25 points below it, or of all below it; the second is the
 * one with the most similar accuracy.
 * @returns a sentence if the file does not have such models
 */
export function choose(
  file: RecordedFile,
  requested: { weak: readonly string[]; strong: string | undefined },
): Models | string {
  const all = accuracies(file);
  const unknown = [...requested.weak, requested.strong].find((name) => name !== undefined && !all.has(name));
  if (unknown !== undefined)
    return `${file.name} has no scores of "${unknown}". It has ${[...all.keys()].join(", ") || "none"}.`;
  const known = KNOWN.find(
    (pair) => (pair.file ?? file.name) === file.name && all.has(pair.weak[0] ?? "") && all.has(pair.strong),
  );
  const usual = [...all].filter(([, { rows }]) => rows * 2 >= file.rows.length);
  const strong =
    requested.strong ??
    (known && !requested.weak.includes(known.strong) ? known.strong : undefined) ??
    usual.filter(([name]) => !requested.weak.includes(name)).toSorted((a, b) => b[1].mean - a[1].mean)[0]?.[0];
  if (strong === undefined)
    return `${file.name} has no strong model: none has scores on at least half of its rows. Name one with --strong.`;
  if (requested.weak.length > 0) return { weak: [...requested.weak], strong };
  const best = all.get(strong);
  if (known?.strong === strong) return { weak: known.weak.filter((name) => all.has(name)), strong };
  const below = usual.filter(([name, { mean }]) => name !== strong && best && mean < best.mean);
  const range = Math.max(1, best?.mean ?? 1);
  const near = below.filter(([, { mean }]) => best && mean >= best.mean - range / 4);
  const rivals = near.length > 0 ? near : below;
  const cheap = rivals.filter(([name]) => CHEAP.test(name));
  const weak =
    rivals.filter(([, { cost }]) => cost !== undefined).toSorted((a, b) => (a[1].cost ?? 0) - (b[1].cost ?? 0))[0] ??
    (cheap.length > 0 ? cheap : rivals).toSorted((a, b) => b[1].mean - a[1].mean)[0];
  if (!weak) return `${file.name} has no weak model: none has a lower score than ${strong}. Name one with --weak.`;
  const distance = ([, { mean }]: (typeof rivals)[number]) => Math.abs(mean - weak[1].mean);
  const second = rivals.filter(([name]) => name !== weak[0]).toSorted((a, b) => distance(a) - distance(b))[0];
  return { weak: [weak, second].flatMap((each) => each?.[0] ?? []), strong };
}

/** Cheap panels of the published reference figures. */
const PANELS = [
  ["gemini-1.5-flash-002", "Meta-Llama-3_1-70B-Instruct", "DeepSeek-Coder-V2"],
  ["gemini-1.5-flash", "gpt-4o-mini-2024-07-18", "claude-3-haiku-20240307"],
];

/**
 * Chooses the members of the vote: those that are named, else a known panel, else three models: the weak ones and the
 * most accurate ones below the strong one.
 * @returns a sentence if a named member has no scores, only one is named, or there are fewer than three models
 */
export function choosePanel(
  file: RecordedFile,
  requested: readonly string[],
  { weak, strong }: Pick<Models, "weak"> & { strong: string | undefined },
): string[] | string {
  const all = accuracies(file);
  const unknown = requested.find((name) => !all.has(name));
  if (unknown !== undefined)
    return `${file.name} has no scores of "${unknown}". It has ${[...all.keys()].join(", ") || "none"}.`;
  if (requested.length > 0)
    return new Set(requested).size > 1
      ? [...requested]
      : `A vote needs at least two members; only ${requested[0]} is named.`;
  const known = PANELS.find((panel) => panel.every((name) => all.has(name)));
  if (known) return known;
  const near = [...all]
    .filter(([name, { rows }]) => name !== strong && rows * 2 >= file.rows.length)
    .toSorted((a, b) => b[1].mean - a[1].mean)
    .map(([name]) => name);
  const panel = [...new Set([...weak, ...near])].slice(0, 3);
  return panel.length === 3 ? panel : `${file.name} has too few models for a vote of three.`;
}

interface Accuracy {
  rows: number;
  mean: number;
  cost: number | undefined;
}

/** Rows with a score, mean score and mean recorded cost in USD of each model that has any score. */
export function accuracies(file: RecordedFile): Map<string, Accuracy> {
  const sums = new Map<string, { rows: number; score: number; priced: number; cost: number }>();
  for (const { models } of file.rows) {
    for (const [name, { score, cost_usd }] of Object.entries(models)) {
      const sum = sums.get(name) ?? { rows: 0, score: 0, priced: 0, cost: 0 };
      sum.rows++;
      sum.score += score;
      if (cost_usd !== undefined) {
        sum.priced++;
        sum.cost += cost_usd;
      }
      sums.set(name, sum);
    }
  }
  return new Map(
    [...sums].map(([name, { rows, score, priced, cost }]) => [
      name,
      { rows, mean: score / rows, cost: priced > 0 ? cost / priced : undefined },
    ]),
  );
}

/** Scores are 0 or 1, or grades up to 10. A score beyond this limit is an error of the recording. */
const LARGEST_SCORE = 1_000;

function recorded(value: unknown): Recording | undefined {
  if (!isRecord(value)) return undefined;
  const score = typeof value.score === "boolean" ? Number(value.score) : number(value.score);
  if (score === undefined || Math.abs(score) > LARGEST_SCORE) return undefined;
  const [cost, tokens] = [number(value.cost_usd), number(value.output_tokens)];
  return {
    answer: text(value.answer) ?? null,
    score,
    ...(cost !== undefined && { cost_usd: cost }),
    ...(tokens !== undefined && { output_tokens: tokens }),
  };
}

/**
 * Replaces answers that a model does not deliver as they are recorded. Where a blank answer can be right, the file has
 * the values of literals: a blank one then gets its quotes, and a line break its escape. In any other file, a blank
 * answer is a missing one.
 */
function asDelivered(rows: readonly Row[]): Row[] {
  const isBlank = (answer: string) => answer.trim() === "";
  const hasValues = rows.some(({ models }) =>
    Object.values(models).some(({ answer, score }) => answer !== null && isBlank(answer) && score > 0),
  );
  const delivered = (answer: string): string | null => {
    if (isBlank(answer)) return hasValues ? JSON.stringify(answer) : null;
    return hasValues ? answer.replaceAll("\n", "\\n") : answer;
  };
  const replaced = (one: Recording) => (one.answer === null ? one : { ...one, answer: delivered(one.answer) });
  return rows.map((row) => ({
    ...row,
    models: Object.fromEntries(Object.entries(row.models).map(([name, one]) => [name, replaced(one)])),
  }));
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : undefined;
}

function number(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}
