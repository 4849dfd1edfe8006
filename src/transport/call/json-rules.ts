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

export function wordsOf(desc: DescEnum): string {
  return oneOf([...words(desc).values()]);
}

export function oneOf(allowed: readonly string[]): string {
  return `one of ${allowed.map((word) => `"${word}"`).join(", ")}`;
}
