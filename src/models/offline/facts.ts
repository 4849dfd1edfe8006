import { fit, words } from "./labels.ts";

const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const MONTH = `(?<m>(?:${MONTHS.join("|")})[a-z]{0,6})`;
const DATE =
  "(?<y>\\d{4})-(?<m>\\d\\d)-(?<d>\\d\\d)|(?<d>\\d\\d?)\\.(?<m>\\d\\d?)\\.(?<y>\\d{4})|(?<m>\\d\\d?)/(?<d>\\d\\d?)/(?<y>\\d{4})|" +
  `(?<d>\\d\\d?)(?:st|nd|rd|th)? (?:of )?${MONTH},? (?<y>\\d{4})|${MONTH} (?<d>\\d\\d?)(?:st|nd|rd|th)?,? (?<y>\\d{4})`;
const CURRENCY = "(?:[$€£]|\\b(?:USD|EUR|GBP|CHF)\\b)";
const FIGURE = "\\d{1,3}(?:[.,]\\d{3})+(?:[.,]\\d{1,2})?|\\d+(?:[.,]\\d+)?";

/** What can be told apart in a text by its shape. `value` is what follows "Label:" up to the next label or the end of the line. */
const SHAPES = {
  email: "(?<![\\w.+-])[\\w.+-]{1,64}@[\\w-]{1,63}(?:\\.[\\w-]{1,63})+",
  url: "\\b(?:https?:\\/\\/|www\\.)\\S*[^\\s.,;:!?)]",
  phone: "(?<![\\w.,-])(?:[+(0]|\\d{3}[-.])[\\d ()./-]{5,20}\\d(?!\\w)",
  date: `(?<![\\w./-])(?:${DATE})(?![\\d/-])`,
  amount: `(?<![\\p{L}\\d.,/#+-])(?:${CURRENCY} ?)?-?(?:${FIGURE})(?: ?${CURRENCY})?(?![\\p{L}\\d%/-]|[.,]\\d| ?%)`,
  code: "(?<![\\p{L}\\d@.,_/+-])(?=[\\p{L}/_-]{0,30}\\d)[\\p{L}\\d]+(?:[-/_][\\p{L}\\d]+)*(?![\\p{L}\\d@]|[.,]\\d)",
  name: "(?<![\\p{L}\\d])\\p{Lu}[\\p{L}'’-]{1,30}(?: \\p{Lu}[\\p{L}'’-]{0,30}){1,3}",
  value: "(?<=:\\s{1,3})\\S.*?(?= {2}|[.;,|] (?:\\p{L}{1,20} ){0,2}\\p{L}{1,20}:|$)",
};
export type Kind = keyof typeof SHAPES;

/** A stretch of text with a shape, and the words that lead up to it in its line or stand in the line above it. */
interface Fact {
  text: string;
  label: ReadonlySet<string>;
}

/** What the first 60,000 characters of a text hold, found on first use: up to 500 facts of a kind. */
export class Facts {
  readonly text: string;
  readonly #found = new Map<Kind, Fact[]>();

  constructor(text: string) {
    this.text = text.slice(0, 60_000);
  }

  /** All facts of a kind, in order. The parts of a date are no numbers. */
  all(kind: Kind): readonly Fact[] {
    const known = this.#found.get(kind);
    if (known) return known;
    const dates = new RegExp(SHAPES.date, "giu");
    const isNumber = /amount|phone|code/.test(kind);
    const text = isNumber ? this.text.replace(dates, (date) => "·".repeat(date.length)) : this.text;
    const matches = text.matchAll(kind === "date" ? dates : new RegExp(SHAPES[kind], "gmu"));
    let end = 0;
    const found = Array.from(matches.take(500), (match): Fact => {
      const before = text.slice(Math.max(end, match.index - 80), match.index);
      end = match.index + match[0].length;
      return { text: match[0], label: label(before) };
    });
    this.#found.set(kind, found);
    return found;
  }

  /** The fact whose label fits what is wanted best, and at least so well. */
  pick(kind: Kind, wanted: ReadonlySet<string>, least: number): string | undefined {
    const scored = this.all(kind).map((fact) => ({ text: fact.text, score: fit(wanted, fact.label) }));
    return scored.reduce((a, b) => (b.score > a.score ? b : a), { text: "", score: least - 1e-9 }).text || undefined;
  }
}

/** The last five words of the line, else those of the line above. "Invoice 4711" names a number without the word. */
function label(before: string): ReadonlySet<string> {
  const lines = before
    .replace(/(invoice|rechnung|order|receipt)\W*$/i, "$1 number")
    .trimEnd()
    .split("\n");
  const parts = lines.at(-1)?.split(/[.!?;]\s+(?=\p{Lu})| {2,}|\t|\|/u) ?? [];
  return new Set([...words(parts.findLast((part) => part.trim()) ?? "")].slice(-5));
}

/** A date in any of the known spellings as YYYY-MM-DD, if the calendar has it. 03/04/2026 is March 4. */
export function isoDate(text: string): string | undefined {
  const { y, m = "", d } = new RegExp(`^(?:${DATE})`, "i").exec(text)?.groups ?? {};
  const month = Number(m) || MONTHS.indexOf(m.slice(0, 3).toLowerCase()) + 1;
  const date = new Date(Date.UTC(Number(y), month - 1, Number(d)));
  return date.getUTCMonth() === month - 1 ? date.toISOString().slice(0, 10) : undefined;
}

/** The value of a number with either decimal sign: 1,234.50 is 1.234,50. */
export function figure(text: string): number | undefined {
  const digits = new RegExp(`-?(?:${FIGURE})`).exec(text)?.[0];
  if (!digits) return undefined;
  const isEnglish = /^-?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?$/.test(digits);
  return Number(isEnglish ? digits.replaceAll(",", "") : digits.replaceAll(".", "").replace(",", "."));
}

/** The ISO 4217 code of the first currency in a text. */
export function currency(text: string): string | undefined {
  const found = new RegExp(CURRENCY).exec(text)?.[0] ?? "";
  return { $: "USD", "€": "EUR", "£": "GBP" }[found] ?? (found || undefined);
}
