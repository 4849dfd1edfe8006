import type { Tier } from "../../config.ts";
import { answer } from "./answer.ts";
import { calculate } from "./arithmetic.ts";
import { currency, type Facts, figure, isoDate, type Kind } from "./facts.ts";
import { mood, sentences } from "./language.ts";
import type { Reading } from "./read.ts";
import { summarise } from "./summarise.ts";

/** A value to be found, and where to look. */
export interface Subject {
  /** Its name with those of the objects around it, its own name, its description. */
  names: readonly [full: readonly string[], own: readonly string[], note: readonly string[]];
  facts: Facts;
  reading: Reading;
  tier: Tier;
  /** Values that the answer may still hold, work that may still be spent on finding them, and how many were found. */
  tally: { left: number; effort: number; found: number };
}

type Rule = readonly [names: RegExp, find: (subject: Subject) => string | undefined, kind?: Kind];

/** How to find what a name means, the surer first. Names are in the words of `words()`: "no" and "#" are "number". */
const RULES: readonly Rule[] = [
  [/\bemail/, (s) => seek(s, "email", 0), "email"],
  [/\b(?:phone|telephone|mobile|fax)/, (s) => seek(s, "phone", 0), "phone"],
  [/\b(?:url|web|website|link|homepage)/, (s) => seek(s, "url", 0), "url"],
  [/\bcurrency/, (s) => currency(s.facts.text)],
  [/\b(?:due|start|end|birth|delivery|payment) date|\bdeadline|\bbirthday/, (s) => dated(s, 0.5), "date"],
  [/\b(?:date|day)/, (s) => dated(s, 0), "date"],
  [/\b(?:number|id|code|reference|ref|sku|iban)\b/, (s) => seek(s, "code", 0.3), "code"],
  [/^(?!.*\b(?:subtotal|tax|net|unit|discount)\b).*\b(?:total|grand|balance|amount due|due amount)\b/, total, "price"],
  [/^(?:amount|price|value)$/, (s) => seek(s, "amount") ?? s.facts.all("price")[0]?.text, "price"],
  [/\b(?:amount|price|fee|tax|net|subtotal|discount|shipping|salary|budget)/, (s) => seek(s, "amount"), "price"],
  [/\b(?:compan|vendor|organi|bank\b|publisher|university)/, (s) => called(s, "company"), "company"],
  [/\b(?:customer|person|people|author|contact|recipient|sender|manager)/, (s) => called(s, "person"), "person"],
  [/^(?!.*\b(?:description|file|event|project)).*\bnames?$/, (s) => called(s, "person"), "person"],
  [/\b(?:city|cities|place|location|countr|town|venue|destination)/, (s) => called(s, "place"), "place"],
  [
    /\b(?:summary|abstract|overview|gist)\b/,
    (s) => summarise(s.facts.sentences, `${s.reading.ask} ${s.names[2].join(" ")}`, s.tier),
  ],
  [/\b(?:title|headline|subject|heading)\b/, (s) => seek(s, "value") ?? s.facts.sentences[0]?.text],
  [/\b(?:sentiment|tone|mood)\b/, (s) => mood(s.facts.text)],
  [/\b(?:answer|result|response|reply|output|explanation|text)\b/, reply],
];

function rule({ names: [full, own, note] }: Subject): Rule | undefined {
  const telling = /^(?:name|number|id|date|amount|value)$/.test(own.join(" ")) ? full : own;
  const tries = [telling, note.length > 3 ? [] : note].map((list) => list.join(" "));
  return tries.map((name) => RULES.find(([names]) => names.test(name))).find(Boolean);
}

function seek({ names, facts }: Subject, kind: Kind, least = 0.5): string | undefined {
  const found = names.map((wanted) => facts.pick(kind, wanted, 0.5)).find(Boolean);
  return found ?? (least < 0.5 ? facts.pick(kind, names[0], least) : undefined);
}

/** A name beside its label, else any value beside the label, else the first name of that kind. */
function called(subject: Subject, kind: Kind): string | undefined {
  return seek(subject, kind) ?? seek(subject, "value")?.split(/[,;(]/)[0] ?? seek(subject, kind, 0);
}

/** YYYY-MM-DD, unless the description wants another form: then the date as it is written. */
function dated(subject: Subject, least: number, text = seek(subject, "date", least) ?? ""): string | undefined {
  return /^(?!.*yyyy mm dd).*\b(?:dd|mm|written|printed)\b/.test(subject.names[2].join(" ")) ? text : isoDate(text);
}

const WHOLE =
  /^(?!.*(?:sub|net|excl|before|hours|quantity|discount|(?<!incl\w* )tax)).*(?:total|due|balance|brutto|pay)/;

/** The largest amount that is called a total or due and not only a part of it, else the largest price. */
function total({ facts }: Subject): string | undefined {
  const totals = facts.all("amount").filter(({ label }) => WHOLE.test(label.join(" ")));
  const found = (totals.length > 0 ? totals : facts.all("price")).map(({ text }) => text);
  return found.toSorted((a, b) => (figure(b) ?? 0) - (figure(a) ?? 0))[0];
}

function reply({ facts, reading: { ask, background }, tier }: Subject): string | undefined {
  return (
    calculate(ask)?.value.toString() ?? answer(ask, facts.sentences, tier) ?? answer(ask, sentences(background), tier)
  );
}

/** The text for a string, if there is one. With `must`, a sentence on the subject is better than nothing. */
export function findText(subject: Subject, must: boolean): string | undefined {
  const [, find, kind] = rule(subject) ?? [];
  // What reads the whole text costs as much as many values.
  if (!kind) subject.tally.effort -= find ? 2_500 : 25;
  const text = find?.(subject) ?? (/email|phone|url|date/.test(kind ?? "") ? undefined : seek(subject, "value"));
  return (
    text || (must && !find ? answer(subject.names.flat().join(" "), subject.facts.sentences, subject.tier) : undefined)
  );
}

export function findNumber(subject: Subject): number | undefined {
  const [, find, kind] = rule(subject) ?? [];
  if (kind === "price") return figure(find?.(subject) ?? "");
  return (
    calculate(subject.reading.ask)?.value ?? figure(seek(subject, "number") ?? (kind ? "" : (find?.(subject) ?? "")))
  );
}

const DENIES = /^(?:no|false|nein|non)\b|\b(?:not|never|without|unpaid|nicht|kein\p{L}*|pas)\b|n't\b/iu;

/** True or false as the labelled value says, else as the sentence that the name fits affirms or denies. */
export function findFlag(subject: Subject): boolean | undefined {
  const said = seek(subject, "value") ?? answer(subject.names[1].join(" "), subject.facts.sentences, subject.tier);
  return said === undefined ? undefined : !DENIES.test(said);
}

/** The allowed values that a text names, the first named first. */
export function findOptions(options: readonly unknown[], text: string): unknown[] {
  const words = options.map((option) => RegExp.escape(String(option).replace(/_/g, " ")));
  const places = words.map((word) => text.search(new RegExp(`(?<![\\p{L}\\d])${word}(?![\\p{L}\\d])`, "iu")));
  const named = options.map((option, i) => ({ option, at: places[i] ?? -1 })).filter(({ at }) => at >= 0);
  return named.sort((a, b) => a.at - b.at).map(({ option }) => option);
}

/** The texts for a list: all facts of its kind, the parts of the labelled value, the points of a list in the text, or its main ones. */
export function findList(subject: Subject): string[] {
  const { facts, names, tier } = subject;
  const kind = rule(subject)?.[2];
  const value = kind ? undefined : seek(subject, "value");
  if (value) return value.split(/[,;]\s*|\s+and\s+|\.$/).filter(Boolean);
  const found = facts.all(kind ?? "point").map(({ text }) => text);
  const main = found.length === 0 && /point|highlight|takeaway/.test(names[1].join(" "));
  if (main) return summarise(facts.sentences, "bullets", tier).slice(2).split("\n- ");
  return [...new Set(kind === "date" ? found.flatMap((date) => dated(subject, 0, date) ?? []) : found)];
}
