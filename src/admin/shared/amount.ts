import { invalid } from "../../contract/failure.ts";

/** Millionths in one credit. The code counts all amounts in whole millionths. */
const MICRO = 1_000_000n;

/** Largest amount of one booking or spend limit, in millionths: a billion credits. */
export const MAX_AMOUNT = 1_000_000_000n * MICRO;

/**
 * Reads an exact decimal amount of credits, such as `12.5`.
 * @param field name of the field, for the error
 * @param min smallest amount, in millionths; the largest is MAX_AMOUNT
 * @returns millionths
 * @throws Failure `invalid_request` with the field, unless the text is a plain decimal number in range with at most six
 * decimals
 */
export function parseAmount(field: string, text: string, min: bigint): bigint {
  const [, sign, integer = "", fraction = ""] = /^(-?)(\d{1,20})(?:\.(\d{1,20}))?$/.exec(text) ?? [];
  if (sign === undefined) {
    throw invalid(field, `${field} must be a decimal number of credits with up to 20 digits, such as 12.5.`);
  }
  if (fraction.length > 6)
    throw invalid(field, `${field} must have at most six decimals: credit is counted in millionths.`);
  const size = BigInt(integer) * MICRO + BigInt(fraction.padEnd(6, "0"));
  const amount = sign === "-" ? -size : size;
  if (amount < min || amount > MAX_AMOUNT) {
    throw invalid(field, `${field} must be from ${amountText(min)} to ${amountText(MAX_AMOUNT)} credits.`);
  }
  return amount;
}

/** Writes an amount in millionths as credits: exact, without trailing zeros. */
export function amountText(micro: bigint): string {
  const size = micro < 0n ? -micro : micro;
  const fraction = (size % MICRO).toString().padStart(6, "0").replace(/0+$/, "");
  return `${micro < 0n ? "-" : ""}${size / MICRO}${fraction === "" ? "" : `.${fraction}`}`;
}
