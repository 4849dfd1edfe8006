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

export function isNumber(node: JsonNode): node is Extract<JsonNode, { kind: "scalar" }> {
  return node.kind === "scalar" && /^[-\d]/.test(node.text);
}

/** The value of a number node; undefined for any other node. */
export function decimalOf(node: JsonNode): Decimal | undefined {
  return isNumber(node) ? parseDecimal(node.text) : undefined;
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

/** Most digits of numbers of which multiples are counted, written out. More would take long. */
const MAX_DIGITS = 1_000;

/**
 * Whether a number is an integer times a positive one. False where either has more than 1,000 digits, written out.
 * @param spend told how many digits there are to divide, before that is done
 */
export function isMultiple(value: Decimal, of: Decimal, spend: (digits: number) => void): boolean {
  if (value.digits === "") return true;
  if (value.digits.length > MAX_DIGITS || of.digits.length > MAX_DIGITS) return false;
  const shift = value.exponent - BigInt(value.digits.length) - (of.exponent - BigInt(of.digits.length));
  if (shift > MAX_DIGITS || shift < -MAX_DIGITS) return false;
  spend(value.digits.length + of.digits.length + Math.abs(Number(shift)));
  const [own, base] = [BigInt(value.digits), BigInt(of.digits)];
  return shift >= 0n ? (own * 10n ** shift) % base === 0n : own % (base * 10n ** -shift) === 0n;
}

/** A double for a number node, if the doubles of two such nodes compare as they do; undefined for others. Quick. */
export function doubleOf(node: JsonNode): number | undefined {
  // Numbers of up to 15 significant digits that differ have doubles that differ.
  return node.kind === "scalar" && /^-?[\d.]{1,15}$/.test(node.text) ? Number(node.text) : undefined;
}

function signOf({ negative, digits }: Decimal): number {
  return digits === "" ? 0 : negative ? -1 : 1;
}
