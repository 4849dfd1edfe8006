import type { DescMessage, JsonObject, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { encode } from "../transport/rest/encode.ts";

/**
 * Control characters, which a terminal may execute, and characters that change the direction of text. Allows newline
 * and tab.
 */
const UNSAFE = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** Makes text safe for a terminal: replaces unsafe characters with their JSON escapes. */
export function safe(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** What TypeScript does not declare: the text of a number, and a value that is written as a text. */
const Json = JSON as unknown as {
  parse(text: string, revive: (name: string, value: JsonValue, at: { source?: string }) => JsonValue): JsonObject;
  rawJSON(text: string): JsonValue;
};

/** A message as JSON of the public contract: its names, words, numbers, and `structured` as an object. */
export function messageJson<D extends DescMessage>(desc: D, message: MessageShape<D>): JsonObject {
  // Numbers of `structured` keep their digits, which may be more than a number of JavaScript has.
  return Json.parse(encode(desc, message), (_, value, { source = "" }) =>
    typeof value === "number" && String(value) !== source ? Json.rawJSON(source) : value,
  );
}

export function printJson(value: JsonObject): void {
  console.log(safe(JSON.stringify(value, null, 2)));
}

/** A number of a table. Columns of numbers are right-aligned. */
interface NumberCell {
  readonly number: string;
}

const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });

/** A number with its digits in groups of three: 1,234,567.25. It is exact also for long decimal text. */
export function grouped(value: number | bigint | string): string {
  return GROUPED.format(value as Intl.StringNumericLiteral);
}

/** A number for a table; see `grouped`. @param unit follows the number */
export function number(value: number | bigint | string, unit = ""): NumberCell {
  return { number: grouped(value) + unit };
}

/** Prints rows under a header, each column as wide as its widest cell. */
export function printTable(header: string[], rows: (string | NumberCell)[][]): void {
  const isNumeric = header.map((_, i) => rows.some((row) => typeof row[i] === "object"));
  const lines = [header, ...rows.map((row) => row.map(textOf))];
  const widths = header.map((_, i) => lines.reduce((widest, cells) => Math.max(widest, width(cells[i])), 0));
  for (const cells of lines) {
    const padded = cells.map((cell, i) => {
      const space = " ".repeat((widths[i] ?? 0) - width(cell));
      return isNumeric[i] ? space + cell : cell + space;
    });
    console.log(padded.join("  ").trimEnd());
  }
}

function textOf(cell: string | NumberCell): string {
  return typeof cell === "object" ? cell.number : safe(cell).replace(/[\n\t]/g, " ");
}

function width(cell = ""): number {
  return [...cell].length;
}

/** A time in UTC, to the second; `-` for undefined. */
export function timeText(time: Timestamp | undefined): string {
  return time ? timestampDate(time).toISOString().replace("T", " ").slice(0, 19) : "-";
}

/** How long ago a time was, such as "2 min ago". */
export function agoText(time: Timestamp): string {
  const seconds = Math.max(0, (Date.now() - timestampDate(time).getTime()) / 1_000);
  if (seconds < 60) return `${Math.round(seconds)} s ago`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 48 * 3_600 ? `${Math.round(seconds / 3_600)} h ago` : `${Math.round(seconds / 86_400)} days ago`;
}

/** A duration, rounded up, such as "45 s", "12 min", "30 h" or "12 days". */
export function durationText(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  if (seconds <= 120) return `${seconds} s`;
  if (seconds <= 120 * 60) return `${Math.ceil(seconds / 60)} min`;
  return seconds <= 48 * 3_600 ? `${Math.ceil(seconds / 3_600)} h` : `${Math.ceil(seconds / 86_400)} days`;
}

interface Period {
  readonly startTime?: Timestamp | undefined;
  readonly endTime?: Timestamp | undefined;
}

/** Start and end of a response, as members of JSON. */
export function periodJson({ startTime, endTime }: Period): JsonObject {
  return {
    ...(startTime ? { from: timestampDate(startTime).toISOString() } : {}),
    ...(endTime ? { to: timestampDate(endTime).toISOString() } : {}),
  };
}
