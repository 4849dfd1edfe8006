import { type Cell, toCsv } from "./csv.ts";

/** Some browsers read the file after the click has returned. */
const KEEP_MS = 60_000;

/** Hands rows to the browser as a CSV file to save. */
export function saveCsv(name: string, rows: readonly (readonly Cell[])[]): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([toCsv(rows)], { type: "text/csv;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEEP_MS);
}
