const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const MONTH = `(?<m>(?i:${MONTHS.join("|")})[a-z]{0,6})`;
const WRITTEN = `(?<d>\\d\\d?)(?:st|nd|rd|th)? (?:of )?${MONTH},? (?<y>\\d{4})|${MONTH} (?<d>\\d\\d?)(?:st|nd|rd|th)?,? (?<y>\\d{4})`;
const POINTED = "(?<d>\\d\\d?)\\.(?<m>\\d\\d?)\\.(?<y>\\d{4})|(?<m>\\d\\d?)/(?<d>\\d\\d?)/(?<y>\\d{4})";
const DATE = `(?<![\\w./-])(?:(?<y>\\d{4})-(?<m>\\d\\d)-(?<d>\\d\\d)|${POINTED}|${WRITTEN})(?![\\d/-])`;
const EMAIL = "(?<![\\w.+-])[\\w.+-]{1,64}@[\\w-]{1,63}(?:\\.[\\w-]{1,63})+";
const FIGURE = "\\d{1,3}(?:[.,]\\d{3})+(?:[.,]\\d{1,2})?|\\d+(?:[.,]\\d+)?";
const CURRENCY = "(?:[$€£]|\\b(?:USD|EUR|GBP|CHF)\\b)";
const AMOUNT = `(?<![\\p{L}\\d.,/#+-])(?:${CURRENCY} ?)?-?(?:${FIGURE})(?: ?${CURRENCY})?(?![\\p{L}\\d%/-]|[.,]\\d| ?%)`;
const CODE = "(?<![\\p{L}\\d@.,/+-])(?=[\\p{L}/-]{0,30}\\d)[\\p{L}\\d]+(?:[-/][\\p{L}\\d]+)*(?![\\p{L}\\d@]|[.,]\\d)";
const NAME = "(?<![\\p{L}\\d])\\p{Lu}[\\p{L}'’-]{1,30}(?: \\p{Lu}[\\p{L}'’-]{0,30}){1,3}";
const VALUE = "(?<=[:=]\\s{0,3})[^\\s:=].*?(?= {2}|[.;,|] (?:\\p{L}{1,20} ){0,2}\\p{L}{1,20}:|$)";

/** How a value looks whose name has one of these words, and what stands before it where the name says nothing else. */
const KINDS: ReadonlyArray<readonly [names: RegExp, shape: string, labels: string[]]> = [
  [/email/, EMAIL, ["e-?mail"]],
  [/\b(?:dates?|day|deadline)\b/, DATE, ["invoice.?date|issued?|dated", "(?<!due.|delivery.)date|datum"]],
  [/^currency/, CURRENCY, []],
  [/^(?!.*phone).*\b(?:number|no|id|code)\b/, CODE, ["invoice|rechnung", "number|no\\b|nr\\b|#|order"]],
  [/total|amount|price|tax|balance/, AMOUNT, ["amount|price"]],
  [/^names?$|person|people|customer|vendor|company/, NAME, ["name"]],
];
/** Words of names that labels often leave out, and words that labels use instead. */
const COMMON = /\b(?:of|the|date|issue|number|no|id|code|name|amount|email)\b/g;
const SYNONYMS = new Map(Object.entries({ invoice: "invoice|rechnung", due: "due|payable", tax: "tax|vat|mwst" }));
const TOTAL = "(?<!sub.)(?:total|gesamtbetrag|summe|balance|due)";
/** What may stand between a label and its value: the rest of the line up to a number, or of a line that ends there. */
const GAP = "(?:(?:[^\\d\\n¤]|\\d+ ?%){0,30}?|[^\\d\\n¤]{0,15}\\n\\W{0,5})";

export type Subject = ReturnType<typeof subjectOf>;

/** Where to look: the first 20,000 characters of a text, also without its dates, whose parts are no numbers; and values known by name. */
export function subjectOf(whole: string, known: Readonly<Record<string, string | undefined>>) {
  const text = whole.slice(0, 20_000);
  return { path: "", name: "", text, dateless: text.replace(new RegExp(DATE, "gu"), "¤"), known };
}

/** The subject of a property. invoiceNumber, invoice_number and invoice-number have the name "invoice number". */
export function within(subject: Subject, property: string): Subject {
  const spaced = property.slice(0, 60).replace(/(?<=[\p{Ll}\d])(?=\p{Lu})|[_-]+/gu, " ");
  return { ...subject, path: `${subject.path} ${spaced}`.trim().toLowerCase(), name: spaced.toLowerCase() };
}

/** The text of a value of a type ("string", "number", "integer" or "boolean"); empty if there is none. */
export function findText(subject: Subject, type: string): string {
  const { name, known } = subject;
  if (Object.hasOwn(known, name)) return known[name] ?? "";
  if (/^(?!sub|net).*(?:total|balance|amount due)|^amount$/.test(name)) return total(subject);
  const [, shape = VALUE, usual = []] = KINDS.find(([names]) => names.test(name)) ?? [];
  if (type !== "string") return labelled(subject, type === "boolean" ? VALUE : AMOUNT, usual);
  const isPlain = shape === EMAIL || shape === CURRENCY || /^(?:invoice |issue )?(?:date|name)$/.test(name);
  const found = labelled(subject, shape, usual) || (isPlain && findAll(subject, shape)[0]);
  return found || (shape === DATE ? "" : labelled(subject, VALUE));
}

/** What looks so and follows a label with the words of the name; empty if there is nothing. */
function labelled(subject: Subject, shape: string, usual: string[] = []): string {
  const labels = [...new Set([subject.path, subject.name])].flatMap((name) => {
    const words = name.replace(COMMON, "").match(/\p{L}+/gu) ?? [];
    return words.map((word) => `(?:${SYNONYMS.get(word) ?? word})`).join("\\W*") || usual;
  });
  return labels.flatMap((label) => findAll(subject, shape, label))[0] ?? "";
}

/** Up to 200 places that look so and, if there is a label, follow it. */
function findAll({ text, dateless }: Subject, shape: string, label?: string): string[] {
  const before = label ? `(?<!\\p{L})(?i:${label})${GAP}` : "";
  const source = shape === AMOUNT || shape === CODE ? dateless : text;
  const matches = source.matchAll(new RegExp(`${before}(?<found>${shape})`, "gmu")).take(200);
  return matches.toArray().flatMap(({ groups = {} }) => (shape === DATE ? isoDate(groups) : groups.found) ?? []);
}

/** The largest amount that is called total or due, else the largest with a currency or cents; empty if there is none. */
function total(subject: Subject): string {
  const isMoney = (text: string) => /[^\d.,-]|[.,]\d\d$/.test(text);
  const [named, all] = [findAll(subject, AMOUNT, TOTAL), findAll(subject, AMOUNT)];
  const found = [named.filter(isMoney), named, all.filter(isMoney)].find((list) => list.length > 0) ?? [];
  return found.sort((a, b) => (figure(b) ?? 0) - (figure(a) ?? 0))[0] ?? "";
}

/** The texts for a list: all that look so, or the parts of the labelled value. */
export function findList(subject: Subject): string[] {
  const kind = KINDS.find(([names]) => names.test(subject.name));
  return kind ? [...new Set(findAll(subject, kind[1]))] : labelled(subject, VALUE).split(/[,;]\s*|\s+and\s+|\.$/);
}

/** A date as YYYY-MM-DD, if the calendar has it. 03/04/2026 is March 4. */
function isoDate({ y, m = "", d }: Record<string, string>): string | undefined {
  const month = Number(m) || MONTHS.indexOf(m.slice(0, 3).toLowerCase()) + 1;
  const date = new Date(Date.UTC(Number(y), month - 1, Number(d)));
  return date.getUTCMonth() === month - 1 ? date.toISOString().slice(0, 10) : undefined;
}

/** The value of a number with either decimal sign: 1,234.50 is 1.234,50. */
export function figure(text: string): number | undefined {
  const digits = new RegExp(`-?(?:${FIGURE})`).exec(text)?.[0] ?? "";
  const isEnglish = /^-?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?$/.test(digits);
  const plain = isEnglish ? digits.replaceAll(",", "") : digits.replaceAll(".", "").replace(",", ".");
  return plain ? Number(plain) : undefined;
}
