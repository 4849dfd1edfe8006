import { type DescField, type DescMessage, getOption, hasOption, type Message } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { json } from "../../../gen/chorus/v1/options_pb.js";
import { memberName, words } from "../../contract/json-names.ts";

type Write = (message: Message) => string;
type WriteField = (message: Record<string, unknown>) => string | undefined;

const writers = new WeakMap<DescMessage, Write>();

/**
 * Writes a message as JSON of the public contract: names in snake_case and in field order, integers as numbers, enum
 * values in lower case, and `inline` fields as the JSON text that they hold. Fields without `optional` always appear,
 * except empty lists that their JsonRule leaves out; optional ones only when set, or as null where their JsonRule says
 * so.
 */
export function encode(desc: DescMessage, message: Message): string {
  let write = writers.get(desc);
  if (!write) {
    write = messageWriter(desc);
    writers.set(desc, write);
  }
  return write(message);
}

function messageWriter(desc: DescMessage): Write {
  if (desc.typeName === "google.protobuf.Timestamp") {
    return (message) => JSON.stringify(timestampDate(message as Timestamp).toISOString());
  }
  const fields: Array<[name: string, write: WriteField]> = desc.fields.map((field) => [
    JSON.stringify(memberName(field)),
    fieldWriter(desc, field),
  ]);
  return (message) => {
    let out = "";
    for (const [name, write] of fields) {
      const value = write(message as unknown as Record<string, unknown>);
      if (value !== undefined) out += `${out === "" ? "" : ","}${name}:${value}`;
    }
    return `{${out}}`;
  };
}

function fieldWriter(desc: DescMessage, field: DescField): WriteField {
  const rule = hasOption(field, json) ? getOption(field, json) : undefined;
  const name = field.localName;
  const beside = rule?.nullBeside ? desc.fields.find((other) => other.name === rule.nullBeside)?.localName : undefined;
  const absent: WriteField = beside
    ? (message) => (message[beside] === undefined ? undefined : "null")
    : () => (rule?.nullable ? "null" : undefined);
  const write = rule?.inline ? (value: unknown) => value as string : valueWriter(field);
  return (message) => {
    const value = message[name];
    if (rule?.omitEmpty && (value as unknown[]).length === 0) return undefined;
    return value === undefined ? absent(message) : write(value);
  };
}

function valueWriter(field: DescField): (value: unknown) => string {
  const one = singleWriter(field);
  return field.fieldKind === "list" ? (value) => `[${(value as unknown[]).map(one).join(",")}]` : one;
}

function singleWriter(field: DescField): (value: unknown) => string {
  const { message, enum: enumeration } = field;
  if (message) return (value) => encode(message, value as Message);
  if (enumeration) {
    const texts = new Map([...words(enumeration)].map(([number, word]) => [number, JSON.stringify(word)]));
    return (value) => texts.get(value as number) ?? "null";
  }
  return (value) => (typeof value === "bigint" ? value.toString() : JSON.stringify(value));
}
