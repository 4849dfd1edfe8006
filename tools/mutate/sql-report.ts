import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Death } from "./sql-killers.ts";
import type { Mutant } from "./sql-mutants.ts";

/** The report. Who judges a survivor writes `equivalent: …` or `hole: …` into its row, which the next run keeps. */
export const REPORT = join(import.meta.dirname, "sql.md");

/** Longest code that is shown whole. */
const MAX_SHOWN = 120;

function shown(code: string): string {
  if (code.length <= MAX_SHOWN) return code;
  return `${code.slice(0, MAX_SHOWN / 2)} … ${code.slice(-MAX_SHOWN / 2)}`;
}

/** The cells of a mutant's row that stay when lines move. */
function cellsOf({ rule, before, after }: Mutant): string {
  return [rule, cell(before), cell(after)].join(" | ");
}

/** The rows of the last report about survivors. */
function readSurvivors(): { line: string; name: string; cells: string; verdict: string }[] {
  const text = existsSync(REPORT) ? readFileSync(REPORT, "utf8") : "";
  const rows = [...text.matchAll(/^\| `(\w+)` \d+ \| (.*) \| ([^|]*) \|$/gm)];
  return rows.map(([line, name = "", cells = "", verdict = ""]) => ({ line, name, cells, verdict }));
}

function verdictsIn(rows: ReturnType<typeof readSurvivors>): (mutant: Mutant) => string {
  const verdicts = new Map(rows.map(({ name, cells, verdict }) => [`${name} ${cells}`, verdict]));
  return (mutant) => verdicts.get(`${mutant.name} ${cellsOf(mutant)}`) ?? "not judged";
}

/** Those that the last report does not name as equivalent. */
export function withoutEquivalent(mutants: readonly Mutant[]): Mutant[] {
  const verdictOf = verdictsIn(readSurvivors());
  return mutants.filter((mutant) => !verdictOf(mutant).startsWith("equivalent"));
}

/** The figures of the last report: mutants, those that each killer has killed, survivors, equivalent ones. */
function readFigures(): Map<string, number[]> {
  const text = existsSync(REPORT) ? readFileSync(REPORT, "utf8") : "";
  const rows = [...text.matchAll(/^\| (\w+) \| ((?:\d+ \| ){7})\d+ % \|$/gm)];
  return new Map(rows.map(([, name = "", figures = ""]) => [name, figures.split("|").slice(0, 7).map(Number)]));
}

function rowOf(name: string, figures: readonly number[]): string {
  const [count = 0, , , , , alive = 0] = figures;
  return `| ${[name, ...figures, `${Math.round((100 * (count - alive)) / count)} %`].join(" | ")} |`;
}

/** Code in a cell of a table. */
function cell(code: string): string {
  return code === "" ? "nothing" : `\`${shown(code).replaceAll("|", "\\|")}\``;
}

/**
 * The report: the score of each function, and every survivor with the verdict on it. Functions without a mutant here
 * keep their rows of the last report.
 * @param deathOf null: the mutant survives; undefined: it was not tried
 */
export function reportOf(
  mutants: readonly Mutant[],
  deathOf: (mutant: Mutant) => Death | null | undefined,
): { summary: string; whole: string } {
  const before = readSurvivors();
  const verdictOf = verdictsIn(before);
  const tried = mutants.filter((mutant) => deathOf(mutant) !== undefined && !deathOf(mutant)?.isInvalid);
  const left = tried.filter((mutant) => deathOf(mutant) === null);
  const figures = readFigures();
  figures.delete("all");
  for (const [name, of] of Map.groupBy(tried, ({ name }) => name)) {
    const by = (...killers: string[]) => of.filter((mutant) => killers.includes(deathOf(mutant)?.killer ?? "")).length;
    const alive = of.filter((mutant) => left.includes(mutant));
    const equivalent = alive.filter((mutant) => verdictOf(mutant).startsWith("equivalent")).length;
    const killed = [by("books", "cases", "create"), by("schedules"), by("races"), by("tests")];
    figures.set(name, [of.length, ...killed, alive.length, equivalent]);
  }
  const all = [...figures.values()].reduce((sum, one) => sum.map((figure, i) => figure + (one[i] ?? 0)));
  const rows = [...figures, ["all", all] as const].map(([name, of]) => rowOf(name, of));
  const names = [...figures.keys()];
  const lines = names.flatMap((name) =>
    tried.some((mutant) => mutant.name === name)
      ? left
          .filter((mutant) => mutant.name === name)
          .map((mutant) => `| \`${name}\` ${mutant.line} | ${cellsOf(mutant)} | ${verdictOf(mutant)} |`)
      : before.filter((row) => row.name === name).map(({ line }) => line),
  );
  const untried = mutants.filter((mutant) => deathOf(mutant) === undefined).length;
  const summary = `# Mutants of the SQL functions

Written by \`npm run mutate:sql\`. Each mutant is one change of a function of the money path. *Cases*: killed by the
cases of \`test/store/\`. *Schedules*: by those of the simulation, which run in Postgres and in the model. *Races*: by
pairs of statements at the same time. *Tests*: by other tests. *Equivalent*: survivors that change nothing that can be
seen. The score is what was killed of all. Changes that are no program do not count.${
    untried > 0 ? ` ${untried} were not tried.` : ""
  }

| function | mutants | cases | schedules | races | tests | survive | equivalent | score |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
${rows.join("\n")}
`;
  const survivors = `
## Survivors

| where | rule | before | after | verdict |
| --- | --- | --- | --- | --- |
${lines.join("\n")}
`;
  return { summary, whole: summary + survivors };
}
