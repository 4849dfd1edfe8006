import {
  type DescField,
  type DescMessage,
  fromJson,
  getOption,
  hasOption,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { json } from "../../../gen/chorus/v1/options_pb.js";
import { type Failure, invalid } from "../../contract/failure.ts";
import { enumNumber, memberName } from "../../contract/json-names.ts";
import { hasRealDay, isAbsent, mustBe, wordsOf } from "../call/json-rules.ts";

interface Member {
  readonly field: DescField;
  /** Name in paths. */
  readonly name: string;
  /** The other name that protobuf's JSON allows, if there is one. */
  readonly otherName: string | undefined;
  /** The message of the field, if its members have rules here. Timestamps and their like have a JSON of their own. */
  readonly message: DescMessage | undefined;
}

type OnUnknown = (path: string) => void;

const membersByMessage = new WeakMap<DescMessage, ReadonlyMap<string, Member>>();

/** The fields of a message by their names in protobuf's JSON. The public name is one of the two. */
function membersOf(desc: DescMessage): ReadonlyMap<string, Member> {
  let members = membersByMessage.get(desc);
  if (!members) {
    members = new Map(desc.fields.flatMap(namesOf));
    membersByMessage.set(desc, members);
  }
  return members;
}

function namesOf(field: DescField): [string, Member][] {
  const { name, jsonName } = field;
  const message = field.message && !hasCustomJsonRepresentation(field.message) ? field.message : undefined;
  const member = { field, name: memberName(field), message };
  if (name === jsonName) return [[name, { ...member, otherName: undefined }]];
  return [
    [name, { ...member, otherName: jsonName }],
    [jsonName, { ...member, otherName: name }],
  ];
}

/**
 * Prepares a message in JSON for protobuf's parser, in place. Enum words become numbers. Members that stand for an
 * absent field go, and so do members that the message does not have, after `onUnknown` received their path. Lone
 * surrogates in texts become U+FFFD, as on `/v1`. Protobuf's parser itself either refuses all of these or drops enum
 * words without a trace.
 * @param path the path of the message, with a dot at its end; empty for the request
 * @throws Failure invalid_request with the path of a word or number that its enum does not know, of a time on a day
 *   that does not exist, of a value that is no list or object, and of a field that is given under both of its names
 */
export function normalize(desc: DescMessage, message: JsonObject, path: string, onUnknown: OnUnknown): void {
  const members = membersOf(desc);
  for (const name of Object.keys(message)) {
    const member = members.get(name);
    const value = message[name] as JsonValue;
    if (!member) {
      onUnknown(path + name);
      delete message[name];
      continue;
    }
    const { otherName, field } = member;
    const at = path + member.name;
    if (otherName !== undefined && Object.hasOwn(message, otherName))
      throw invalid(at, `${at} is given twice, as ${name} and as ${otherName}. Send one of them.`);
    if (isAbsent(field, value)) delete message[name];
    else if (field.enum || member.message) message[name] = normalizeField(member, value, at, onUnknown);
    else if (field.scalar === ScalarType.STRING) message[name] = wellFormed(value);
    else if (isTime(field) && typeof value === "string" && !hasRealDay(value)) throw mustBe(at, A_TIME);
  }
}

const A_TIME = 'a time such as "2026-01-31T00:00:00Z"';

function isTime({ message }: DescField): boolean {
  return message?.typeName === TimestampSchema.typeName;
}

/** A text, or each of a list or map, with U+FFFD in place of lone surrogates. */
function wellFormed(value: JsonValue): JsonValue {
  const one = (text: JsonValue) => (typeof text === "string" ? text.toWellFormed() : text);
  if (Array.isArray(value)) return value.map(one);
  if (!isObject(value)) return one(value);
  return Object.fromEntries(Object.entries(value).map(([name, text]) => [name, one(text)]));
}

function normalizeField(member: Member, value: JsonValue, path: string, onUnknown: OnUnknown): JsonValue {
  const { fieldKind } = member.field;
  if (fieldKind === "list") {
    if (!Array.isArray(value)) throw mustBe(path, "a list");
    for (const [i, item] of value.entries()) value[i] = normalizeValue(member, item, `${path}[${i}]`, onUnknown);
    return value;
  }
  if (fieldKind !== "map") return normalizeValue(member, value, path, onUnknown);
  if (!isObject(value)) throw mustBe(path, "an object");
  const entries = Object.entries(value);
  return Object.fromEntries(
    entries.map(([key, item]) => [key, normalizeValue(member, item, `${path}.${key}`, onUnknown)]),
  );
}

function normalizeValue({ field, message }: Member, value: JsonValue, path: string, onUnknown: OnUnknown): JsonValue {
  if (field.enum) {
    const number = enumNumber(field.enum, value);
    // An item cannot be absent, so the unspecified value is none of its words.
    if (number === undefined || (number === 0 && field.fieldKind !== "enum")) throw mustBe(path, wordsOf(field.enum));
    return number;
  }
  if (!message) return value;
  const [first] = hasOption(field, json) && getOption(field, json).orString ? message.fields : [];
  if (first && typeof value === "string") {
    const word = { [first.name]: value };
    normalize(message, word, `${path}.`, onUnknown);
    return word;
  }
  if (!isObject(value)) throw mustBe(path, "an object");
  normalize(message, value, `${path}.`, onUnknown);
  return value;
}

/** What a value must be in protobuf's JSON. */
const SCALARS: Partial<Record<ScalarType, string>> = {
  [ScalarType.STRING]: "a string",
  [ScalarType.BYTES]: "a base64 string",
  [ScalarType.BOOL]: "true or false",
  [ScalarType.DOUBLE]: "a number",
  [ScalarType.INT32]: "a whole number of at most 32 bits",
  [ScalarType.INT64]: "a whole number of at most 64 bits",
};

/**
 * The failure of the first value in a normalized message that protobuf's parser refuses.
 * @param path the path of the message, with a dot at its end; empty for the request
 */
export function wrongIn(desc: DescMessage, message: JsonObject, path: string): Failure | undefined {
  for (const [name, value] of Object.entries(message)) {
    const member = membersOf(desc).get(name);
    if (!member || isReadable(desc, { [name]: value })) continue;
    const { field } = member;
    const at = path + member.name;
    if (field.fieldKind === "map") return mustBe(at, "an object whose values are strings");
    if (field.fieldKind !== "list") return wrongValue(member, value, at);
    if (!Array.isArray(value)) return mustBe(at, "a list");
    const i = value.findIndex((item) => !isReadable(desc, { [name]: [item] }));
    return wrongValue(member, value[i] as JsonValue, `${at}[${i}]`);
  }
  return givenTogether(desc, message, path);
}

function wrongValue({ field, message }: Member, value: JsonValue, path: string): Failure {
  const inner = message && isObject(value) ? wrongIn(message, value, `${path}.`) : undefined;
  if (inner) return inner;
  if (isTime(field)) return mustBe(path, A_TIME);
  return mustBe(path, SCALARS[field.scalar as ScalarType] ?? "an object");
}

/** The failure of members that exclude each other. */
function givenTogether(desc: DescMessage, message: JsonObject, path: string): Failure | undefined {
  const given = new Set(Object.keys(message).map((name) => membersOf(desc).get(name)?.field));
  for (const { fields } of desc.oneofs) {
    const names = fields.filter((field) => given.has(field)).map(memberName);
    const [first] = names;
    if (first === undefined || names.length < 2) continue;
    const at = path === "" ? first : path.slice(0, -1);
    return invalid(at, `${names.map((name) => path + name).join(" and ")} exclude each other. Send one of them.`);
  }
  return undefined;
}

function isReadable(desc: DescMessage, message: JsonObject): boolean {
  try {
    fromJson(desc, message);
    return true;
  } catch {
    return false;
  }
}

export function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
