import { parseArgs } from "node:util";
import type { Scenario } from "./scenario.ts";
import { SCENARIOS } from "./scenarios.ts";

export interface Options {
  scenarios: readonly Scenario[];
  /** Whether to write the report to a file. */
  write: boolean;
  /** Whether checks run in their long form. */
  full: boolean;
}

export const USAGE = `npm run hostile -- [--only NAME[,NAME]] [--full] [--write]

Attacks a running service and measures what a well-behaved workspace beside the attacker sees.
Exits with 1 if it sees errors or long latencies.

  --only NAME  Run only these scenarios. A part of a name selects all that begin with it, such as "poison".
  --full       Run also the optional scenarios, in their long form.
  --write      Write the report to hostile/results.md.

Scenarios (* optional):
${SCENARIOS.map((one) => `  ${one.name}${isOptional(one) ? "*" : ""}: ${one.what}`).join("\n")}`;

/** Reads the command line. @throws Error if an option is wrong */
export function parseOptions(args: string[]): Options {
  const { values } = parseArgs({
    args,
    options: { only: { type: "string" }, full: { type: "boolean" }, write: { type: "boolean" } },
  });
  const { full = false, write = false } = values;
  const names = values.only?.split(",");
  const unknown = names?.find((name) => !SCENARIOS.some((one) => one.name.startsWith(name)));
  if (unknown !== undefined) throw new Error(`There is no scenario "${unknown}". --help lists them.`);
  const isChosen = (one: Scenario) =>
    names ? names.some((name) => one.name.startsWith(name)) : full || !isOptional(one);
  return { scenarios: SCENARIOS.filter(isChosen), write, full };
}

function isOptional(one: Scenario): boolean {
  return "optional" in one && one.optional === true;
}
