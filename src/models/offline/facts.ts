import { fit, words } from "./labels.ts";
import { type Sentence, sentences } from "./language.ts";

const MONTHS = "jan,feb|f[eé]v,m[aä]r,apr|avr,may|mai,jun|juin,jul|juil,aug|ao[uû],sep,o[ck]t,nov,d[eé][cz]".split(",");
const MONTH = `(?<m>(?:${MONTHS.join("|")})\\p{L}{0,9})\\.?`;
/** 03/04/2026 is March 4; 14/03/2026 can only be March 14. */
const DATE =
  "(?<y>\\d{4})(?<s>[-/.])(?<m>\\d\\d?)\\k<s>(?<d>\\d\\d?)|(?<d>\\d\\d?)\\.(?<m>\\d\\d?)\\.(?<y>\\d{4})|" +
  "(?<d>1[3-9]|2\\d|3[01])/(?<m>\\d\\d?)/(?<y>\\d{4})|(?<m>\\d\\d?)/(?<d>\\d\\d?)/(?<y>\\d{4})|" +
  `(?<d>\\d\\d?)(?:st|nd|rd|th|er|\\.)?[ -](?:of )?${MONTH},?[ -](?<y>\\d{4})|${MONTH} (?<d>\\d\\d?)(?:st|nd|rd|th)?,? (?<y>\\d{4})`;
const CURRENCIES: Readonly<Record<string, string>> = { $: "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR" };
const CURRENCY = "(?:[$€£¥₹]|\\b(?:USD|EUR|GBP|CHF|JPY|CAD|AUD|INR|CNY|SEK|NOK|DKK|PLN)\\b)";
const FIGURE = "\\d{1,3}(?:[.,'’\\u00a0\\u202f]\\d{3})+(?:[.,]\\d{1,2})?|\\d{1,3}(?: \\d{3})+,\\d\\d|\\d+(?:[.,]\\d+)?";
const FORMS =
  "Inc|Ltd|LLC|LLP|GmbH|AG|KG|SE|Corp|Corporation|SA|SAS|SARL|BV|PLC|University|Bank|Company|Group|Foundation";
const NAME = `(?!(?:Invoice|Date|Total|Due|Bill|Order|Number|Street|Road|Payment|Tax|Amount|The|This|Dear|Unit|Price|${FORMS})\\b)\\p{Lu}[\\p{L}'’-]{1,30}`;

/** What can be told apart in a text by its shape. `value` is what follows "Label:" or, where nothing does, the next line. */
const SHAPES = {
  email: "(?<![\\w.+-])[\\w.+-]{1,64}@[\\p{L}\\d-]{1,63}(?:\\.[\\p{L}\\d-]{1,63})+",
  url: "\\b(?:https?:\\/\\/|www\\.)[^\\s<>\"']*[^\\s<>\"'.,;:!?)\\]]",
  phone: "(?<![\\w.,-])(?:\\+\\d|\\(?0\\d|\\(\\d{3}\\)|\\d{3}[-. ]\\d{3}[-. ])[\\d ()/.-]{3,18}\\d(?![\\w-])",
  date: `(?<![\\w.,/-])(?:${DATE})(?![\\d/-])`,
  amount: `(?<![\\p{L}\\d.,/#+-])(?:${CURRENCY} ?)?-?(?:${FIGURE})(?: ?${CURRENCY})?(?![\\p{L}\\d%/-]|[.,]\\d| ?%)`,
  price: `(?<![\\p{L}\\d.,/#+-])(?:${CURRENCY} ?-?(?:${FIGURE})|(?:${FIGURE}) ?${CURRENCY}|\\d[\\d.,'’]*[.,]\\d\\d)(?![\\p{L}\\d%/-]|[.,]\\d| ?%)`,
  number: `(?<![\\p{L}\\d.,]|\\p{L}-)-?(?:${FIGURE})(?!\\d)`,
  code: "(?<![\\p{L}\\d@._/+-])(?=[\\p{L}/_-]{0,30}\\d)[\\p{L}\\d]+(?:[-/_.][\\p{L}\\d]+)*(?![\\p{L}\\d@])",
  person: `(?<![\\p{L}\\d])${NAME}(?: \\p{Lu}\\.| de| van| von| der| la){0,2}(?: ${NAME}){1,2}(?![\\p{L}\\d@]| (?:${FORMS})\\b)`,
  company: `(?<![\\p{L}\\d])(?:[\\p{Lu}\\d&][\\p{L}\\d&.'’-]{0,30},? ){1,4}(?:${FORMS})\\b\\.?|\\bUniversity of ${NAME}`,
  place: `(?<=\\b(?:in|at|from|to|near|à) )${NAME}(?:[ -]${NAME}){0,2}`,
  value: "(?<=: +|[=|] *|:\\n)(?![-*•] |\\d+[.)] )(?:[^\\s|]| (?!  |(?:\\p{L}+ ){0,2}\\p{L}+:(?:\\s|$)))+",
  point: "(?<=^[ \\t]*(?:[-*•]|\\d+[.)])[ \\t]+)\\S.*$",
};
export type Kind = keyof typeof SHAPES;

/** A stretch of text with a shape, and the words that lead up to it in its line or stand in the line above it. */
interface Fact {
  text: string;
  label: string[];
}

/** What a text holds, found on first use: its sentences, and of its first 60,000 characters up to 500 facts of a kind. */
export class Facts {
  readonly text: string;
  readonly #found = new Map<Kind, Fact[]>();
  #sentences: Sentence[] | undefined;

  constructor(text: string) {
    this.text = text;
  }

  get sentences(): readonly Sentence[] {
    this.#sentences ??= sentences(this.text);
    return this.#sentences;
  }

  /** All facts of a kind, in order. The parts of a date are no amounts. */
  all(kind: Kind): Fact[] {
    const known = this.#found.get(kind);
    if (known) return known;
    const dates = new RegExp(SHAPES.date, "giu");
    const start = this.text.slice(0, 60_000);
    const masks = /amount|price|number|phone/.test(kind);
    const text = masks ? start.replace(dates, (date) => "·".repeat(date.length)) : start;
    const matches = [...text.matchAll(kind === "date" ? dates : new RegExp(SHAPES[kind], "gmu"))].slice(0, 500);
    const found = matches.map((match, i) => {
      const last = matches[i - 1];
      const from = Math.max(match.index - 80, last ? last.index + last[0].length : 0);
      const after = kind === "number" ? text.slice(match.index + match[0].length).slice(0, 40) : "";
      return { text: match[0].trim(), label: label(text.slice(from, match.index), after) };
    });
    this.#found.set(kind, found);
    return found;
  }

  /** The fact whose label fits what is wanted best, and at least so well. */
  pick(kind: Kind, wanted: readonly string[], least: number): string | undefined {
    const scored = this.all(kind).map((fact) => ({ text: fact.text, score: fit(wanted, fact.label) }));
    return scored.reduce((a, b) => (b.score > a.score ? b : a), { text: "", score: least - 1e-9 }).text || undefined;
  }
}

function label(before: string, after: string): string[] {
  const parts = before.slice(before.lastIndexOf("\n") + 1).split(/[.!?;]\s+(?=\p{Lu})| {2,}(?=\S)|\t|\|/u);
  const follows = /^ ?[\p{L}-]+ ?[\p{L}-]*/u.exec(after)?.[0] ?? "";
  const near = [...words(parts.findLast((part) => part.trim()) ?? "").slice(-5), ...words(follows)];
  return near.length > 0 ? near : words(before.trimEnd().split("\n").at(-1) ?? "");
}

/** A date in any of the usual spellings as YYYY-MM-DD, if the calendar has it. */
export function isoDate(text: string): string | undefined {
  const { y = "", m = "", d = "" } = new RegExp(`^(?:${DATE})`, "iu").exec(text)?.groups ?? {};
  const month = Number(m) || MONTHS.findIndex((name) => new RegExp(`^(?:${name})`, "i").test(m)) + 1;
  const date = new Date(Date.UTC(Number(y), month - 1, Number(d))).toISOString().slice(0, 10);
  return Number(date.slice(5, 7)) === month && Number(date.slice(8)) === Number(d) ? date : undefined;
}

/** The value of a number with either decimal sign: 1,234.50 is 1.234,50. Three digits after a lone point are decimals unless it is money. */
export function figure(text: string): number | undefined {
  const digits = new RegExp(`-?(?:${FIGURE})`, "u").exec(text)?.[0].replace(/[\s'’]/g, "");
  if (!digits) return undefined;
  const sign = currency(text) ? /[.,](?!\d{3}$)(?=\d+$)/ : /[.,](?!\d{3}$)(?=\d+$)|(?<=^-?\d+)\.(?=\d+$)/;
  const point = sign.exec(digits)?.index ?? digits.length;
  return Number(`${digits.slice(0, point).replace(/[.,]/g, "")}.${digits.slice(point + 1)}`);
}

/** The ISO 4217 code of the first currency in a text. */
export function currency(text: string): string | undefined {
  const found = new RegExp(CURRENCY, "u").exec(text)?.[0];
  return found && (CURRENCIES[found] ?? found);
}
