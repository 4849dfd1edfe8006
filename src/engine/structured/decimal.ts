import type { JsonNode } from "../../contract/json.ts";

/**
 * The exact value of a JSON number: ±0.d₁d₂d₃… × 10^exponent. The digits neither begin nor end with 0; zero
 * has none.
 */
export interface Decimal {
  negative: boolean;
  digits: string;
  exponent: bigint;
}

/** The value of a number node; undefined for any other node. */
export function decimalOf(node: JsonNode): Decimal | undefined {
  return node.kind === "scalar" && /^[-\d]/.test(node.text) ? parseDecimal(node.text) : undefined;
}

/** @param literal a JSON number, such as `-1.50e400` */
function parseDecimal(literal: string): Decimal {
  const [mantissa = "", power = "0"] = literal.toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.replace("-", "").split(".");
  const padded = (whole + fraction).replace(/^0+/, "");
  const digits = padded.replace(/(?<!0)0+$/, "");
  if (digits === "") return { negative: false, digits, exponent: 0n };
  const exponent = BigInt(power.replace("+", "")) + BigInt(padded.length - fraction.length);
  return { negative: mantissa.startsWith("-"), digits, exponent };
}

/** Negative if a < b, 0 if they are equal, positive if a > b. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  const sign = signOf(a);
  if (sign !== signOf(b)) return sign - signOf(b);
  if (a.exponent !== b.exponent) return a.exponent > b.exponent ? sign : -sign;
  if (a.digits === b.digits) return 0;
  return a.digits > b.digits ? sign : -sign;
}

export function isIntegral(value: Decimal): boolean {
  return BigInt(value.digits.length) <= value.exponent || value.digits === "";
}

/** The nearest finite double, and whether the literal survives the conversion exactly. */
export function toDouble(literal: string): { value: number; exact: boolean } {
  const double = Number(literal);
  // Up to 15 significant digits always survive. The exact check below takes 1 µs.
  if (/^-?[\d.]{1,15}$/.test(literal)) return { value: double, exact: true };
  const value = Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, double));
  return { value, exact: compareDecimals(parseDecimal(literal), parseDecimal(String(value))) === 0 };
}

function signOf({ negative, digits }: Decimal): number {
  return digits === "" ? 0 : negative ? -1 : 1;
}
