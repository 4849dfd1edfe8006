import { Facts } from "./facts.ts";

/** Rows of a table, lines that end in a price, paragraphs, lines, the whole. Rows become forms of lines "column: cell". */
export function records(text: string): string[][] {
  const lines = text.split("\n").filter((line) => !/^[|: -]*---/.test(line));
  const paragraphs = text.split(/\n\s*\n/);
  const cells = lines.map((line) => {
    const row = line.replace(/^\s*\||\|\s*$/g, "").trim();
    return row.split(/\|| {2,}|\t/.test(row) ? /\s*\|\s*|\t+| {2,}/ : /\s*[;,]\s*/);
  });
  const heads = (row: string[], i: number) =>
    row.length > 1 && !/\d/.test(row.join("")) && cells[i + 1]?.length === row.length;
  const head = cells.findIndex(heads);
  const length = cells.slice(head).findIndex((row) => row.length !== cells[head]?.length);
  const body = head < 0 ? [] : cells.slice(head + 1, length < 0 ? undefined : head + length);
  const table = body.map((row) => row.map((cell, i) => `${cells[head]?.[i]}: ${cell}`).join("\n"));
  return [table, lines.flatMap(priced), paragraphs.length > 1 ? paragraphs : [], lines, [text]];
}

const ITEM =
  /^[\s*•-]*(?:(\d+) ?(?:[x×]|pcs|Stk\.?)? +)?(\p{L}.*?)(?= {2,}|\.{2,}|[|:@=\t]|, ?\d| [-–(x×à]| at | \D?\d|$)/u;

/** "2 x Blue pen @ 1.50 = 3.00" as a form. Totals and taxes look the same but belong to the whole. */
function priced(line: string): string[] {
  const prices = line.length > 120 || !/\d\D{0,8}$/.test(line) ? [] : new Facts(line).all("price");
  const [, count, name = ""] = ITEM.exec(line) ?? [];
  if (!prices[0] || !name || /total|summe|betrag|tax|vat|mwst|tva|discount|shipping|due|balance/i.test(name)) return [];
  const [quantity = ""] = count
    ? [count]
    : (/(?<![.,\d])\d{1,6}(?= ?[x×]| pcs| hours| +\D?\d)/i.exec(line.slice(name.length)) ?? []);
  const last = prices.at(-1)?.text;
  return [`name description: ${name}\nquantity: ${quantity}\nunit price: ${prices[0].text}\namount: ${last}`];
}
