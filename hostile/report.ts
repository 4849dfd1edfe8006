import { pinned } from "../bench/server.ts";
import { figure, table } from "../bench/tables.ts";
import { total } from "./figures.ts";
import { BOUNDS } from "./gates.ts";
import { RATES } from "./rates.ts";
import type { AttackResult } from "./run.ts";

export type Result = AttackResult | CheckResult;

export interface CheckResult {
  name: string;
  outcome: string;
  wrong: string[];
}

/** Everything that was wrong or slow. */
export function problemsOf(result: Result): string[] {
  return "slow" in result ? [...result.wrong, ...result.slow] : result.wrong;
}

const HEAD = [
  ...[
    "scenario",
    "what happened to the attacker",
    "errors of the neighbour",
    "p50, p99 quiet",
    "p50, p99 under attack",
  ],
  ...["p99 of the first byte: quiet, under attack", "operator: errors, longest", "sockets: before, at the end, after"],
  ...["RSS in MB: before, peak, after", "result"],
];

/** The report in Markdown. */
export function report(results: readonly Result[]): string {
  const failed = results.filter((one) => problemsOf(one).length > 0);
  const attacks = results.filter((one) => "quiet" in one);
  const checks = results.filter((one) => "outcome" in one);
  const faults = failed.map((one) => `- \`${one.name}\`: ${problemsOf(one).map(shortened).join("; ")}`);
  return `# Hostile suite

${results.length - failed.length} of ${results.length} scenarios passed. Times are in milliseconds.

${table(HEAD, attacks.map(rowOf))}

${table(
  ["check", "outcome", "result"],
  checks.map((one) => [one.name, one.outcome, verdict(one)]),
)}

${faults.length === 0 ? "" : `## What failed\n\n${faults.join("\n")}\n`}
${METHOD}
`;
}

const PLACEMENT = pinned
  ? `The service has a core to itself. The neighbour, the vendor and Postgres share the other cores with the attacker,
  which has the lowest priority: what it does not get done is missing in its counts.`
  : "All processes share all cores, because the service could not be pinned to a core.";

const METHOD = `## How it was measured

- Each scenario has a new service with the default configuration, and workspaces of its own in one Postgres.
- The neighbour sends ${RATES.unary} whole answers a second over REST, ${RATES.long} with a prompt of 20,000
  characters, ${RATES.rpc} over Connect, and ${RATES.stream} streams, at a constant rate; streams on new connections.
  An operator's call and a sign-in follow each second.
- ${PLACEMENT}
- A scenario in which the neighbour was only slow runs a second time, and the second run counts.
- Bounds: no error; p99 at most ${BOUNDS.factor} times the quiet one or ${BOUNDS.p99} ms; the p99 of the first byte at
  most ${BOUNDS.firstMore} ms more than the quiet one; an operator waits at most ${BOUNDS.operator / 1_000} s; at most
  ${BOUNDS.leftSockets} sockets are left after the attack.
- With Postgres away, each failure must be a 503 within ${BOUNDS.refusal / 1_000} s.`;

function rowOf(result: AttackResult): string[] {
  const { name, counts, longest, quiet, attacked, before, atEnd, after } = result;
  const errors = total(attacked.errors);
  const share = attacked.requests === 0 ? 0 : (errors / attacked.requests) * 100;
  const seen = [
    ...Object.entries(counts).map(([what, count]) => `${figure(count)} × ${what}`),
    ...Object.entries(longest).map(([what, ms]) => `longest ${what} ${figure(ms)}`),
  ];
  const { operators } = attacked;
  return [
    name,
    seen.join(", "),
    `${errors} (${figure(share, 1)} %)`,
    `${figure(quiet.p50, 1)}, ${figure(quiet.p99, 1)}`,
    `${figure(attacked.p50, 1)}, ${figure(attacked.p99, 1)}`,
    `${figure(quiet.firstP99, 1)}, ${figure(attacked.firstP99, 1)}`,
    `${total(operators.errors)}, ${figure(operators.longest)}`,
    [before, atEnd, after].map(({ sockets }) => figure(sockets)).join(", "),
    [before.resident, after.peak, after.resident].map((bytes) => figure(bytes && bytes / 1e6)).join(", "),
    verdict(result),
  ];
}

function verdict(result: Result): string {
  return problemsOf(result).length === 0 ? "passed" : "FAILED";
}

function shortened(fault: string): string {
  return fault.length > 300 ? `${fault.slice(0, 300)}…` : fault;
}
