import { type JsonNode, stringifyJson } from "../../contract/json.ts";
import { decimalOf } from "./decimal.ts";
import { type Effort, Exhausted } from "./effort.ts";
import { memberStep } from "./path.ts";
import type { Pattern } from "./pattern.ts";

/** Most messages about one value, and of them those that a message about a choice quotes. */
const MAX_ERRORS = 10;
const MAX_QUOTED = 3;
/** Most schemas within each other in a check. It bounds the stack: a schema can refer to itself. */
const MAX_DEPTH = 1_000;

/** The place of a value in an answer. Undefined: the answer itself. */
export type Place = { readonly above: Place; readonly step: string | number } | undefined;

/** Tells `check` what is wrong with a value. */
export type Rule = (value: JsonNode, place: Place, check: Check) => void;

/** What is wrong with a value. It becomes text at the end, because most choices have branches that do not fit. */
export interface Wrong {
  readonly place: Place;
  readonly message: string;
  /** What is wrong by the branch of a choice that comes nearest. */
  readonly nearest?: readonly Wrong[];
}

/** One check of a value against a schema. */
export class Check {
  readonly #effort: Effort;
  #depth: number;
  readonly #wrong: Wrong[] = [];
  /** Whether a keyword that is not checked could refuse the value. */
  #isInDoubt = false;

  constructor(effort: Effort, depth = 0) {
    this.#effort = effort;
    this.#depth = depth;
  }

  /** Applies the rules of a schema, unless enough is wrong already. @throws Exhausted */
  apply(rules: readonly Rule[], value: JsonNode, place: Place): void {
    if (this.#wrong.length === MAX_ERRORS) return;
    this.spend(stepsFor(value));
    if (++this.#depth > MAX_DEPTH) throw new Exhausted();
    for (const rule of rules) rule(value, place, this);
    this.#depth--;
  }

  /** At most ten messages, such as `$.items[0].price: must be number`. */
  get errors(): readonly string[] {
    return this.#wrong.map((wrong) => {
      const { nearest } = wrong;
      const quoted = nearest && `; of the nearest one, ${nearest.slice(0, MAX_QUOTED).map(textOf).join(", ")}`;
      return textOf(wrong) + (quoted ?? "");
    });
  }

  /**
   * Applies a rule apart from this check.
   * @returns `fits`: whether the value does; undefined: as far as the rule's keywords are checked
   * @throws Exhausted
   */
  attempt(rule: Rule, value: JsonNode, place: Place): { wrong: readonly Wrong[]; fits: boolean | undefined } {
    const check = new Check(this.#effort, this.#depth);
    rule(value, place, check);
    const wrong = check.#wrong;
    // What is wrong is wrong without a doubt.
    if (wrong.length > 0) return { wrong, fits: false };
    if (check.#isInDoubt) this.#isInDoubt = true;
    return { wrong, fits: check.#isInDoubt ? undefined : true };
  }

  /** Notes that a keyword is not checked. */
  doubt(): void {
    this.#isInDoubt = true;
  }

  /** Takes work for a value of some size. @throws Exhausted */
  spend(steps: number): void {
    this.#effort.steps -= steps;
    if (this.#effort.steps < 0) throw new Exhausted();
  }

  /** Whether a part of a text matches a pattern. @throws Exhausted */
  matches(pattern: Pattern, text: string): boolean {
    return pattern.test(text, this.#effort);
  }

  fail(place: Place, message: string, nearest?: readonly Wrong[]): void {
    if (this.#wrong.length < MAX_ERRORS) this.#wrong.push({ place, message, ...(nearest ? { nearest } : {}) });
  }
}

/** Keywords read a text, and go through all members of an object. */
function stepsFor(value: JsonNode): number {
  if (value.kind === "scalar") return 1 + (value.text.length >> 5);
  return value.kind === "object" ? 1 + (value.members.length >> 2) : 1;
}

/** The steps for a value and all of its parts. */
export function stepsForAll(value: JsonNode): number {
  const parts = value.kind === "object" ? value.members.map(([, child]) => child) : [];
  const all = value.kind === "array" ? value.items : parts;
  return all.reduce((sum, part) => sum + stepsForAll(part), stepsFor(value));
}

function textOf({ place, message }: Wrong): string {
  return `${pathOf(place)}: ${message}`;
}

function pathOf(place: Place): string {
  if (!place) return "$";
  const { above, step } = place;
  return pathOf(above) + (typeof step === "number" ? `[${step}]` : memberStep(step));
}

/** The characters of a string; undefined for any other value. */
export function stringOf(value: JsonNode | undefined): string | undefined {
  return value?.kind === "scalar" && value.text.startsWith('"') ? JSON.parse(value.text) : undefined;
}

/** As `keyOf`, for a scalar. Undefined for any other value. */
export function scalarKey(value: JsonNode): string | undefined {
  return value.kind === "scalar" ? keyOf(value) : undefined;
}

/** A text that two values share exactly if they are equal: names in any order, numbers by their value. */
export function keyOf(value: JsonNode): string {
  if (value.kind === "array") return `[${value.items.map(keyOf).join()}]`;
  if (value.kind === "object") {
    const members = value.members.map(([name, child]) => `${JSON.stringify(name)}:${keyOf(child)}`);
    return `{${members.sort().join()}}`;
  }
  const number = decimalOf(value);
  if (number) return number.digits === "" ? "0" : `${number.negative ? "-" : ""}${number.digits}e${number.exponent}`;
  return value.text.startsWith('"') ? JSON.stringify(JSON.parse(value.text)) : value.text;
}

/** A value for a message. */
export function shortened(value: JsonNode): string {
  const text = stringifyJson(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
