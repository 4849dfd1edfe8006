import type { Outcome } from "../contract/terms.ts";

/** Micro-credits per token, which is credits per million tokens. Exact to six decimals. */
export interface Rates {
  input: number;
  cached: number;
  output: number;
}

/** Counts of tokens. `cached` is the part of `input` that a vendor served from its cache. */
export interface TokenCounts {
  input: number;
  cached: number;
  output: number;
}

/** Largest price in micro-credits. No account can hold as much, and it fits the columns of the database. */
const MAX_PRICE = 4n * 10n ** 18n;

/**
 * Price of an answer in micro-credits: (input − cached) × input rate + cached × cached rate + output × output
 * rate, rounded half up once, at the end. At most `MAX_PRICE`. Source: the contract's charge table.
 */
export function priceOf(rates: Rates, { input, cached, output }: TokenCounts): bigint {
  // Computes in whole millionths of a rate, because 0.145 × 100 is less than 14.5 in binary.
  const part = (count: number, rate: number): bigint => BigInt(count) * BigInt(Math.round(rate * 1e6));
  const sum = part(input - cached, rates.input) + part(cached, rates.cached) + part(output, rates.output);
  const price = (sum + 500_000n) / 1_000_000n;
  return price < MAX_PRICE ? price : MAX_PRICE;
}

/** Highest price in micro-credits that an answer can have, whatever part of its input is cached. */
export function maxPriceOf(rates: Rates, input: number, maxOutput: number): bigint {
  const highest = { ...rates, input: Math.max(rates.input, rates.cached) };
  return priceOf(highest, { input, cached: 0, output: maxOutput });
}

/**
 * Whether a request that ended with this outcome is charged. A caller who leaves a stream pays for the part that was
 * written to it; a caller who leaves a unary call has received nothing. Source: the contract's charge table.
 */
export function isCharged(outcome: Outcome, streamed: boolean): boolean {
  return outcome === "ok" || (outcome === "caller_gone" && streamed);
}
