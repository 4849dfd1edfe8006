const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const MONTH = `(?<m>(?:${MONTHS.join("|")})[a-z]{0,6})`;
const DAY = "(?<d>\\d\\d?)(?:st|nd|rd|th)?";
const WRITTEN = `${DAY} (?:of )?${MONTH},? (?<y>\\d{4})|${MONTH} ${DAY},? (?<y>\\d{4})`;
const POINTED = "(?<d>\\d\\d?)\\.(?<m>\\d\\d?)\\.(?<y>\\d{4})|(?<m>\\d\\d?)/(?<d>\\d\\d?)/(?<y>\\d{4})";
// With a flag, because V8 13.6 may ignore the `i` of (?i:…).
const DATE = new RegExp(
  `(?<![\\w./-])(?:(?<y>\\d{4})-(?<m>\\d\\d)-(?<d>\\d\\d)|${POINTED}|${WRITTEN})(?![\\d/-])`,
  "giu",
);
const EMAIL = /(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+/gu;
const FIGURE = "\\d{1,3}(?:[.,]\\d{3})+(?:[.,]\\d{1,2})?|\\d+(?:[.,]\\d+)?";
const CURRENCY = "(?:[$€£]|\\b(?:USD|EUR|GBP|CHF)\\b)";
const MONEY = `(?:${CURRENCY} ?)?-?(?:${FIGURE})(?: ?${CURRENCY})?`;
const AMOUNT = new RegExp(`(?<![\\p{L}\\d.,/#+-])${MONEY}(?![\\p{L}\\d%/-]|[.,]\\d| ?%)`, "gu");
const CODE = /(?<![\p{L}\d@.,/+-])(?=[\p{L}/-]{0,30}\d)[\p{L}\d]+(?:[-/][\p{L}\d]+)*(?![\p{L}\d@]|[.,]\d)/gu;
const AGE = /(?<![\d.,])\d{1,3}(?=[ -]years?[ -]old\b)/gu;
const WORD = "\\p{Lu}[\\p{L}'’-]{1,30}";
const START = "(?<![\\p{L}\\d])";
/** Several words, or one word beside a label or an age. */
const NAME = new RegExp(
  `${START}${WORD}(?: \\p{Lu}[\\p{L}'’-]{0,30}){1,3}|(?<=\\b(?:(?:[Nn]ame|NAME)(?: is|:|d)|[Cc]alled) )${WORD}|` +
    `${START}${WORD}(?=(?: is| was|,) ${AGE.source})`,
  "gu",
);
/** A value after a colon, up to the next label in its line. */
const VALUE = /(?<=[:=]\s{0,3})[^\s:=](?:(?! {2}|[.;,|] (?:\p{L}{1,20} ){0,2}\p{L}{1,20}:).){0,300}/gu;

/** Patterns of values by words in their names, and the labels to look for when the name has no other word. */
const KINDS: ReadonlyArray<readonly [names: RegExp, shape: RegExp, labels: string[]]> = [
  [/email/, EMAIL, []],
  [/\b(?:dates?|day|deadline)\b/, DATE, ["invoice date", "issue", "dated", "date"]],
  [/^currency/, new RegExp(CURRENCY, "gu"), []],
  [/^(?!.*phone).*\b(?:number|id|code)\b/, CODE, ["invoice", "number", "order"]],
  [/total|amount|price|tax|balance/, AMOUNT, []],
  [/^age$/, AGE, []],
  [/^names?$|person|people|customer|vendor|company/, NAME, ["name"]],
];
const COMMON = /\b(?:of|the|date|issue|number|id|code|name|amount|email)\b/g;
/** Other words for the same thing, in labels and names. */
const SYNONYMS = { rechnung: "invoice", payable: "due", vat: "tax", mwst: "tax", no: "number", nr: "number" };
const SYNONYM = new RegExp(`\\b(?:${Object.keys(SYNONYMS).join("|")})\\b`, "g");

interface Found {
  value: string;
  /** The words before the value, each after a space. */
  label: string;
}

export type Subject = ReturnType<typeof subjectOf>;

/**
 * Makes a subject to search: a text, the values found in it by shape, and the path and the name of a property.
 * @param known values by name; they are not searched for
 */
export function subjectOf(text: string, known: Readonly<Record<string, string | undefined>>) {
  const found = new Map<RegExp, Found[]>();
  // Parts of a date are not numbers.
  const dateless = text.replace(DATE, "¤");
  const all = (shape: RegExp): Found[] => {
    const list = found.get(shape) ?? search(shape === AMOUNT || shape === CODE ? dateless : text, shape);
    found.set(shape, list);
    return list;
  };
  return { path: "", name: "", text, known, all };
}

/** Makes the subject of a property. The name of invoiceNumber, invoice_no and invoice-number is "invoice number". */
export function within(subject: Subject, property: string): Subject {
  const name = words(property.slice(0, 60).replace(/(?<=[\p{Ll}\d])(?=\p{Lu})/gu, " "));
  return { ...subject, path: `${subject.path} ${name}`.trim(), name };
}

function words(text: string): string {
  const plain = text.toLowerCase().replace(/[^\p{L}\d]+/gu, " ");
  return plain.replace(SYNONYM, (word) => SYNONYMS[word as keyof typeof SYNONYMS]).trim();
}

/** Finds the first 200 values that have the shape. */
function search(text: string, shape: RegExp): Found[] {
  const matches = text.matchAll(shape).take(200).toArray();
  return matches.flatMap(({ 0: value, index, groups }) => {
    const before = index > 50 ? text.slice(index - 50, index).replace(/^\p{L}+/u, "") : text.slice(0, index);
    const line = before.split("\n").findLast((line) => /[\p{L}\d]/u.test(line)) ?? "";
    const label = words(line.split(/\d+(?! ?%|\d)|¤/).at(-1) ?? "").replace(/\b(due|delivery) date\b/, "$1");
    const found = shape === DATE ? isoDate(groups ?? {}) : value;
    return found === undefined ? [] : { value: found, label: ` ${label}` };
  });
}

/** Finds the text of a value of type "string", "number", "integer" or "boolean"; empty if there is none. */
export function findText(subject: Subject, type: string): string {
  const { name, known, all } = subject;
  if (Object.hasOwn(known, name)) return known[name] ?? "";
  if (/^(?!sub|net).*(?:total|balance|amount due)|^amount$/.test(name)) return total(all(AMOUNT));
  const [, shape = VALUE, usual = []] = KINDS.find(([names]) => names.test(name)) ?? [];
  if (shape === AGE) return all(AGE)[0]?.value ?? labelled(subject, AMOUNT);
  if (type !== "string") return labelled(subject, type === "boolean" ? VALUE : AMOUNT, usual);
  const needsNoLabel = /email|^currency|^(?:invoice |issue )?(?:date|name)$/.test(name);
  const found = labelled(subject, shape, usual) || (needsNoLabel && all(shape)[0]?.value);
  return found || (shape === DATE || shape === VALUE ? "" : labelled(subject, VALUE));
}

/** Finds the texts for a list: all values that have the shape, or the parts of the labelled value. */
export function findList(subject: Subject): string[] {
  const [, shape] = KINDS.find(([names]) => names.test(subject.name)) ?? [];
  if (shape) return [...new Set(subject.all(shape).map(({ value }) => value))];
  return labelled(subject, VALUE).split(/[,;]\s*|\s+and\s+|\.$/);
}

/** Finds a value whose label has the words of the path or of the name; empty if there is none. */
function labelled({ path, name, all }: Subject, shape: RegExp, usual: readonly string[] = []): string {
  const labels = [...new Set([path, name])].flatMap((name) => words(name.replace(COMMON, "")) || usual);
  for (const words of labels) {
    const start = ` ${words}`;
    const found = all(shape).find(({ label }) => label.includes(start));
    if (found) return found.value;
  }
  return "";
}

/** The largest amount labelled total or due, else the largest with a currency or cents; empty if there is none. */
function total(all: readonly Found[]): string {
  const isMoney = ({ value }: Found) => /[^\d.,-]|[.,]\d\d$/.test(value);
  const named = all.filter(({ label }) => /(?<! sub) (?:total|gesamtbetrag|summe|balance|due)/.test(label));
  const found = [named.filter(isMoney), named, all.filter(isMoney)].find((list) => list.length > 0) ?? [];
  return found.map(({ value }) => value).sort((a, b) => (figure(b) ?? 0) - (figure(a) ?? 0))[0] ?? "";
}

/** Formats a date as YYYY-MM-DD; undefined if it does not exist. 03/04/2026 is March 4. */
function isoDate({ y, m = "", d }: Record<string, string>): string | undefined {
  const month = Number(m) || MONTHS.indexOf(m.slice(0, 3).toLowerCase()) + 1;
  const date = new Date(Date.UTC(Number(y), month - 1, Number(d)));
  return date.getUTCMonth() === month - 1 ? date.toISOString().slice(0, 10) : undefined;
}

/** Parses a number with a decimal point or comma: 1,234.50 equals 1.234,50. */
export function figure(text: string): number | undefined {
  const digits = new RegExp(`-?(?:${FIGURE})`).exec(text)?.[0] ?? "";
  const isEnglish = /^-?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?$/.test(digits);
  const normalized = isEnglish ? digits.replaceAll(",", "") : digits.replaceAll(".", "").replace(",", ".");
  return normalized ? Number(normalized) : undefined;
}
