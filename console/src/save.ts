import { type Cell, toCsv } from "./csv.ts";

/** How long the file stays available, in milliseconds: some browsers read it after the click has returned. */
const KEEP_MS = 60_000;

/** Downloads rows as a CSV file. */
export function saveCsv(name: string, rows: readonly (readonly Cell[])[]): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([toCsv(rows)], { type: "text/csv;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEEP_MS);
}
