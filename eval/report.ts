import type { RecordedFile } from "./data.ts";

const TITLES: Record<string, string> = {
  difficulty: "Difficulty",
  served: "As served",
  contexts: "As callers put the questions",
  cascade: "Cascade",
  catalogues: "Random catalogues of six",
  panels: "Random panels of five",
  vote: "Vote",
  field_vote: "Field vote",
  repair: "Repair of raw outputs",
  cost: "Cost",
  tool_plans: "Calls of tools, as served",
  tool_panels: "Calls of tools, random panels",
};

/** The results of a file in Markdown: a table for each part, with an additional column for each subset of the rows. */
export function section(
  file: RecordedFile,
  parts: Readonly<Record<string, unknown>>,
  notes: readonly string[],
): string {
  const questions = file.rows.length + file.toolRows.length;
  const rows = `${questions > 0 ? `${questions} rows` : `${file.raw.length} raw outputs`}.`;
  const tables = Object.entries(parts).map(
    ([key, part]) => `### ${TITLES[key] ?? key}\n\n${Array.isArray(part) ? list(part) : table(part)}`,
  );
  return [`## ${file.name}`, rows, ...notes, ...tables].join("\n\n").concat("\n");
}

/** A table with a row for each item and a column for each of its figures. */
function list(items: ReadonlyArray<Record<string, unknown>>): string {
  const names = Object.keys(items[0] ?? {});
  return grid(
    names.map((name) => name.replaceAll("_", " ")),
    items.map((item) => names.map((name) => cell(item[name]))),
  );
}

function grid(header: readonly string[], lines: ReadonlyArray<readonly string[]>): string {
  return [header, header.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function table(part: unknown): string {
  const all = Object.entries(part ?? {});
  const isOwn = (name: string) => all.some(([own]) => own === name);
  // A nested object with the same figures as the part becomes a column; any other, such as figures by file, becomes
  // rows.
  const figures = all.flatMap(([name, value]): typeof all => {
    if (typeof value !== "object" || value === null || Object.keys(value).some(isOwn)) return [[name, value]];
    return Object.entries(value).map(([key, figure]) => [`apgr ${name} ${key}`, figure]);
  });
  const subsets = figures.filter(([, value]) => typeof value === "object" && value !== null);
  const header = ["figure", "all rows", ...subsets.map(([name]) => name.replaceAll("_", " "))];
  const own = figures.filter(([, value]) => typeof value !== "object" || value === null).map(([name]) => name);
  const named = new Set([...own, ...subsets.flatMap(([, value]) => Object.keys(value))]);
  const of = new Map<string, Map<string, unknown>>([["", new Map(figures)]]);
  for (const [name, value] of subsets) of.set(name, new Map(Object.entries(value)));
  const columns = ["", ...subsets.map(([name]) => name)];
  const lines = [...named].map((name) => [
    name.replaceAll("_", " "),
    ...columns.map((column) => cell(of.get(column)?.get(name))),
  ]);
  return grid(header, lines);
}

function cell(value: unknown): string {
  if (value === undefined || value === null) return "–";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)));
  return typeof value === "object" ? "" : String(value);
}
