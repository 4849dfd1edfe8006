import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { cascadePart } from "./cascade.ts";
import { costPart } from "./cost.ts";
import { choose, choosePanel, type RecordedFile, readRecorded } from "./data.ts";
import { judgePart, type Routed, routed, shippedHead } from "./difficulty.ts";
import { fieldVotePart } from "./field-vote.ts";
import type { Choice } from "./recording.ts";
import { originOf, repairPart } from "./repair.ts";
import { section } from "./report.ts";
import { votePart } from "./vote.ts";

const USAGE =
  "npm run eval -- [--weak NAME[,NAME]] [--strong NAME] [--panel NAME,NAME,…] [--shipped] [--json] FILE.jsonl …";

/** Measures every part that applies to each file; prints the figures and writes them to eval/results.md. */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      weak: { type: "string" },
      strong: { type: "string" },
      panel: { type: "string" },
      shipped: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
  });
  if (positionals.length === 0) throw new Error(`Name at least one file of recorded answers: ${USAGE}`);
  const asked = { weak: names(values.weak), strong: values.strong, panel: names(values.panel) };
  const files = positionals.map(readRecorded);
  const sets = new Map<RecordedFile, Routed | string>(files.map((file) => [file, routed(file, asked)]));
  const results: Array<Record<string, unknown>> = [];
  const sections: string[] = [];
  for (const file of files) {
    const { parts, notes } = await measure(file, { asked, files, sets, shipped: values.shipped });
    results.push(files.length > 1 ? { file: file.name, ...parts } : parts);
    sections.push(section(file, parts, notes));
    if (!values.json) console.log(sections.at(-1));
    else for (const note of notes) console.error(`${file.name}: ${note}`);
  }
  if (values.json) console.log(JSON.stringify(files.length > 1 ? results : results[0]));
  const command = process.argv.slice(2).map((word) => word.replace(/^.*\//, ""));
  const head = `# Results\n\nWritten by \`npm run eval -- ${command.join(" ")}\`. How the figures are computed: docs/decisions/difficulty.md and fusion.md.\n`;
  writeFileSync(new URL("results.md", import.meta.url), [head, ...sections].join("\n"));
}

interface Run {
  asked: { weak: string[]; strong: string | undefined; panel: string[] };
  files: readonly RecordedFile[];
  sets: ReadonlyMap<RecordedFile, Routed | string>;
  shipped: boolean;
}

/** The parts that apply to a file, under their keys, and in words why others do not. */
async function measure(file: RecordedFile, { asked, files, sets, shipped }: Run) {
  const notes = file.skipped > 0 ? [`Lines that are no recorded answers and were left out: ${file.skipped}.`] : [];
  const parts: Record<string, unknown> = {};
  const keep = (key: string, part: unknown) => {
    if (part !== undefined) parts[key] = part;
  };
  if (file.raw.length > 0) {
    keep("repair", repairPart(file.raw, originOf(file, files)));
    return { parts, notes };
  }
  const set = sets.get(file) ?? "";
  const others = new Map(
    [...sets].flatMap(([{ name, path }, other]) =>
      path === file.path || typeof other === "string" ? [] : [[name, other]],
    ),
  );
  const judged = typeof set === "string" ? set : judgePart(set, others, shipped ? shippedHead() : undefined);
  if (typeof judged === "string") notes.push(judged);
  else keep("judge", judged.part);
  const models = choose(file, asked);
  const pair = typeof models === "string" ? { weak: [], strong: undefined } : models;
  const panel = choosePanel(file, asked.panel, pair);
  if (typeof panel === "string") notes.push(panel);
  const choice: Choice = {
    ...pair,
    panel: typeof panel === "string" ? [] : panel,
    ...(typeof judged !== "string" && { difficulty: judged.difficulty }),
  };
  keep("cascade", await cascadePart(file.rows, choice));
  keep("vote", await votePart(file.rows, choice));
  keep("field_vote", await fieldVotePart(file.rows, choice));
  keep("cost", await costPart(file.rows, choice));
  return { parts, notes };
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
