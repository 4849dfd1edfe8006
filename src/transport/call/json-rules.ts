import { type DescEnum, type DescField, ScalarType } from "@bufbuild/protobuf";
import { type Failure, invalid } from "../../contract/failure.ts";
import { words } from "../../contract/json-names.ts";

/** Whether a value stands for an absent field. An empty text or file is its field's value, which is the same. */
export function isAbsent({ fieldKind, scalar }: DescField, value: unknown): boolean {
  if (value === null || (Array.isArray(value) && value.length === 0)) return true;
  const isText = fieldKind === "scalar" && (scalar === ScalarType.STRING || scalar === ScalarType.BYTES);
  return value === "" && !isText;
}

/** The failure of a value that is not what its field takes. An empty path stands for the body. */
export function mustBe(path: string, expected: string): Failure {
  return invalid(path, path === "" ? `The body must be ${expected}.` : `${path} must be ${expected}.`);
}

/** Whether a text begins with a day that exists. Date, and protobuf's parser, read 30 February as 2 March. */
export function hasRealDay(time: string): boolean {
  const day = time.slice(0, 10);
  const date = new Date(day);
  return !Number.isNaN(date.getTime()) && date.toISOString().slice(0, 10) === day;
}

export function wordsOf(desc: DescEnum): string {
  return oneOf([...words(desc).values()]);
}

export function oneOf(allowed: readonly string[]): string {
  return `one of ${allowed.map((word) => `"${word}"`).join(", ")}`;
}
