import type { Ability } from "../contract/terms.ts";
import { FACTS } from "./knowledge.ts";

/** A question with a known answer. */
export interface Question {
  /** Unique, and the same in every run with the same number of questions. */
  id: string;
  ability: Ability;
  prompt: string;
  answer: string;
  /** Whether the answer counts character by character, as a literal does. */
  exact: boolean;
}

/** Abilities that have generated questions. Prose has no answer that could be checked. */
export const MEASURED = ["knowledge", "maths", "code", "extraction"] as const;

/** Makes `each` questions of every measured ability, of knowledge at most 30. The same call makes the same ones. */
export function generateQuestions(each: number): Question[] {
  return MEASURED.flatMap((ability) =>
    Array.from({ length: ability === "knowledge" ? Math.min(each, FACTS.length) : each }, (_, at) => {
      const made = GENERATORS[ability](new Numbers(7919 * (at + 1)), at);
      return { id: `${ability}-${at + 1}`, ability, exact: ability === "code", ...made };
    }),
  );
}

type Made = Pick<Question, "prompt" | "answer">;

const GENERATORS: Record<(typeof MEASURED)[number], (numbers: Numbers, at: number) => Made> = {
  knowledge(_, at) {
    // Steps through the list, so that few questions are also of all difficulties.
    const [question = "", answer = ""] = FACTS[(at * 7) % FACTS.length] ?? [];
    return { prompt: `${question} Answer with the name or the number only.`, answer };
  },
  maths: (numbers, at) => [product, remainder, rates][at % 3]?.(numbers) ?? product(numbers),
  code: (numbers, at) => [fold, rotate, collect][at % 3]?.(numbers) ?? fold(numbers),
  extraction: invoices,
};

function product(numbers: Numbers): Made {
  const [a, b, c] = [numbers.from(112, 989), numbers.from(112, 989), numbers.from(1_001, 9_999)];
  return { prompt: `Compute ${a} * ${b} - ${c}. Give only the number.`, answer: String(a * b - c) };
}

function remainder(numbers: Numbers): Made {
  const [base, exponent, modulus] = [numbers.from(3, 19), numbers.from(7, 23), numbers.from(31, 97)];
  let power = 1;
  for (let step = 0; step < exponent; step++) power = (power * base) % modulus;
  return {
    prompt: `What is the remainder of ${base}^${exponent} divided by ${modulus}? Give only the number.`,
    answer: String(power),
  };
}

function rates(numbers: Numbers): Made {
  const [boxes, pens, sold, price] = [
    numbers.from(6, 19),
    numbers.from(12, 48),
    numbers.from(3, 5),
    numbers.from(2, 9),
  ];
  const broken = numbers.from(2, 9);
  return {
    prompt:
      `A shop has ${boxes} boxes with ${pens} pens each. It gives ${sold} of the boxes away. ` +
      `In each box that is left, ${broken} pens are broken. ` +
      `It sells the other pens of these boxes at ${price} euros each. ` +
      "How many euros does it get? Give only the number.",
    answer: String((boxes - sold) * (pens - broken) * price),
  };
}

const ASK = "What does this Python program print? Answer with the literal only, strings in single quotes.";

function program(lines: readonly string[], value: string): Made {
  return { prompt: `${ASK}\n\n\`\`\`python\n${lines.join("\n")}\n\`\`\``, answer: value };
}

function fold(numbers: Numbers): Made {
  const list = numbers.list(7, 1, 40);
  const [by, start] = [numbers.from(3, 6), numbers.from(2, 9)];
  let total = start;
  for (const one of list) total = one % by === 0 ? total * 2 - one : total + (one % by);
  const body = [`def f(xs, t):`, `    for x in xs:`, `        t = t * 2 - x if x % ${by} == 0 else t + x % ${by}`];
  return program([...body, "    return t", `print(repr(f([${list.join(", ")}], ${start})))`], String(total));
}

function rotate(numbers: Numbers): Made {
  const word = numbers.word(8);
  const [step, shift] = [numbers.from(2, 3), numbers.from(1, 5)];
  let out = "";
  for (const [at, letter] of [...word].entries()) out = at % step === 0 ? out + letter.toUpperCase() : letter + out;
  const body = ["def f(s):", '    out = ""', "    for i, c in enumerate(s):"];
  const rest = [
    `        out = out + c.upper() if i % ${step} == 0 else c + out`,
    `    return out[${shift}:] + out[:${shift}]`,
  ];
  return program([...body, ...rest, `print(repr(f("${word}")))`], `'${out.slice(shift)}${out.slice(0, shift)}'`);
}

function collect(numbers: Numbers): Made {
  const list = numbers.list(8, 1, 12);
  const limit = numbers.from(4, 9);
  const kept: number[] = [];
  for (const one of list) {
    if (kept.includes(one)) kept.splice(kept.indexOf(one), 1);
    else if (one > limit) kept.unshift(one - limit);
    else kept.push(one);
  }
  const body = ["def f(xs):", "    out = []", "    for x in xs:", "        if x in out:", "            out.remove(x)"];
  const rest = [
    `        elif x > ${limit}:`,
    `            out.insert(0, x - ${limit})`,
    "        else:",
    "            out.append(x)",
  ];
  return program([...body, ...rest, "    return out", `print(repr(f([${list.join(", ")}])))`], `[${kept.join(", ")}]`);
}

const NAMES = ["Adler", "Bennett", "Costa", "Dubois", "Eriksen", "Fischer", "Greco", "Haddad"];
const CITIES = ["Porto", "Graz", "Lyon", "Bergen"];

function invoices(numbers: Numbers): Made {
  const rows = NAMES.map((name) => ({
    name,
    city: CITIES[numbers.from(0, CITIES.length - 1)] ?? "Porto",
    amount: numbers.from(100, 99_999) / 100,
    isPaid: numbers.from(0, 2) > 0,
  }));
  const city = rows[numbers.from(0, rows.length - 1)]?.city ?? "Porto";
  const there = rows.filter((row) => row.city === city);
  const [most] = there.toSorted((a, b) => b.amount - a.amount);
  const text = rows.map(
    ({ name, city, amount, isPaid }) =>
      `${name}'s invoice went to ${city} and is for EUR ${amount.toFixed(2)}; it is ${isPaid ? "paid" : "open"}.`,
  );
  return {
    prompt: `${text.join(" ")}\n\nExtract the name of the customer in ${city} with the largest invoice. Give only it.`,
    answer: most?.name ?? "",
  };
}

/** Repeatable numbers by the generator of Park and Miller (MINSTD). */
class Numbers {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  from(low: number, high: number): number {
    this.#state = (this.#state * 48_271) % 2_147_483_647;
    return low + (this.#state % (high - low + 1));
  }

  list(length: number, low: number, high: number): number[] {
    return Array.from({ length }, () => this.from(low, high));
  }

  word(length: number): string {
    return String.fromCharCode(...this.list(length, 97, 122));
  }
}
