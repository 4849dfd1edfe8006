import { Facts } from "./facts.ts";

/**
 * Ways to see a text as records, the surest first: the rows of a table, lines that end in a price, paragraphs, lines, the whole. A row becomes a
 * form of lines "column: cell", which then reads like any other text.
 */
export function records(text: string): string[][] {
  const lines = text.split("\n");
  const paragraphs = text.split(/\n\s*\n/);
  return [table(lines), lines.flatMap(priced), paragraphs.length > 1 ? paragraphs : [], lines, [text]];
}

function table(lines: string[]): string[] {
  for (const between of [/\s*\|\s*|\t+| {2,}/, /\s*[;,]\s*/]) {
    const rows = lines.map((line) =>
      line
        .trim()
        .replace(/^\||\|$/g, "")
        .trim()
        .split(between),
    );
    const head = rows.findIndex(
      (row, i) => row.length > 1 && !/\d/.test(row.join("")) && rows[i + 1]?.length === row.length,
    );
    const [names = [], ...rest] = head < 0 ? [] : rows.slice(head);
    const end = rest.findIndex((row) => row.length !== names.length);
    const body = rest.slice(0, end < 0 ? undefined : end).filter((row) => /[\p{L}\d]/u.test(row.join("")));
    if (body.length > 0) return body.map((row) => row.map((cell, i) => `${names[i]}: ${cell}`).join("\n"));
  }
  return [];
}

/** "2 x Blue pen @ 1.50 = 3.00" as a form. Totals and taxes look the same but belong to the whole. */
function priced(line: string): string[] {
  const prices =
    line.length > 120 ? [] : new Facts(line).all("amount").filter(({ text }) => /[.,]\d\d\b|[$€£]/.test(text));
  const [, count, name = ""] =
    /^[\s*•-]*(?:(\d+) ?(?:[x×]|pcs|Stk\.?)? +)?(\p{L}.*?)(?= {2,}|\.{2,}|[,|:@=\t]| [-–(x×à]| at |,? \D?\d|$)/u.exec(
      line,
    ) ?? [];
  if (prices.length === 0 || !/\d\D{0,8}$/.test(line)) return [];
  if (!name || /total|summe|betrag|tax|vat|mwst|tva|discount|shipping|due|balance/i.test(name)) return [];
  const quantity =
    count ?? /(?<![.,\d])\d{1,6}(?= ?[x×]| pcs| hours| +\D?\d)/i.exec(line.slice(name.length))?.[0] ?? "";
  return [
    `description: ${name}\nquantity: ${quantity}\nunit price: ${prices[0]?.text}\namount: ${prices.at(-1)?.text}`,
  ];
}
