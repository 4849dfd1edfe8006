import type { DescEnum } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { invalid } from "../failure.ts";
import { words } from "../json-names.ts";

/** The store and `google.protobuf.Timestamp` can both express the years 1 to 9999. */
const FIRST = Date.parse("0001-01-01T00:00:00Z");
const LAST = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * Reads a time of a message.
 * @throws Failure `invalid_request` naming the field, unless it lies in the years 1 to 9999.
 */
export function readTimestamp(field: string, timestamp: Timestamp | undefined): Date | undefined {
  if (!timestamp) return undefined;
  const date = timestampDate(timestamp);
  if (!(date.getTime() >= FIRST && date.getTime() <= LAST)) {
    throw invalid(field, `${field} must be a time in the years 1 to 9999.`);
  }
  return date;
}

/**
 * Reads an enum value of a message as its word, such as `low`. Binary requests can carry any number.
 * @returns an empty string for the unspecified value
 * @throws Failure `invalid_request` naming the field, for a number that the contract does not know.
 */
export function readEnum(field: string, desc: DescEnum, value: number): string {
  const known = words(desc);
  const word = value === 0 ? "" : known.get(value);
  if (word === undefined) throw invalid(field, `${field} must be one of ${[...known.values()].join(", ")}.`);
  return word;
}
