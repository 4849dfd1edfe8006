const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const MONTH = `(?<m>(?:${anyCase(MONTHS.join("|"))})[a-z]{0,6})`;
const DAY = "(?<d>\\d\\d?)(?:st|nd|rd|th)?";
const WRITTEN = `${DAY} (?:of )?${MONTH},? (?<y>\\d{4})|${MONTH} ${DAY},? (?<y>\\d{4})`;
const POINTED = "(?<d>\\d\\d?)\\.(?<m>\\d\\d?)\\.(?<y>\\d{4})|(?<m>\\d\\d?)/(?<d>\\d\\d?)/(?<y>\\d{4})";
const DATE = `(?<![\\w./-])(?:(?<y>\\d{4})-(?<m>\\d\\d)-(?<d>\\d\\d)|${POINTED}|${WRITTEN})(?![\\d/-])`;
const EMAIL = "(?<![\\w.+-])[\\w.+-]{1,64}@[\\w-]{1,63}(?:\\.[\\w-]{1,63})+";
const FIGURE = "\\d{1,3}(?:[.,]\\d{3})+(?:[.,]\\d{1,2})?|\\d+(?:[.,]\\d+)?";
const CURRENCY = "(?:[$€£]|\\b(?:USD|EUR|GBP|CHF)\\b)";
const MONEY = `(?:${CURRENCY} ?)?-?(?:${FIGURE})(?: ?${CURRENCY})?`;
const AMOUNT = `(?<![\\p{L}\\d.,/#+-])${MONEY}(?![\\p{L}\\d%/-]|[.,]\\d| ?%)`;
const CODE = "(?<![\\p{L}\\d@.,/+-])(?=[\\p{L}/-]{0,30}\\d)[\\p{L}\\d]+(?:[-/][\\p{L}\\d]+)*(?![\\p{L}\\d@]|[.,]\\d)";
const AGE = "(?<![\\d.,])\\d{1,3}(?=[ -]years?[ -]old\\b)";
const WORD = "\\p{Lu}[\\p{L}'’-]{1,30}";
const START = "(?<![\\p{L}\\d])";
const WORDS = `${START}${WORD}(?: \\p{Lu}[\\p{L}'’-]{0,30}){1,3}`;
const NAMED = anyCase("name is|name:|named|called");
/** A single word is a name only beside a label or an age. */
const NAME = `${WORDS}|(?<=\\b(?:${NAMED}) )${WORD}|${START}${WORD}(?=(?: is| was|,) ${AGE})`;
const VALUE = "(?<=[:=]\\s{0,3})[^\\s:=].*?(?= {2}|[.;,|] (?:\\p{L}{1,20} ){0,2}\\p{L}{1,20}:|$)";

/** Patterns of values by words in their names, and the labels to look for when the name has no other word. */
const KINDS: ReadonlyArray<readonly [names: RegExp, shape: string, labels: string[]]> = [
  [/email/, EMAIL, ["e-?mail"]],
  [/\b(?:dates?|day|deadline)\b/, DATE, ["invoice.?date|issued?|dated", "(?<!due.|delivery.)date|datum"]],
  [/^currency/, CURRENCY, []],
  [/^(?!.*phone).*\b(?:number|no|id|code)\b/, CODE, ["invoice|rechnung", "number|no\\b|nr\\b|#|order"]],
  [/total|amount|price|tax|balance/, AMOUNT, ["amount|price"]],
  [/^age$/, AGE, []],
  [/^names?$|person|people|customer|vendor|company/, NAME, ["name"]],
];
/** Words of names that labels often omit. */
const COMMON = /\b(?:of|the|date|issue|number|no|id|code|name|amount|email)\b/g;
/** Words that labels use instead. */
const SYNONYMS = new Map(Object.entries({ invoice: "invoice|rechnung", due: "due|payable", tax: "tax|vat|mwst" }));
const TOTAL = "(?<!sub.)(?:total|gesamtbetrag|summe|balance|due)";
/**
 * Text between a label and its value: up to a number on the same line, or a short rest of the line and a line break.
 */
const GAP = "(?:(?:[^\\d\\n¤]|\\d+ ?%){0,30}?|[^\\d\\n¤]{0,15}\\n\\W{0,5})";

export type Subject = ReturnType<typeof subjectOf>;

/**
 * Makes a subject to search: the first 20,000 characters of a text, and a copy without dates, because their parts are
 * not numbers.
 * @param known values by name; they are not searched for
 */
export function subjectOf(whole: string, known: Readonly<Record<string, string | undefined>>) {
  const text = whole.slice(0, 20_000);
  return { path: "", name: "", text, dateless: text.replace(new RegExp(DATE, "gu"), "¤"), known };
}

/**
 * Makes the subject of a property. The name of invoiceNumber, invoice_number and invoice-number is "invoice number".
 */
export function within(subject: Subject, property: string): Subject {
  const spaced = property.slice(0, 60).replace(/(?<=[\p{Ll}\d])(?=\p{Lu})|[_-]+/gu, " ");
  return { ...subject, path: `${subject.path} ${spaced}`.trim().toLowerCase(), name: spaced.toLowerCase() };
}

/** Finds the text of a value of type "string", "number", "integer" or "boolean"; empty if there is none. */
export function findText(subject: Subject, type: string): string {
  const { name, known } = subject;
  if (Object.hasOwn(known, name)) return known[name] ?? "";
  if (/^(?!sub|net).*(?:total|balance|amount due)|^amount$/.test(name)) return total(subject);
  const [, shape = VALUE, usual = []] = KINDS.find(([names]) => names.test(name)) ?? [];
  if (shape === AGE) return findAll(subject, AGE)[0] ?? labelled(subject, AMOUNT);
  if (type !== "string") return labelled(subject, type === "boolean" ? VALUE : AMOUNT, usual);
  const needsNoLabel = shape === EMAIL || shape === CURRENCY || /^(?:invoice |issue )?(?:date|name)$/.test(name);
  const found = labelled(subject, shape, usual) || (needsNoLabel && findAll(subject, shape)[0]);
  return found || (shape === DATE ? "" : labelled(subject, VALUE));
}

/** Finds a value that has the shape and follows a label with the words of the name; empty if there is none. */
function labelled(subject: Subject, shape: string, usual: string[] = []): string {
  const labels = [...new Set([subject.path, subject.name])].flatMap((name) => {
    const words = name.replace(COMMON, "").match(/\p{L}+/gu) ?? [];
    return words.map((word) => `(?:${SYNONYMS.get(word) ?? word})`).join("\\W*") || usual;
  });
  return labels.flatMap((label) => findAll(subject, shape, label))[0] ?? "";
}

/** Finds up to 200 values that have the shape and, if a label is given, follow it. */
function findAll({ text, dateless }: Subject, shape: string, label?: string): string[] {
  const before = label ? `(?<!\\p{L})(?:${anyCase(label)})${GAP}` : "";
  const source = shape === AMOUNT || shape === CODE ? dateless : text;
  const matches = source.matchAll(new RegExp(`${before}(?<found>${shape})`, "gmu")).take(200);
  return matches.toArray().flatMap(({ groups = {} }) => (shape === DATE ? isoDate(groups) : groups.found) ?? []);
}

/**
 * Finds the largest amount labelled total or due, else the largest with a currency or cents; empty if there is none.
 */
function total(subject: Subject): string {
  const isMoney = (text: string) => /[^\d.,-]|[.,]\d\d$/.test(text);
  const [named, all] = [findAll(subject, AMOUNT, TOTAL), findAll(subject, AMOUNT)];
  const found = [named.filter(isMoney), named, all.filter(isMoney)].find((list) => list.length > 0) ?? [];
  return found.sort((a, b) => (figure(b) ?? 0) - (figure(a) ?? 0))[0] ?? "";
}

/** Finds the texts for a list: all values that have the shape, or the parts of the labelled value. */
export function findList(subject: Subject): string[] {
  const kind = KINDS.find(([names]) => names.test(subject.name));
  return kind ? [...new Set(findAll(subject, kind[1]))] : labelled(subject, VALUE).split(/[,;]\s*|\s+and\s+|\.$/);
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

/**
 * Makes a pattern match its letters in lower and upper case. `(?i:a|b)` does not do that in V8 13.6 as soon as the
 * process has compiled 1 MB of patterns and has 16 MB of code.
 */
function anyCase(pattern: string): string {
  const letter = /\\.|\p{L}/gu;
  return pattern.replace(letter, (found) =>
    found.startsWith("\\") ? found : `[${found.toLowerCase()}${found.toUpperCase()}]`,
  );
}
