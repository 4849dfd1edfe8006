import { download } from "./file.ts";

/** A cell. Strings may contain anything; numbers are written as they are. */
export type Cell = string | number | bigint;

/**
 * Writes rows as a CSV file: RFC 4180, CRLF, and a byte order mark, from which spreadsheets recognise UTF-8. Prefixes
 * text that a spreadsheet would run as a formula with an apostrophe; see
 * https://owasp.org/www-community/attacks/CSV_Injection.
 */
export function toCsv(rows: readonly (readonly Cell[])[]): string {
  return `\uFEFF${rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("")}`;
}

/** Downloads rows as a CSV file. */
export function saveCsv(name: string, rows: readonly (readonly Cell[])[]): void {
  download(name, new Blob([toCsv(rows)], { type: "text/csv;charset=utf-8" }));
}

function cell(value: Cell): string {
  const text = typeof value === "string" ? withoutFormula(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function withoutFormula(text: string): string {
  return /^[=+\-@\t\r]/.test(text) && !/^-?\d+(\.\d+)?$/.test(text) ? `'${text}` : text;
}
