/** What a unit is; 0 for anything else. */
export const SPACE = 1;
export const DIGIT = 2;
/** A letter of a script that separates words. */
export const LETTER = 3;
/** A letter of a script without spaces, or with prefixes: a mark may start in the middle of a word. */
export const RUN = 4;
export const OPERATOR = 5;
/** An operator or another sign with which a mark may start, such as "§" or "∫". */
export const SIGN = 6;

/** Units up to here, which include all of Latin, Greek, Cyrillic, Hebrew and Arabic, are folded. */
const FOLDED = 0x0700;

const folded = new Uint16Array(0x10000);
const classes = new Uint8Array(0x10000);

/**
 * The folded form of a UTF-16 unit of an upper-cased text. Letters lose case and accents, digits of other scripts and
 * full-width signs become ASCII, and the forms of white space, commas and the like become one.
 */
export function fold(unit: number): number {
  return folded[unit] ?? unit;
}

/** The class of a folded unit. */
export function classOf(unit: number): number {
  return classes[unit] ?? 0;
}

/** The folded form of a text, unit by unit. */
export function foldText(text: string): string {
  const upper = text.toUpperCase();
  let all = "";
  for (let at = 0; at < upper.length; at++) all += String.fromCharCode(fold(upper.charCodeAt(at)));
  return all;
}

/** Units by the folded form that they share, where neither case nor accents relate them. */
const FORMS: Readonly<Record<string, string>> = {
  " ": "\n\t\r\u00a0\u3000",
  "'": "\u2019\u2018",
  ",": "，、،",
  ".": "。",
  ";": "；",
  ":": "：",
  "?": "？؟՞፧",
  "!": "！",
  "(": "（",
  ")": "）",
  "-": "−",
  // Spellings of Arabic letters that texts mix.
  ي: "ى",
  ه: "ة",
  ا: "ٱ",
};
const OPERATORS = "=^<>+*/\\×÷±·π≤≥≠∞∂∇∈";
const SIGNS = "√∑∫§#`";
/** First and last unit of scripts without spaces, or with prefixes: Arabic, Thai, Lao, Burmese, Khmer, kana, Han. */
const RUNS = [
  "\u0620\u064a",
  "\u0e01\u0e4e",
  "\u0e81\u0ecd",
  "\u1000\u103f",
  "\u1780\u17d3",
  "\u3041\u30ff",
  "\u3400\u9fff",
];

for (let unit = 0; unit < folded.length; unit++) folded[unit] = unit;
for (let unit = 0; unit < FOLDED; unit++) {
  const base = String.fromCharCode(unit).normalize("NFKD").charAt(0).toLowerCase();
  if (base.length === 1) folded[unit] = base.charCodeAt(0);
}
// Full-width forms of ASCII.
for (let unit = 0xff01; unit <= 0xff5e; unit++)
  folded[unit] = String.fromCharCode(unit - 0xfee0)
    .toLowerCase()
    .charCodeAt(0);
// Each script has its ten digits in a row.
for (let unit = 0x0660, digit = 0; unit < 0x2000; unit++) {
  if (!/\p{Nd}/u.test(String.fromCharCode(unit))) continue;
  folded[unit] = 48 + digit;
  digit = (digit + 1) % 10;
}
for (const [form, same] of Object.entries(FORMS))
  for (const unit of same) folded[unit.charCodeAt(0)] = form.charCodeAt(0);

for (let unit = 0x61; unit < 0x2000; unit++) {
  // The vowel signs of Indian scripts are marks.
  const letters = unit < 0x0900 ? /\p{L}/u : /[\p{L}\p{M}]/u;
  if (unit < 0x7b || (unit >= 0xaa && letters.test(String.fromCharCode(unit)))) classes[unit] = LETTER;
}
for (let unit = 0xac00; unit <= 0xd7a3; unit++) classes[unit] = LETTER;
for (let unit = 0x30; unit <= 0x39; unit++) classes[unit] = DIGIT;
for (const range of RUNS) for (let unit = range.charCodeAt(0); unit <= range.charCodeAt(1); unit++) classes[unit] = RUN;
for (const operator of OPERATORS) classes[operator.charCodeAt(0)] = OPERATOR;
for (const sign of SIGNS) classes[sign.charCodeAt(0)] = SIGN;
classes[0x20] = SPACE;
classes[0x5f] = LETTER;
