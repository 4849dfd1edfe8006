import { gainOf, panelKinds, type Voter } from "./panels.ts";
import { mean } from "./score.ts";

const GRID = { offset: [0, 0.4, 0.8, 1.2, 1.6, 3], further: [0.1, 0.3, 0.5, 0.7, 1] };
/** Panels of each kind, and questions, that are measured at each point of the grid. */
const MEASURED = { panels: 30, questions: 1_500 };

/**
 * The constants of the vote as a table: at each point of a grid, mean and worst gain over the best member in points,
 * over random panels of each file; then for each file its gains with the constants that are best on the others.
 */
export function voteConstants(files: ReadonlyMap<string, readonly Voter[]>): string {
  const results = new Map<string, Map<string, { mean: number; worst: number }>>();
  for (const [file, voters] of files) {
    const panels = panelKinds(voters.map(firstQuestions)).flatMap(({ panels }) => panels.slice(0, MEASURED.panels));
    for (const offset of GRID.offset)
      for (const further of GRID.further) {
        const gains = panels.map((panel) => gainOf(panel, "known", { offset, further }).gain);
        const key = `${offset} ${further}`;
        const own = results.get(key) ?? new Map();
        results.set(key, own.set(file, { mean: 100 * mean(gains), worst: 100 * Math.min(...gains) }));
      }
  }
  const names = [...files.keys()];
  const best = (left: string | undefined) =>
    [...results].toSorted((a, b) => objective(b[1], left) - objective(a[1], left))[0] ?? ["", new Map()];
  const cell = (one: { mean: number; worst: number } | undefined) =>
    one ? `${one.mean.toFixed(2)} (${one.worst.toFixed(1)})` : "–";
  const lines = [
    `| offset, further | ${names.join(" | ")} |`,
    `| --- |${" --- |".repeat(names.length)}`,
    ...[...results].map(
      ([key, own]) => `| ${key.replace(" ", ", ")} | ${names.map((name) => cell(own.get(name))).join(" | ")} |`,
    ),
    ...names.map((name) => {
      const [key, own] = best(name);
      const cells = names.map((each) => (each === name ? cell(own.get(each)) : ""));
      return `| ${key.replace(" ", ", ")}, chosen without ${name} | ${cells.join(" | ")} |`;
    }),
  ];
  return ["## Constants of the vote", "Mean gain over the best member in points (worst panel).", lines.join("\n")]
    .join("\n\n")
    .concat("\n");
}

function firstQuestions(voter: Voter): Voter {
  const { forms, scores } = voter;
  return { ...voter, forms: forms.slice(0, MEASURED.questions), scores: scores.slice(0, MEASURED.questions) };
}

/** Mean gain of the files except one, less what the worst panel loses beyond half a point. */
function objective(own: ReadonlyMap<string, { mean: number; worst: number }>, left: string | undefined): number {
  const others = [...own].filter(([name]) => name !== left).map(([, one]) => one);
  return mean(others.map(({ mean, worst }) => mean - Math.max(0, -0.5 - worst)));
}
