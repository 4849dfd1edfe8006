import { decimalOf } from "../structured/decimal.ts";
import { regex } from "../text/regex.ts";

/** Longest text that is parsed, in UTF-16 units, which bounds the time of the patterns. */
const MAX_LENGTH = 200;

/** Sign, currency, mixed number, fraction, decimal or power of ten, and scale word. The rest must be a unit. */
const AMOUNT = regex("i")`
  ^(?:(?:about|approximately|approx\.?|around|roughly|exactly|[~≈])\s*)?
  (?<sign>[+-]?)\s*(?:(?:US)?[$€£¥₹]|(?:USD|EUR|GBP)\s)?\s*(?<inner>[+-]?)
  (?:(?:(?<whole>\d{1,15})\s+)?(?<over>\d{1,15})\s?/\s?(?<under>\d{1,15})(?![\d.])|
  (?<digits>\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?: \d{3})+(?!\d)|\d+)?(?<decimals>\.\d*)?
  (?:e(?<e>[+-]?\d{1,4})(?!\d)|\s?[*x×]\s?10\^?[({]?(?<power>[+-]?\d{1,4})[)}]?)?)
  (?:\s?(?<scale>hundred|thousand|million|billion|trillion)\b)?(?<unit>.*)$
`;

const SCALES: ReadonlyMap<string, bigint> = new Map([
  ["hundred", 2n],
  ["thousand", 3n],
  ["million", 6n],
  ["billion", 9n],
  ["trillion", 12n],
]);

/**
 * Units that may follow their number without a space. Other letters make it a variable or a code, such as `3x` or
 * `7B`.
 */
const ATTACHED_UNIT = regex("i")`
  ^(?:%|°[CF]?|[kcm]?m|[km]?g|m?s|h|hrs?|min|m?l|ft|lbs?|oz|mph|[kmg]?hz|[kmgt]b|k?w|[A-Z]?V
  |st|nd|rd|th|[$€£¥₹])(?:\^?[23])?\.?$
`;
/** A word of a unit. Single letters that are usually variables are excluded. */
const UNIT_WORD = /^(?:%|°?[A-Za-zµΩ]{2,20}|[mgshldNJWVAKCFL]|°[CF]?|[$€£¥₹])(?:\^?[23])?\.?$/;
/** Words after a number that change its meaning. */
const NO_UNIT = regex("i")`
  \b(?:am|pm|ad|bc|bce|ce|and|or|to|plus|minus|times|over|half|dozen|squared|cubed|factorial|less|more|than|if|not
  |pi|sqrt|root|log|ln|sin|cos|tan|mod|east|west|north|south)\b
`;

/**
 * Canonical form of a number: `18` for `18.0`, `$18`, `1.8e1` and `18 dollars`, `0.5` for `1/2`, `1/3` for `2/6`.
 * Currency, unit and percent sign are dropped, because models often omit them and all drafts answer the same
 * question. Zeros in front of a whole number stay, because they belong to a code, such as a postal one.
 * @returns undefined if the text is not exactly one number
 */
export function canonicalNumber(text: string): string | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const { sign, inner, whole, over, under, digits, decimals, e, power, scale, unit } = AMOUNT.exec(text)?.groups ?? {};
  if (unit === undefined || !isUnit(unit) || (sign && inner)) return undefined;
  const shift = SCALES.get(scale?.toLowerCase() ?? "") ?? 0n;
  const minus = (sign || inner) === "-" ? "-" : "";
  if (over !== undefined && under !== undefined) {
    if (BigInt(under) === 0n) return undefined;
    return ratio(minus, (BigInt(whole ?? 0) * BigInt(under) + BigInt(over)) * 10n ** shift, BigInt(under));
  }
  if (!/\d/.test(`${digits ?? ""}${decimals ?? ""}`)) return undefined;
  const mantissa = `${(digits ?? "0").replaceAll(/[ ,]/g, "")}${decimals === "." ? "" : (decimals ?? "")}`;
  const exponent = BigInt(e ?? power ?? 0) + shift;
  const isWhole = exponent === 0n && (decimals ?? ".") === ".";
  if (isWhole && /^0\d/.test(digits ?? "")) return `${minus}${mantissa}`;
  return decimal(`${minus}${mantissa}e${exponent}`);
}

function isUnit(unit: string): boolean {
  const words = unit.trim();
  if (words === "") return true;
  if (NO_UNIT.test(words)) return false;
  if (!/^\s/.test(unit)) return ATTACHED_UNIT.test(words);
  const parts = words.split(/\s?\/\s?|\s+/);
  return parts.length <= 4 && parts.every((part) => UNIT_WORD.test(part));
}

/** A fraction as a decimal if that ends within 15 places, else in lowest terms. */
function ratio(minus: string, over: bigint, under: bigint): string | undefined {
  let [a, b] = [over, under];
  while (b > 0n) [a, b] = [b, a % b];
  const [top, bottom] = [over / a, under / a];
  const places = 10n ** 15n;
  return places % bottom === 0n ? decimal(`${minus}${top * (places / bottom)}e-15`) : `${minus}${top}/${bottom}`;
}

/** @param literal a JSON number, which may begin with zeros */
function decimal(literal: string): string {
  const value = decimalOf({ kind: "scalar", text: literal });
  if (!value || value.digits === "") return "0";
  const { negative, digits, exponent } = value;
  const minus = negative ? "-" : "";
  if (exponent > 30n || exponent < -30n) return `${minus}0.${digits}e${exponent}`;
  const point = Number(exponent);
  if (point <= 0) return `${minus}0.${"0".repeat(-point)}${digits}`;
  const padded = digits.padEnd(point, "0");
  return `${minus}${padded.slice(0, point)}${padded.length > point ? `.${padded.slice(point)}` : ""}`;
}
