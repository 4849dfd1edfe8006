import { decimalsOf } from "../format.ts";

/**
 * An amount of US dollars: with cents, and small ones with four decimals.
 * @param step distance of the marks of an axis: all have the decimals that it needs, and cents at least
 */
export function dollars(usd: number, step?: number): string {
  const isSmall = Math.abs(usd) > 0 && Math.abs(usd) < 1;
  const decimals = step === undefined ? (isSmall ? 4 : 2) : Math.max(2, decimalsOf(step));
  const text = Math.abs(usd).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return `${usd < 0 ? "−" : ""}$${text}`;
}
