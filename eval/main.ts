import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { loadDifficultyRater } from "../src/engine/difficulty/difficulty.ts";
import { CARDS, cardPart, cardSection, readCard } from "./card.ts";
import { cascadePart } from "./cascade.ts";
import { cataloguesPart } from "./catalogues.ts";
import { contextsPart } from "./contexts.ts";
import { costPart } from "./cost.ts";
import { choose, choosePanel, type RecordedFile, readRecorded } from "./data.ts";
import { difficultyPart, type Routed, routed } from "./difficulty.ts";
import { fieldVotePart } from "./field-vote.ts";
import { missedByCatalogues, missedByContexts, missedByPanels, missedByToolPlans, missedGates } from "./gates.ts";
import { raterOf } from "./held-out-rater.ts";
import { mathsShare } from "./maths-share.ts";
import { otherAccuracies, panelsPart, votersOf } from "./panels.ts";
import type { Choice } from "./recording.ts";
import { originOf, repairPart } from "./repair.ts";
import { section } from "./report.ts";
import { servedPart } from "./served.ts";
import { toolPanelsPart } from "./tool-panels.ts";
import { toolPlansPart } from "./tool-plans.ts";
import { votePart } from "./vote.ts";
import { voteConstants } from "./vote-constants.ts";

const USAGE =
  "npm run eval -- [--weak NAME[,NAME]] [--strong NAME] [--panel NAME,NAME,…] [--shipped] [--json] [--write] " +
  "FILE.jsonl …";

const HELP = `${USAGE}

Measures the engine on files of recorded answers and prints the figures. Exits with 1 if a file misses its gate.

  --weak NAME[,NAME]  fast models; default: chosen by cost and accuracy
  --strong NAME       strong model; default: the most accurate one
  --panel NAME,…      members of the vote; default: three models below the strong one
  --shipped           rates difficulty with the committed weights, which may have been trained on these files
  --json              prints JSON instead of Markdown
  --write             writes the figures to eval/results.md
  --help              prints this text`;

/** Measures the parts that apply to each file and prints the figures. */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      weak: { type: "string" },
      strong: { type: "string" },
      panel: { type: "string" },
      shipped: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return console.log(HELP);
  if (positionals.length === 0) throw new Error(`Name at least one file of recorded answers: ${USAGE}`);
  const requested = { weak: names(values.weak), strong: values.strong, panel: names(values.panel) };
  const files = positionals.map(readRecorded);
  const sets = new Map<RecordedFile, Routed | string>(files.map((file) => [file, routed(file, requested)]));
  const results: Array<Record<string, unknown>> = [];
  const sections: string[] = [];
  const missed: string[] = [];
  for (const file of files) {
    const run = { requested, files, sets, shipped: values.shipped };
    const { parts, notes, served, contexts, panels, catalogues, plans = [] } = await measure(file, run);
    results.push(files.length > 1 ? { file: file.name, ...parts } : parts);
    sections.push(section(file, parts, notes));
    missed.push(
      ...missedGates(file.name, served),
      ...missedByContexts(file.name, contexts),
      ...missedByPanels(file.name, panels),
      ...missedByCatalogues(file.name, catalogues),
      ...missedByToolPlans(file.name, plans),
    );
    if (!values.json) console.log(sections.at(-1));
    else for (const note of notes) console.error(`${file.name}: ${note}`);
  }
  const card = cardPart();
  sections.push(cardSection(card));
  for (const title of ["card of languages", "card of contexts"] as const)
    sections.push(cardSection(cardPart(readCard(CARDS[title])), title));
  if (!values.json) console.log(sections.slice(-3).join("\n"));
  else console.log(JSON.stringify(files.length > 1 ? [...results, { file: "card", card }] : { ...results[0], card }));
  const voters = new Map(files.map((file) => [file.name, votersOf(file.rows)]));
  for (const [name, own] of voters) if (own.length < 5) voters.delete(name);
  if (voters.size > 1) sections.push(voteConstants(voters));
  if (voters.size > 1 && !values.json) console.log(sections.at(-1));
  const shares = files.flatMap((file) => mathsShare(file) ?? []);
  sections.push(...shares);
  if (!values.json) for (const share of shares) console.log(share);
  for (const gate of missed) console.error(gate);
  if (missed.length > 0) process.exitCode = 1;
  if (values.write) write(sections);
}

function write(sections: readonly string[]): void {
  const command = process.argv.slice(2).map((word) => word.replace(/^.*\//, ""));
  const intro = `# Results

Written by

\`\`\`sh
npm run eval -- ${command.join(" \\\n  ")}
\`\`\`

docs/decisions/difficulty.md and docs/decisions/fusion.md describe how the figures are computed.
`;
  writeFileSync(new URL("results.md", import.meta.url), [intro, ...sections].join("\n"));
}

interface Run {
  requested: { weak: string[]; strong: string | undefined; panel: string[] };
  files: readonly RecordedFile[];
  sets: ReadonlyMap<RecordedFile, Routed | string>;
  shipped: boolean;
}

/** Measures the parts that apply to a file. @returns the parts by key, and notes about parts that do not apply */
async function measure(file: RecordedFile, { requested, files, sets, shipped }: Run) {
  const notes = file.skipped > 0 ? [`Skipped lines without a recorded answer: ${file.skipped}.`] : [];
  const parts: Record<string, unknown> = {};
  const keep = (key: string, part: unknown) => {
    if (part !== undefined) parts[key] = part;
  };
  if (file.raw.length > 0) {
    keep("repair", repairPart(file.raw, originOf(file, files)));
    return { parts, notes, served: [], contexts: [], panels: [], catalogues: [] };
  }
  if (file.toolRows.length > 0) {
    const plans = await toolPlansPart(file.toolRows);
    const toolPanels = toolPanelsPart(file.toolRows);
    keep("tool_plans", plans.length > 0 ? plans : undefined);
    keep("tool_panels", toolPanels.length > 0 ? toolPanels : undefined);
    return { parts, notes, served: [], contexts: [], panels: [], catalogues: [], plans };
  }
  const set = sets.get(file) ?? "";
  const others = new Map(
    [...sets].flatMap(([{ name, path }, other]) =>
      path === file.path || typeof other === "string" ? [] : [[name, other]],
    ),
  );
  const rated = typeof set === "string" ? set : difficultyPart(set, others, shipped);
  if (typeof rated === "string") notes.push(rated);
  else keep("difficulty", rated.part);
  const models = choose(file, requested);
  const pair = typeof models === "string" ? { weak: [], strong: undefined } : models;
  const panel = choosePanel(file, requested.panel, pair);
  if (typeof panel === "string") notes.push(panel);
  const choice: Choice = {
    ...pair,
    panel: typeof panel === "string" ? [] : panel,
    ...(typeof rated !== "string" && { difficulty: rated.difficulty }),
  };
  const rater = shipped ? loadDifficultyRater() : raterOf([...others.values()]);
  const served = await servedPart(file.rows, choice, rater);
  keep("served", served);
  const catalogues = await cataloguesPart(file.rows, loadDifficultyRater());
  keep("catalogues", catalogues);
  const contexts = await contextsPart(file.name, file.rows, choice, rater);
  keep("contexts", contexts);
  keep("cascade", await cascadePart(file.rows, choice));
  const panels = panelsPart(votersOf(file.rows), otherAccuracies(file, files));
  keep("panels", panels.length > 0 ? panels : undefined);
  keep("vote", await votePart(file.rows, choice));
  keep("field_vote", await fieldVotePart(file.rows, choice));
  keep("cost", await costPart(file.rows, choice));
  return { parts, notes, served: served ?? [], contexts: contexts ?? [], panels, catalogues: catalogues ?? [] };
}

function names(list: string | undefined): string[] {
  return (list ?? "").split(",").flatMap((name) => (name.trim() === "" ? [] : [name.trim()]));
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
