/**
 * Changes the SQL functions of the money path one at a time, and lists the changes that no test notices.
 *   npm run mutate:sql -- [--functions a,b] [--results FILE] [--quick] [--again] [--report]
 * Writes the report to tools/mutate/sql.md. Results are kept in FILE, so that a run that was stopped goes on, and only
 * survivors are tried again. --again tries all. --quick leaves out the test files, which run for survivors that the
 * report does not name as equivalent. --report only writes the report.
 */
import { createHash } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { openTestServer } from "../../test/helpers/database.ts";
import { type Death, Killers, runFiles } from "./sql-killers.ts";
import { type Mutant, mutantsOf } from "./sql-mutants.ts";
import { REPORT, reportOf, withoutEquivalent } from "./sql-report.ts";

/** Mutants that are tried at the same time. */
const JOBS = 3;

const ROOT = resolve(import.meta.dirname, "../..");
const FUNCTIONS = join(ROOT, "src/store/functions");

/** Those of caps, without cap_limit, used_subjects and current_periods, which only name and report. */
const CAPS = [
  ...["capped_kinds", "template_of", "caps_of", "subject_periods_at", "add_to_periods", "cap_use", "check_caps"],
  ...["take_caps", "charge_under_caps", "subjects_of", "windows_since", "report_subjects", "grant_subjects"],
];

/** The functions that decide about money, in the order in which a request meets them. limits_left only reports. */
const MONEY_PATH = [
  ...["append_settlement", "append_settlements", "exchange", "reserve", "earlier_use", "check_rate_limits"],
  ...["check_credit", "credit_capacity", "is_limited", "periods_at", "ms_left_in_period", "log_posts", "settle_posts"],
  ...["late_charges", "is_posted", "rows_of_posts", "keep_responses", "post_settlements", "is_answered", "add_to_each"],
  ...["end_grants", "call_back", "refresh_limits", "limits_in_force", "book_credit", "in_use", "check_books"],
  ...CAPS,
];

const { values } = parseArgs({
  options: {
    functions: { type: "string", default: MONEY_PATH.join() },
    results: { type: "string", default: join(ROOT, "node_modules/.cache/mutate-sql.jsonl") },
    quick: { type: "boolean", default: false },
    again: { type: "boolean", default: false },
    report: { type: "boolean", default: false },
  },
});

/** What became of a mutant, by the hash of its text. */
interface Result {
  id: string;
  death: Death | null;
  /** The killers that it has survived. */
  survived: "quick" | "all";
}

const known = new Map<string, Result>();
if (!values.again && existsSync(values.results)) {
  for (const line of readFileSync(values.results, "utf8").split("\n").filter(Boolean)) {
    const result = JSON.parse(line) as Result;
    known.set(result.id, result);
  }
}
mkdirSync(dirname(values.results), { recursive: true });

const names = values.functions.split(",");
const originals = new Map(names.map((name) => [name, readFileSync(join(FUNCTIONS, `${name}.sql`), "utf8")]));
const mutants = [...originals].flatMap(([name, sql]) => mutantsOf(name, sql));

function idOf(mutant: Mutant): string {
  return createHash("sha256").update(mutant.sql).digest("hex").slice(0, 16);
}

function note(mutant: Mutant, death: Death | undefined, survived: Result["survived"]): void {
  const result = { id: idOf(mutant), death: death ?? null, survived };
  known.set(result.id, result);
  appendFileSync(values.results, `${JSON.stringify(result)}\n`);
}

await using stack = new AsyncDisposableStack();
const server = await openTestServer();
stack.defer(() => server.close());
const t = { onTestFinished: (undo: () => void | Promise<void>) => stack.defer(undo) };

async function kill(killers: Killers, mutant: Mutant): Promise<void> {
  const original = originals.get(mutant.name) ?? "";
  const death =
    (await killers.replace(mutant.sql)) ??
    (mutant.name === "check_books"
      ? await killers.checkBooks()
      : await killers.run({ hasRaces: !CAPS.includes(mutant.name) }));
  await killers.replace(original);
  note(mutant, death, "quick");
}

const start = performance.now();
const untried = mutants.filter((mutant) => !values.report && known.get(idOf(mutant))?.death === undefined);
const queue = untried.entries();
await Promise.all(
  Array.from({ length: JOBS }, async () => {
    const killers = await Killers.open(t, [await server.create(), await server.create()]);
    for (const [i, mutant] of queue) {
      await kill(killers, mutant);
      if (i % 20 === 0) say(`${i} of ${untried.length} mutants, ${Math.round((performance.now() - start) / 1_000)} s`);
    }
  }),
);

if (!values.quick && !values.report) {
  const file = `${values.results}.sql`;
  // The defects are all that tests check_books.
  const left = withoutEquivalent(mutants).filter(
    (mutant) => mutant.name !== "check_books" && known.get(idOf(mutant))?.death === null,
  );
  for (const [i, mutant] of left.entries()) {
    writeFileSync(file, mutant.sql);
    const death = await runFiles(server.url, file);
    note(mutant, death, "all");
    say(`${i + 1} of ${left.length} survivors of the model: ${death ? death.reason : "survives"}`);
  }
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

const { summary, whole } = reportOf(mutants, (mutant) => known.get(idOf(mutant))?.death);
writeFileSync(REPORT, whole);
process.stdout.write(summary);
