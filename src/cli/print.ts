import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";

/** Prints a message as one JSON document, with the names of the contract. */
export function printJson<D extends DescMessage>(desc: D, message: MessageShape<D>): void {
  console.log(JSON.stringify(toJson(desc, message, { useProtoFieldName: true, alwaysEmitImplicit: true }), null, 2));
}

/** Prints rows under a header, each column as wide as its widest cell. */
export function printTable(header: string[], rows: string[][]): void {
  const widths = header.map((title, i) => Math.max(title.length, ...rows.map((row) => (row[i] ?? "").length)));
  for (const row of [header, ...rows]) {
    console.log(
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join("  ")
        .trimEnd(),
    );
  }
}

/** A time to the second, UTC; `-` when there is none. */
export function timeText(time: Timestamp | undefined): string {
  return time ? timestampDate(time).toISOString().replace("T", " ").slice(0, 19) : "-";
}
