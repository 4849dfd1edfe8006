import type { Member } from "../src/models/catalogue.ts";
import { callPrice } from "../src/models/order.ts";

/**
 * Approximate list prices at the time of the recordings, in USD per million tokens (input, output), by the beginning of
 * the name; the longest one counts. They are for comparing costs within a file, not for bills.
 */
const PRICES: ReadonlyArray<[start: string, input: number, output: number]> = [
  ["gpt-4o-mini", 0.15, 0.6],
  ["gpt-4o-2024-05-13", 5, 15],
  ["gpt-4o", 2.5, 10],
  ["chatgpt-4o", 5, 15],
  ["gpt-4-turbo", 10, 30],
  ["gpt-4-1106", 10, 30],
  ["gpt-4-0314", 30, 60],
  ["gpt-3.5", 0.5, 1.5],
  ["o1-mini", 3, 12],
  ["o1-preview", 15, 60],
  ["claude-3-5-sonnet", 3, 15],
  ["claude-3-opus", 15, 75],
  ["claude-3-sonnet", 3, 15],
  ["claude-3-haiku", 0.25, 1.25],
  ["gemini-1.5-flash", 0.075, 0.3],
  ["gemini-1.5-pro", 1.25, 5],
  ["gemini-3.1-pro", 2, 12],
  ["mistral-large", 2, 6],
  ["mistral-nemo", 0.15, 0.15],
  ["mixtral-8x7b", 0.6, 0.6],
  ["mathstral", 0.25, 0.25],
  ["deepseek", 0.14, 0.28],
  ["command-r-plus", 2.5, 10],
  ["command-r", 0.15, 0.6],
  ["reka-core", 3, 15],
  ["reka-flash", 0.8, 2],
  ["yi-large", 3, 3],
  ["jamba-1.5-large", 2, 8],
];
/** Price of a hosted open model by its size in thousand million parameters: the first size that is at least its own. */
const BY_SIZE: ReadonlyArray<[billions: number, price: number]> = [
  [4, 0.1],
  [10, 0.2],
  [40, 0.8],
  [80, 0.9],
  [Number.POSITIVE_INFINITY, 3],
];
/** Size of a model whose name has none. */
const USUAL_BILLIONS = 4;

/** The price of a recorded model. */
function priceOf(model: string): NonNullable<Member["price"]> {
  const name = model.toLowerCase();
  const [row] = PRICES.filter(([start]) => name.startsWith(start)).toSorted((a, b) => b[0].length - a[0].length);
  if (row) return { input: row[1], output: row[2] };
  const billions = Number(/(\d+)b\b/.exec(name)?.[1] ?? USUAL_BILLIONS);
  const price = BY_SIZE.find(([size]) => billions <= size)?.[1] ?? 1;
  return { input: price, output: price };
}

/** Cost of a call in USD. @param tokens of input and output; default: those of a usual call */
export function costOfCall(model: string, tokens: readonly [input: number, output: number] | undefined): number {
  if (!tokens) return usualCost(model);
  const { input, output } = priceOf(model);
  return (tokens[0] * input + tokens[1] * output) / 1e6;
}

/** Cost of a call of usual length in USD. */
export function usualCost(model: string): number {
  return callPrice({ price: priceOf(model) }) ?? 0;
}
