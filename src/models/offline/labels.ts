/** Words for one thing on forms, in English, German and French; the first of a group stands for all of it. */
const GROUPS =
  "number no nr num nummer numéro #,email mail courriel,date datum dated issued,invoice rechnung facture,order bestellung commande," +
  "total gesamt summe,subtotal zwischensumme,amount betrag montant,price preis prix cost,quantity qty menge anzahl quantité,name nom,age aged old," +
  "description item product article artikel bezeichnung,tax vat mwst ust tva,due fällig fälligkeits échéance payable,phone tel telefon," +
  "customer client kunde bill buyer,vendor merchant supplier seller lieferant fournisseur,company organisation organization firma employer";
const groups = GROUPS.split(",").map((group) => group.split(" "));
const SAME = new Map(groups.flatMap((group) => group.map((word) => [word, group[0] ?? word])));
const GLUE = new Set("the a an of for to in on at and or by is are was be has have with this it as from e".split(" "));
/** Words that many labels share: they tell little about which value is meant. */
const COMMON = new Set([
  "date",
  "number",
  "amount",
  "name",
  "id",
  "code",
  "value",
  "email",
  "phone",
  "address",
  "year",
]);

/** Reads a property name, a label or a description as lower-case words, one word for each thing. */
export function words(text: string): string[] {
  const spaced = /\s/.test(text.trim()) ? text : text.replace(/(?<=[\p{Ll}\d])(?=\p{Lu})|_/gu, " ");
  // German writes "Rechnungsnummer" for "invoice number".
  const parts = spaced.toLowerCase().replace(/(?<=\p{L}{4})s?(?=(?:nummer|datum|betrag|preis)(?!\p{L}))/gu, " ");
  const all = (parts.match(/\p{L}+|#/gu) ?? []).map((word) => SAME.get(word) ?? word);
  const telling = all.filter((word) => !GLUE.has(word));
  return telling.length > 0 ? telling : all;
}

/** How well a label names what is wanted, from 0 to 1: the share of the wanted words in it, less a part for what else it says. */
export function fit(wanted: readonly string[], label: readonly string[]): number {
  const weigh = (list: readonly string[]) => list.reduce((sum, word) => sum + (COMMON.has(word) ? 0.5 : 1), 0);
  const stem = (word: string) => (word.length > 4 ? word.slice(0, 6).replace(/(?<=....)[es]+$/, "") : word);
  const hits = weigh(wanted.filter((word) => label.some((other) => stem(word) === stem(other))));
  return hits === 0 ? 0 : (hits / weigh(wanted)) * (0.75 + 0.25 * Math.min(1, hits / weigh(label)));
}
