import { currency, type Facts, figure, isoDate, type Kind } from "./facts.ts";

/** What values are taken from. */
export interface Source {
  facts: Facts;
  /** What stands for a value called so. */
  summary: string | undefined;
  answer: string | undefined;
}

/** A value to be found: the words of its name with those of the objects around it, of its own name, and of its description. */
export interface Subject {
  names: readonly [full: ReadonlySet<string>, own: ReadonlySet<string>, note: ReadonlySet<string>];
  source: Source;
  /** Characters that the answer may still grow by. */
  budget: { left: number };
}

type Rule = readonly [names: RegExp, kind: Kind, least: number];

/** The kind of fact that a name means, the surer first, and how well a label must fit it. */
const RULES: readonly Rule[] = [
  [/\bemail/, "email", 0],
  [/\bphone|\bmobile/, "phone", 0],
  [/\burl|\bweb|\blink/, "url", 0],
  [/\b(?:due|start|end|birth|delivery|payment) date|\bdeadline/, "date", 0.5],
  [/\bdate|\bday/, "date", 0],
  [/\b(?:number|id|code|reference)\b/, "code", 0.3],
  [/total|\b(?:amount|price|fee|tax|net|discount|shipping|balance|cost)/, "amount", 0.5],
  [/^name|\b(?:customer|vendor|company|person|people|author|contact)/, "name", 0],
];
/** Names and labels of a whole amount. */
const WHOLE = /^(?!.*(?:\bsub|\bnet|\bexcl|\btax|\bdiscount)).*(?:\btotal|\bdue|\bbalance)/;

const LABELLED: Rule = [/(?:)/, "value", 0.5];

function ruleOf({ names: [, own, note] }: Subject): Rule {
  const tries = [own, note].map((name) => [...name].slice(0, 4).join(" "));
  return tries.map((name) => RULES.find(([names]) => names.test(name))).find(Boolean) ?? LABELLED;
}

function seek({ names, source: { facts } }: Subject, kind: Kind, least: number): string | undefined {
  const found = names.map((wanted) => facts.pick(kind, wanted, 0.5)).find(Boolean);
  return found ?? (least < 0.5 ? facts.pick(kind, names[0], least) : undefined);
}

/** The largest amount that is called total or due and is not a part of it; else the largest with a currency or cents. */
function total(facts: Facts): string | undefined {
  const named = facts.all("amount").filter(({ label }) => WHOLE.test([...label].join(" ")));
  const priced = facts.all("amount").filter(({ text }) => /[^\d.,-]|[.,]\d\d$/.test(text));
  const found = named.length > 0 ? named : priced;
  return found.map(({ text }) => text).sort((a, b) => (figure(b) ?? 0) - (figure(a) ?? 0))[0];
}

/** The text for a string or, with `isNumber`, for a number; undefined if there is none. */
export function findText(subject: Subject, isNumber: boolean): string | undefined {
  const { facts, summary, answer } = subject.source;
  const [full, own] = subject.names;
  const name = [...own].join(" ");
  if (/^(?:summary|abstract)$/.test(name)) return summary;
  if (/^(?:answer|result)$/.test(name)) return answer;
  if (/^currency/.test(name)) return currency(facts.text);
  const [, kind, least] = isNumber ? [/./, "amount" as const, 0.5] : ruleOf(subject);
  if (kind === "amount" && WHOLE.test(name)) return total(facts);
  // Of several dates, the one of the document goes before a due date.
  if (kind === "date" && least === 0) return isoDate(facts.pick("date", full.union(new Set(["invoice"])), 0) ?? "");
  const found = seek(subject, kind, least) ?? seek(subject, "value", 0.5);
  if (kind === "date") return isoDate(found ?? "");
  return found ?? (/^(?:amount|price)$/.test(name) ? total(facts) : undefined);
}

/** True or false, as the labelled value says. */
export function findFlag(subject: Subject): boolean | undefined {
  const said = seek(subject, "value", 0.5);
  return said === undefined ? undefined : !/^(?:no|not|false|never)\b/i.test(said);
}

/** The texts for a list: all facts of its kind, or the parts of the labelled value. */
export function findList(subject: Subject): string[] {
  const [, kind] = ruleOf(subject);
  if (kind === "value")
    return (
      seek(subject, kind, 0.5)
        ?.split(/[,;]\s*|\s+and\s+|\.$/)
        .filter(Boolean) ?? []
    );
  const found = subject.source.facts.all(kind).map(({ text }) => text);
  return [...new Set(kind === "date" ? found.flatMap((text) => isoDate(text) ?? []) : found)];
}
