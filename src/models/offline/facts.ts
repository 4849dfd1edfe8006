import { type Sentence, sentences } from "./language.ts";

/** Words for one thing on forms, in English, German and French; the first of a group stands for all of it. */
const GROUPS =
  "number no nr num nummer numéro #,email mail courriel,date datum dated issued,invoice rechnung facture,order bestellung commande," +
  "total gesamt summe,subtotal zwischensumme,amount betrag montant,price preis prix cost,quantity qty menge anzahl quantité,name nom," +
  "description item product article artikel bezeichnung,tax vat mwst ust tva,due fällig fälligkeits échéance payable,phone tel telefon," +
  "customer client kunde bill buyer,vendor supplier seller lieferant fournisseur,company organisation organization firma employer";
const SAME = new Map(
  GROUPS.split(",").flatMap((group) => group.split(" ").map((word, _, [first = ""]) => [word, first])),
);
const GLUE = new Set(
  "the a an of for to in on at and or by is are was be has have with this that it as from your our e".split(" "),
);
/** Words that many labels share: they tell little about which value is meant. */
const COMMON = new Set(["date", "number", "amount", "name", "id", "code", "value", "email", "phone", "address"]);

/** Reads a property name, a label or a description as lower-case words, one word for each thing. */
export function words(text: string): string[] {
  const spaced = /\s/.test(text.trim()) ? text : text.replace(/(?<=[\p{Ll}\d])(?=\p{Lu})|_/gu, " ");
  // German writes "Rechnungsnummer" for "invoice number".
  const parts = spaced.toLowerCase().replace(/(?<=\p{L}{4})s?(?=(?:nummer|datum|betrag|preis)(?!\p{L}))/gu, " ");
  return (parts.match(/\p{L}+|#/gu) ?? []).filter((word) => !GLUE.has(word)).map((word) => SAME.get(word) ?? word);
}

/** Whether two words are equal or begin with the same four to six letters, as "employees" and "employs". */
export function alike(a: string, b: string): boolean {
  const length = Math.min(a.length, b.length, 6);
  return a === b || (length >= 4 && a.slice(0, length) === b.slice(0, length));
}

/** How well a label names what is wanted, from 0 to 1: the share of the wanted words in it, less a part for what else it says. */
function fit(wanted: readonly string[], label: readonly string[]): number {
  const weigh = (list: readonly string[]) => list.reduce((sum, word) => sum + (COMMON.has(word) ? 0.5 : 1), 0);
  const hits = weigh(wanted.filter((word) => label.some((other) => alike(word, other))));
  return hits === 0 ? 0 : (hits / weigh(wanted)) * (0.75 + 0.25 * Math.min(1, hits / weigh(label)));
}

const MONTHS = "jan,feb|f[eé]v,m[aä]r,apr|avr,may|mai,jun|juin,jul|juil,aug|ao[uû],sep,o[ck]t,nov,d[eé][cz]".split(",");
const MONTH = `(?<m>(?:${MONTHS.join("|")})\\p{L}{0,9})\\.?`;
const DATE =
  "(?<y>\\d{4})(?<s>[-/.])(?<m>\\d\\d?)\\k<s>(?<d>\\d\\d?)|(?<d>\\d\\d?)\\.(?<m>\\d\\d?)\\.(?<y>\\d{4})|(?<m>\\d\\d?)/(?<d>\\d\\d?)/(?<y>\\d{4})|" +
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
  number: `(?<![\\p{L}\\d.,]|\\p{L}-)-?(?:${FIGURE})(?!\\d)`,
  code: "(?<![\\p{L}\\d@._/+-])(?=[\\p{L}/_-]{0,30}\\d)[\\p{L}\\d]+(?:[-/_.][\\p{L}\\d]+)*(?![\\p{L}\\d@])",
  person: `(?<![\\p{L}\\d])${NAME}(?: \\p{Lu}\\.| de| van| von| der| la){0,2}(?: ${NAME}){1,2}(?![\\p{L}\\d@]| (?:${FORMS})\\b)`,
  company: `(?<![\\p{L}\\d])(?:[\\p{Lu}\\d&][\\p{L}\\d&.'’-]{0,30},? ){1,4}(?:${FORMS})\\b\\.?|\\bUniversity of ${NAME}`,
  place: `(?<=\\b(?:in|at|from|to|near|à) )${NAME}(?:[ -]${NAME}){0,2}`,
  value: "(?<=: +|[=|] *|:\\n)(?:[^\\s|]| (?!  ))+",
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

  get sentences(): Sentence[] {
    this.#sentences ??= sentences(this.text);
    return this.#sentences;
  }

  /** All facts of a kind, in order. */
  all(kind: Kind): Fact[] {
    const found = this.#found.get(kind) ?? [];
    if (this.#found.has(kind)) return found;
    this.#found.set(kind, found);
    const dates = new RegExp(SHAPES.date, "giu");
    // The parts of a date are no amounts.
    const text = /amount|number|phone/.test(kind)
      ? this.text.replace(dates, (date) => "·".repeat(date.length))
      : this.text;
    let end = 0;
    for (const match of text.matchAll(kind === "date" ? dates : new RegExp(SHAPES[kind], "gu"))) {
      const before = text.slice(Math.max(end, match.index - 80), match.index);
      end = match.index + match[0].length;
      const after = kind === "number" ? (/^ ?[\p{L}-]+ ?[\p{L}-]*/u.exec(text.slice(end, end + 40))?.[0] ?? "") : "";
      if (found.length < 500 && (kind !== "date" || isoDate(match[0])))
        found.push({ text: match[0].trim(), label: label(before, after) });
    }
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
  const near = [...words(parts.findLast((part) => part.trim()) ?? "").slice(-5), ...words(after)];
  return near.length > 0 ? near : words(before.trimEnd().split("\n").at(-1) ?? "");
}

/** A date in any of the usual spellings as YYYY-MM-DD, if the calendar has it. 03/04/2026 is read as March 4. */
export function isoDate(text: string): string | undefined {
  const { y = "", m = "", d = "" } = new RegExp(`^(?:${DATE})`, "iu").exec(text)?.groups ?? {};
  const month = Number(m) || MONTHS.findIndex((name) => new RegExp(`^(?:${name})`, "i").test(m)) + 1;
  const [realMonth, day] = month > 12 ? [Number(d), month] : [month, Number(d)];
  const date = new Date(Date.UTC(Number(y), realMonth - 1, day));
  return y && date.getUTCMonth() === realMonth - 1 && date.getUTCDate() === day
    ? date.toISOString().slice(0, 10)
    : undefined;
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
