import { ConfigError } from "./config-error.ts";

/** Limits of a workspace. A tier sets them, and an operator can override them. */
export const LIMIT_NAMES = [
  "requests_per_minute",
  "requests_per_day",
  "requests_per_month",
  "input_tokens_per_minute",
  "input_tokens_per_day",
  "input_tokens_per_month",
  "output_tokens_per_minute",
  "output_tokens_per_day",
  "output_tokens_per_month",
  "concurrent_requests",
] as const;
export type LimitName = (typeof LIMIT_NAMES)[number];

/** Largest value of a limit. JavaScript and JSON represent it exactly. */
export const MAX_LIMIT = 1_000_000_000_000_000;

/** Limits by name. A limit that is not named does not apply. */
export type Limits = Readonly<Partial<Record<LimitName, number>>>;

export interface WorkspaceTier {
  name: string;
  /** Total of purchased credits from which the tier applies. Undefined: only an operator can assign the tier. */
  purchased?: number;
  limits: Limits;
}

/**
 * The tiers if CHORUS_TIERS is not set. The lowest tier is large enough for every feature, for prompts of the maximum
 * size and for a small load test. Each higher tier allows about three times as much.
 */
const DEFAULT_TIERS: readonly WorkspaceTier[] = [
  { name: "free", purchased: 0, limits: figures(600, 1_000_000, 250_000, 64, 20_000, 200_000) },
  { name: "1", purchased: 500, limits: figures(2_000, 3_000_000, 750_000, 128, 100_000, 2_000_000) },
  { name: "2", purchased: 5_000, limits: figures(6_000, 10_000_000, 2_500_000, 256, 500_000, 10_000_000) },
  { name: "3", purchased: 20_000, limits: figures(20_000, 30_000_000, 7_500_000, 512, 2_000_000, 40_000_000) },
  { name: "4", purchased: 100_000, limits: figures(60_000, 100_000_000, 25_000_000, 1_024) },
  { name: "unlimited", limits: {} },
];

function figures(perMinute: number, input: number, output: number, atOnce: number, perDay?: number, perMonth?: number) {
  return {
    requests_per_minute: perMinute,
    ...(perDay === undefined ? {} : { requests_per_day: perDay }),
    ...(perMonth === undefined ? {} : { requests_per_month: perMonth }),
    input_tokens_per_minute: input,
    output_tokens_per_minute: output,
    concurrent_requests: atOnce,
  };
}

const EXAMPLE = '[{"name":"free","purchased":0,"limits":{"requests_per_minute":60}}]';

/**
 * Reads the tiers: a JSON list, lowest tier first.
 * @param text value of CHORUS_TIERS; undefined or empty gives the default tiers
 * @throws ConfigError naming the position in CHORUS_TIERS, what was expected and what to do
 */
export function parseTiers(text: string | undefined): readonly WorkspaceTier[] {
  if (!text) return DEFAULT_TIERS;
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    // Reported below.
  }
  if (!Array.isArray(list) || list.length === 0) throw wrong("", `must be a JSON list of tiers, such as ${EXAMPLE}`);
  const tiers = list.map(tierOf);
  const names = new Set<string>();
  let highest = -1;
  for (const [i, { name, purchased }] of tiers.entries()) {
    if (names.has(name)) throw wrong(`[${i}].name`, `repeats the name "${name}" of another tier`);
    names.add(name);
    if (purchased === undefined) continue;
    if (purchased <= highest) throw wrong(`[${i}].purchased`, "must be greater than that of the tier before it");
    highest = purchased;
  }
  if (!tiers.some(({ purchased }) => purchased === 0)) {
    throw wrong("", 'must have a tier with "purchased": 0, in which every workspace starts');
  }
  return tiers;
}

function tierOf(value: unknown, i: number): WorkspaceTier {
  const { name, purchased, limits, ...rest } = object(value, `[${i}]`);
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined)
    throw wrong(`[${i}]`, `has an unknown member "${unknown}"; allowed are name, purchased and limits`);
  if (typeof name !== "string" || !/^[\w-]{1,32}$/.test(name) || name === "auto") {
    throw wrong(`[${i}].name`, 'must be 1 to 32 letters, digits, "_" or "-", and not "auto"');
  }
  if (purchased !== undefined && !isAmount(purchased)) {
    throw wrong(`[${i}].purchased`, "must be credits from 0 to 1,000,000,000, with up to six decimals");
  }
  const given = object(limits, `[${i}].limits`);
  for (const [limit, figure] of Object.entries(given)) {
    if (!LIMIT_NAMES.some((known) => known === limit)) {
      throw wrong(`[${i}].limits`, `has an unknown member "${limit}"; allowed are ${LIMIT_NAMES.join(", ")}`);
    }
    if (!Number.isInteger(figure) || !(Number(figure) >= 0 && Number(figure) <= MAX_LIMIT)) {
      throw wrong(`[${i}].limits.${limit}`, `must be a whole number from 0 to ${MAX_LIMIT}; omit it for no limit`);
    }
  }
  return { name, ...(purchased === undefined ? {} : { purchased }), limits: given };
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= 1e9 && Number(value.toFixed(6)) === value;
}

function object(value: unknown, where: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong(where, "must be a JSON object");
  return value as Record<string, unknown>;
}

function wrong(where: string, what: string): ConfigError {
  return new ConfigError(`CHORUS_TIERS${where} ${what}. Correct it, or unset CHORUS_TIERS.`);
}
