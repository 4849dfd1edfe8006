import { type Figures, total } from "./figures.ts";
import type { ProcessFacts } from "./proc.ts";
import type { AttackScenario } from "./scenario.ts";

/** Bounds of the neighbour's latency under attack, in milliseconds where not said otherwise. */
export const BOUNDS = {
  /** p99 of whole answers: this many times the quiet one, or this long. */
  factor: 3,
  p99: 50,
  /** p99 of the first byte of streams: the quiet one plus this. */
  firstMore: 50,
  /** A neighbour that cannot be served is told so within this time. */
  refusal: 5_000,
  /** Sockets that a service may have more than before, two seconds after the attacker is gone. */
  leftSockets: 300,
  /** Longest call of an operator or a sign-in. */
  operator: 2_000,
};

type Phases = Record<"quiet" | "attacked" | "rested", Figures>;
type States = Record<"before" | "atEnd" | "after", ProcessFacts>;

/** What was wrong or too slow, in sentences. */
export interface Faults {
  wrong: string[];
  /** Latencies beyond their bounds. Anything else on the machine may cause one. */
  slow: string[];
}

/** Compares what the neighbour saw with the bounds. */
export function faultsOf(
  result: Phases & States,
  { neighbour = "served", mostSockets = Infinity }: Pick<AttackScenario, "neighbour" | "mostSockets">,
): Faults {
  const { quiet, attacked, rested, before, atEnd, after } = result;
  const wrong: string[] = [];
  const held = (state: ProcessFacts) => (state.sockets ?? 0) - (before.sockets ?? 0);
  if (held(atEnd) > mostSockets) wrong.push(`the attacker holds ${held(atEnd)} sockets at its end`);
  if (held(after) > BOUNDS.leftSockets) wrong.push(`${held(after)} sockets are left after the attack`);
  const check = (errors: Figures["errors"], where: string) => {
    if (total(errors) > 0) wrong.push(`${total(errors)} errors ${where}: ${JSON.stringify(errors)}`);
  };
  check(quiet.errors, "without an attack");
  check(rested.errors, "after the attack");
  if (neighbour === "told") {
    check(without503(attacked.errors), "other than 503");
    const isLate = attacked.longest > BOUNDS.refusal;
    return { wrong, slow: isLate ? [`a response took ${seconds(attacked.longest)}`] : [] };
  }
  check(attacked.errors, "of the neighbour");
  check(attacked.operators.errors, "of operator or owner");
  return { wrong, slow: slowOf(result) };
}

function slowOf({ quiet, attacked }: Phases): string[] {
  const slow: string[] = [];
  const p99 = Math.max(BOUNDS.factor * quiet.p99, BOUNDS.p99);
  if (!(attacked.p99 <= p99)) slow.push(`p99 is ${ms(attacked.p99)}, at most ${ms(p99)} is allowed`);
  const first = quiet.firstP99 + BOUNDS.firstMore;
  if (!(attacked.firstP99 <= first))
    slow.push(`p99 of the first byte is ${ms(attacked.firstP99)}, at most ${ms(first)} is allowed`);
  const { longest } = attacked.operators;
  if (longest > BOUNDS.operator) slow.push(`an operator waited ${seconds(longest)}`);
  return slow;
}

/** Leaves out refusals. A stream whose headers have gone out is refused with an event. */
function without503(errors: Figures["errors"]): Figures["errors"] {
  return Object.fromEntries(Object.entries(errors).filter(([what]) => !/ (503|event overloaded)$/.test(what)));
}

function ms(value: number): string {
  return `${value.toFixed(0)} ms`;
}

function seconds(value: number): string {
  return `${(value / 1_000).toFixed(1)} s`;
}
