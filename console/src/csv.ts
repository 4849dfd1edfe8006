/** A cell: text that people or programs wrote, or a plain figure of our own. */
export type Cell = string | number | bigint;

/**
 * Rows as a CSV file (RFC 4180, CRLF, UTF-8 with a byte order mark, so that spreadsheets read it as such). A text that a spreadsheet
 * would run as a formula gets an apostrophe in front; see https://owasp.org/www-community/attacks/CSV_Injection.
 */
export function toCsv(rows: readonly (readonly Cell[])[]): string {
  return `\uFEFF${rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("")}`;
}

function cell(value: Cell): string {
  const text = typeof value === "string" ? inert(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function inert(text: string): string {
  return /^[=+\-@\t\r]/.test(text) && !/^-?\d+(\.\d+)?$/.test(text) ? `'${text}` : text;
}
