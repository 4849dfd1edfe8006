/** Words for one thing on forms; the first of a group stands for all of it. */
const GROUPS =
  "number no nr #,date dated issued issue datum rechnungsdatum,invoice rechnung inv,total summe gesamtbetrag,tax vat mwst,customer client bill,vendor seller supplier";
const groups = GROUPS.split(",").map((group) => group.split(" "));
const SAME = new Map(groups.flatMap((group) => group.map((word) => [word, group[0] ?? word])));
const GLUE = new Set("the a an of for to in on at by is are was and with this from".split(" "));
/** Words that many labels share: they tell little about which value is meant. */
const COMMON = new Set("date number amount name email".split(" "));

/** Reads a property name, a label or a description as lower-case words in the singular, one word for each thing. */
export function words(text: string): ReadonlySet<string> {
  const spaced = text.replace(/(?<=[\p{Ll}\d])(?=\p{Lu})/gu, " ").replace(/\be-mail/gi, "email");
  const all = (spaced.toLowerCase().match(/\p{L}+|#/gu) ?? []).map((word) => word.replace(/(?<=[^s]{3})s$/, ""));
  return new Set(all.filter((word) => !GLUE.has(word)).map((word) => SAME.get(word) ?? word));
}

/** How well a label names what is wanted, from 0 to 1: the share of the wanted words in it, less a part for what else it says. */
export function fit(wanted: ReadonlySet<string>, label: ReadonlySet<string>): number {
  if (wanted.isDisjointFrom(label)) return 0;
  const weigh = (list: ReadonlySet<string>) => [...list].reduce((sum, word) => sum + (COMMON.has(word) ? 0.5 : 1), 0);
  const hits = weigh(wanted.intersection(label));
  return (hits / weigh(wanted)) * (0.75 + (0.25 * hits) / weigh(label));
}
