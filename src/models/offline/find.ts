import { answer } from "./answer.ts";
import { calculate } from "./arithmetic.ts";
import { currency, type Facts, figure, isoDate, type Kind } from "./facts.ts";
import { mood, sentences, terms } from "./language.ts";
import type { Reading } from "./read.ts";
import { summarise, type Tier } from "./summarise.ts";

/** A value to be found: its name with those of the objects around it, its own name, its description; and where to look. */
export interface Subject {
  names: readonly [full: readonly string[], own: readonly string[], note: readonly string[]];
  facts: Facts;
  reading: Reading;
  tier: Tier;
  /** Values that the answer may still hold, and those found in the text so far. */
  tally: { left: number; found: number };
}

type Rule = readonly [names: RegExp, find: (subject: Subject) => string | undefined, kind?: Kind];

/** How to find what a name means, the surer first. Names are in the words of `words()`: "no" and "#" are "number". */
const RULES: readonly Rule[] = [
  [/\bemail/, (s) => seek(s, "email", 0), "email"],
  [/\b(?:phone|telephone|mobile|fax)/, (s) => seek(s, "phone", 0), "phone"],
  [/\b(?:url|web|website|link|homepage)/, (s) => seek(s, "url", 0), "url"],
  [/\bcurrency/, (s) => currency(s.facts.text)],
  [
    /\b(?:due|start|end|birth|delivery|expir\w+|paid|payment) (?:date|day)|\bdeadline|\bbirthday/,
    (s) => dated(s, 0.5),
    "date",
  ],
  [/\b(?:date|day)/, (s) => dated(s, 0), "date"],
  [/\b(?:number|id|code|reference|ref|sku|iban)\b/, (s) => seek(s, "code", 0.3), "code"],
  [/^(?!.*\b(?:subtotal|tax|net|unit|discount)\b).*\b(?:total|grand|balance|amount due|due amount)\b/, total, "amount"],
  [
    /\b(?:amount|price|fee|tax|net|subtotal|discount|shipping|salary|revenue|budget)/,
    (s) => seek(s, "amount"),
    "amount",
  ],
  [/\b(?:company|companies|vendor|organi\w+|bank|publisher|university)\b/, (s) => called(s, "company"), "company"],
  [
    /\b(?:customer|person|people|author|contact|recipient|sender|founder|employee|manager)/,
    (s) => called(s, "person"),
    "person",
  ],
  [/^(?!.*\b(?:description|file|event|project)).*\bnames?$/, (s) => called(s, "person"), "person"],
  [/\b(?:city|cities|place|location|country|countries|town|venue)/, (s) => called(s, "place"), "place"],
  [
    /\b(?:summary|abstract|overview|gist)\b/,
    (s) => summarise(s.facts.sentences, `${s.reading.ask} ${s.names[2].join(" ")}`, s.tier),
  ],
  [/\b(?:title|headline|subject|heading)\b/, (s) => seek(s, "value") ?? s.facts.sentences[0]?.text],
  [/\b(?:sentiment|tone|mood)\b/, (s) => mood(s.facts.text)],
  [/\b(?:answer|result|response|reply|output|explanation|text)\b/, reply],
];

function rule({ names: [full, own, note] }: Subject): Rule | undefined {
  const tries = [
    /^(?:name|number|id|date|amount|value)$/.test(own.join(" ")) ? full : own,
    note.length <= 4 ? note : [],
  ];
  return tries.map((list) => RULES.find(([names]) => names.test(list.join(" ")))).find(Boolean);
}

function seek({ names, facts }: Subject, kind: Kind, least = 0.5): string | undefined {
  const found = names.map((wanted) => facts.pick(kind, wanted, 0.5)).find(Boolean);
  return found ?? (least < 0.5 ? facts.pick(kind, names[0], least) : undefined);
}

/** A name beside its label, else any value beside the label, else the first name of that kind. */
function called(subject: Subject, kind: Kind): string | undefined {
  return seek(subject, kind) ?? seek(subject, "value")?.split(/[,;(]/)[0] ?? seek(subject, kind, 0);
}

/** YYYY-MM-DD, unless the description wants the date as it is written or names an order such as DD/MM/YYYY. */
function dated(subject: Subject, least: number): string | undefined {
  const text = seek(subject, "date", least) ?? "";
  return /\b(?:dd|mm|written|printed|verbatim)\b/.test(subject.names[2].join(" ").replace("yyyy mm dd", ""))
    ? text
    : isoDate(text);
}

const isPrice = ({ text }: { text: string }) => /[.,]\d\d\b|[^\d.,\s'’-]/.test(text);

/** The largest amount that is called a total or due and not only a part of it, else the largest price. */
function total({ facts }: Subject): string | undefined {
  const whole = facts.all("amount").filter(({ label }) => /total|due|balance|brutto|pay/.test(label.join(" ")));
  const totals = whole.filter(
    ({ label }) => !/sub|net|excl|before|hours|quantity|discount|(?<!incl\w* )tax/.test(label.join(" ")),
  );
  const candidates = totals.length > 0 ? totals : facts.all("amount").filter(isPrice);
  return candidates.toSorted((a, b) => (figure(b.text) ?? 0) - (figure(a.text) ?? 0))[0]?.text;
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
  if (!kind) subject.tally.left -= find ? 500 : 5;
  const text = find?.(subject) ?? (/email|phone|url|date/.test(kind ?? "") ? undefined : seek(subject, "value"));
  return (
    text || (must && !find ? answer(subject.names.flat().join(" "), subject.facts.sentences, subject.tier) : undefined)
  );
}

export function findNumber(subject: Subject): number | undefined {
  const [, find, kind] = rule(subject) ?? [];
  if (find && kind === "amount") return figure(find(subject) ?? "");
  return (
    calculate(subject.reading.ask)?.value ??
    figure(seek(subject, "number") ?? (/answer|result/.test(subject.names[1].join()) ? (reply(subject) ?? "") : ""))
  );
}

/** True or false as the labelled value says, else as the first sentence with all words of the name affirms or denies. */
export function findFlag(subject: Subject): boolean | undefined {
  const value = seek(subject, "value") ?? "";
  if (/^(?:yes|true|ja|oui|no|false|nein|non)\b/i.test(value)) return /^[ytjo]/i.test(value);
  const wanted = terms(subject.names[1].join(" "));
  const said = subject.facts.sentences.find((s) =>
    wanted.every((term) => s.terms.has(term) || s.terms.has(`un${term}`)),
  );
  if (wanted.length === 0 || !said) return undefined;
  return (
    !/\b(?:not|no|never|without|kein\p{L}*|nicht|pas)\b|n't\b/u.test(said.text) &&
    wanted.every((term) => said.terms.has(term))
  );
}

/** The allowed values that a text names, the first named first. */
export function findOptions(options: readonly unknown[], text: string): unknown[] {
  const places = options.map((option) => {
    const word = RegExp.escape(String(option).replace(/_/g, " "));
    return { option, at: text.search(new RegExp(`(?<![\\p{L}\\d])${word}(?![\\p{L}\\d])`, "iu")) };
  });
  const named = places.filter(({ at }) => at >= 0).toSorted((a, b) => a.at - b.at);
  return named.map(({ option }) => option);
}

/** The allowed value that fits best: the mood of the text, the one beside the label, or the first that the text names. */
export function findOption(subject: Subject, options: readonly unknown[]): unknown {
  const beside = options.includes("positive") ? mood(subject.facts.text) : (findText(subject, false) ?? "");
  return findOptions(options, beside)[0] ?? findOptions(options, subject.facts.text)[0];
}

/** The texts for a list: all facts of its kind, or the parts of the labelled value, or the points of a list in the text. */
export function findList(subject: Subject): string[] {
  const { facts } = subject;
  const kind = rule(subject)?.[2];
  const found = kind ? facts.all(kind).filter((fact) => kind !== "amount" || isPrice(fact)) : [];
  if (kind) return [...new Set(found.map(({ text }) => (kind === "date" ? (isoDate(text) ?? text) : text)))];
  const parts = seek(subject, "value")?.split(/[,;]\s*|\s+and\s+/);
  return parts ?? Array.from(facts.text.matchAll(/^\s*(?:[-*•]|\d+[.)])\s+(\S.*)$/gmu), ([, point = ""]) => point);
}
