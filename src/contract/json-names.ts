import type { DescEnum, DescField } from "@bufbuild/protobuf";
import { invalid } from "./failure.ts";

/**
 * Name of a field in the public JSON and in the paths of failures: its `json_name` where the contract sets one, because
 * the public name is a keyword in some languages; otherwise its own name in snake_case.
 */
export function memberName(field: DescField): string {
  // Without `json_name`, the compiler derives the same camelCase name as for TypeScript.
  return field.jsonName === field.localName ? field.name : field.jsonName;
}

const wordsByEnum = new WeakMap<DescEnum, ReadonlyMap<number, string>>();

/**
 * Words of an enum in JSON, on the command line and in the store, by number: `EFFORT_LOW` is `low`. The unspecified
 * value has none.
 */
export function words(desc: DescEnum): ReadonlyMap<number, string> {
  let found = wordsByEnum.get(desc);
  if (!found) {
    const prefix = desc.sharedPrefix ?? "";
    const values = desc.values.filter(({ number }) => number !== 0);
    found = new Map(values.map(({ number, name }) => [number, name.slice(prefix.length).toLowerCase()]));
    wordsByEnum.set(desc, found);
  }
  return found;
}

/** Word of an enum value; empty for the unspecified value and for numbers that the contract does not know. */
export function wordOf(desc: DescEnum, number: number): string {
  return words(desc).get(number) ?? "";
}

/** Number of the enum value with this word; 0, the unspecified value, for any other text. */
export function numberOf(desc: DescEnum, word: string): number {
  for (const [number, known] of words(desc)) if (known === word) return number;
  return 0;
}

const numbersByEnum = new WeakMap<DescEnum, ReadonlyMap<unknown, number>>();

/**
 * Number of the enum value that a JSON value names: by its word, by its name in protobuf (`EFFORT_LOW`, which the
 * unspecified value has too), or by its number. Undefined for any other value.
 */
export function enumNumber(desc: DescEnum, value: unknown): number | undefined {
  let found = numbersByEnum.get(desc);
  if (!found) {
    const known = desc.values.flatMap(({ number, name }): [unknown, number][] => [
      [name, number],
      [number, number],
    ]);
    for (const [number, word] of words(desc)) known.push([word, number]);
    found = new Map(known);
    numbersByEnum.set(desc, found);
  }
  return found.get(value);
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
