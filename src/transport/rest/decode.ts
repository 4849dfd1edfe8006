import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  getOption,
  hasOption,
  type Message,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { json } from "../../../gen/chorus/v1/options_pb.js";
import { invalid } from "../../contract/failure.ts";
import { JsonText } from "../../contract/json.ts";
import { memberName, words } from "../../contract/json-names.ts";
import type { Decoded } from "../call/format.ts";
import { decodeText, parseBody } from "../call/json-body.ts";
import { hasRealDay, isAbsent, mustBe, oneOf, wordsOf } from "../call/json-rules.ts";
import { addUnknown, reportedPath, type UnknownMembers } from "../call/unknown-members.ts";
import { type JsonMember, type JsonUnion, shapeOf } from "./json-shape.ts";

interface Source {
  /** The body, from which `inline` fields are copied. */
  readonly text: JsonText;
  /** Called for each member that its message does not have. */
  onUnknown(path: Path, value: unknown): void;
  /** Whether members of the other cases of a union are skipped instead of unknown. */
  readonly skipsOtherCases: boolean;
}

/** Decodes a body of the public contract. @throws Failure invalid_json; invalid_request with the path of the field */
export function decodeBody<D extends DescMessage>(desc: D, bytes: Uint8Array): Decoded<MessageShape<D>> {
  const text = decodeText(bytes);
  const { message: request, ...found } = decode(desc, text, parseBody(text));
  return { request, ...found };
}

/**
 * Reads a JSON object of the public contract into a message. `text` must be the JSON text that `value` was parsed from.
 * A member that is null, an empty string or an empty list counts as absent. `unknown` lists the paths of the first
 * hundred members that the message does not have, and `more` counts the others.
 * @throws Failure invalid_request with the path of the field, such as `messages[3].role`
 */
export function decode<D extends DescMessage>(
  desc: D,
  text: string,
  value: object,
): { message: MessageShape<D> } & UnknownMembers {
  const found: UnknownMembers = { unknown: [], more: 0 };
  const onUnknown = (path: Path) => addUnknown(found, pathText(path));
  const message = readMessage(desc, value, [], {
    ...{ text: new JsonText(text), onUnknown },
    skipsOtherCases: true,
  }) as MessageShape<D>;
  return { message, ...found };
}

/**
 * Reads a message of another API like `decode`.
 * @param onUnknown called with the path and the value of each member that the message does not have, unless its value
 *   asks for nothing: null, false, or an empty string, list or object
 */
export function decodeForeign<D extends DescMessage>(
  desc: D,
  text: string,
  value: object,
  onUnknown: (name: string, value: unknown) => void,
): MessageShape<D> {
  const report = (path: Path, member: unknown) => {
    const isEmpty = typeof member === "object" && Object.keys(member ?? {}).length === 0;
    if (!isEmpty && member !== "" && member !== false) onUnknown(reportedPath(pathText(path)), member);
  };
  const source = { text: new JsonText(text), onUnknown: report, skipsOtherCases: false };
  return readMessage(desc, value, [], source) as MessageShape<D>;
}

/**
 * Reads the parameters of a query into a message of scalar, enum and timestamp fields. Unknown parameters are skipped.
 * @throws Failure invalid_request with the name of the parameter
 */
export function decodeQuery<D extends DescMessage>(desc: D, query: URLSearchParams): MessageShape<D> {
  const message = create(desc) as Record<string, unknown>;
  for (const field of desc.fields) {
    const name = memberName(field);
    const text = query.get(name);
    if (text === null || text === "") continue;
    const qualifier = qualifierOf(desc, field);
    const at = qualifier ? text.indexOf(":") : -1;
    if (qualifier && at >= 0) message[qualifier.localName] = text.slice(at + 1);
    const value = at < 0 ? text : text.slice(0, at);
    const isNumber = field.scalar === ScalarType.INT32 && /^-?\d+$/.test(value);
    message[field.localName] = readValue(field, isNumber ? Number(value) : value, [name], NO_BODY);
  }
  return message as MessageShape<D>;
}

/** The field whose value may follow that of `field` after a colon. */
function qualifierOf(desc: DescMessage, field: DescField): DescField | undefined {
  const name = hasOption(field, json) ? getOption(field, json).qualifier : "";
  return name === "" ? undefined : desc.fields.find((other) => other.name === name);
}

/** The source of values that hold no objects. */
const NO_BODY: Source = { text: new JsonText(""), onUnknown: () => undefined, skipsOtherCases: true };

type Path = Array<string | number>;

function pathText(path: Path): string {
  return path.reduce<string>(
    (text, part) => (typeof part === "number" ? `${text}[${part}]` : text ? `${text}.${part}` : part),
    "",
  );
}

/** @param ignored names that are no fields of the message and are skipped without a report */
function readMessage(
  desc: DescMessage,
  value: unknown,
  path: Path,
  source: Source,
  ignored?: ReadonlySet<string>,
): Message {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong(path, "an object");
  const message = create(desc) as Message & Record<string, unknown>;
  const object = value as Record<string, unknown>;
  const { members, required, union } = shapeOf(desc);
  if (union) {
    message[union.localName] = readUnion(union, object, path, source);
    return message;
  }
  for (const name of Object.keys(object)) {
    const found = members.get(name);
    const member = object[name];
    if (!found) {
      if (!ignored?.has(name)) source.onUnknown([...path, name], member);
    } else if (!isAbsent(found.field, member))
      message[found.field.localName] = readField(found, member, [...path, name], source);
  }
  for (const { member, unless } of required)
    if (isMissing(member, object) && (!unless || isMissing(unless, object))) throw missing([...path, member.name]);
  return message;
}

function isMissing({ name, field, rule }: JsonMember, object: Record<string, unknown>): boolean {
  if (!Object.hasOwn(object, name)) return true;
  return rule?.mayBeEmpty ? object[name] === null : isAbsent(field, object[name]);
}

function readUnion(
  { tag, cases, tagOnly, anyCase }: JsonUnion,
  value: Record<string, unknown>,
  path: Path,
  source: Source,
): unknown {
  const word = Object.hasOwn(value, tag) ? value[tag] : null;
  if (word === null || word === "" || (Array.isArray(word) && word.length === 0)) throw missing([...path, tag]);
  const chosen = cases.get(word);
  if (!chosen) throw wrong([...path, tag], oneOf([...cases.keys()] as string[]));
  if (chosen.isSkipped) return { case: chosen.localName, value: create(chosen.message) };
  const ignored = source.skipsOtherCases ? anyCase : tagOnly;
  return { case: chosen.localName, value: readMessage(chosen.message, value, path, source, ignored) };
}

function readField({ field, rule }: JsonMember, value: unknown, path: Path, source: Source): unknown {
  if (rule?.inline) return value === "" ? "" : source.text.at(path);
  if (field.fieldKind === "map") return readMap(field, value, path, source);
  if (field.fieldKind !== "list") {
    const [first] = rule?.orString ? (field.message?.fields ?? []) : [];
    if (!first || typeof value !== "string") return readValue(field, value, path, source, first !== undefined);
    return { ...create(first.parent), [first.localName]: readValue(first, value, path, source) };
  }
  if (rule?.orString && typeof value === "string")
    return [readValue(field, field.message ? { type: "text", text: value } : value, path, source)];
  if (!Array.isArray(value)) throw wrong(path, rule?.orString ? "a string or a list" : "a list");
  return value.map((item, i) => readValue(field, item, [...path, i], source));
}

/** Reads an object whose values are of one type. */
function readMap(field: DescField, value: unknown, path: Path, source: Source): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrong(path, "an object");
  // Names are the caller's, and can be long or odd, so a failure names the whole.
  if (field.scalar === ScalarType.STRING && Object.values(value).some((item) => typeof item !== "string"))
    throw wrong(path, "an object whose values are strings");
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, readValue(field, item, path, source)]));
}

/** @param isOrString whether a string may stand in place of the message */
function readValue(field: DescField, value: unknown, path: Path, source: Source, isOrString = false): unknown {
  const { message, enum: enumeration, scalar } = field;
  if (isOrString && (typeof value !== "object" || Array.isArray(value))) throw wrong(path, "a string or an object");
  if (enumeration) return readEnum(enumeration, value, path);
  if (message?.typeName === "google.protobuf.Timestamp") return readTimestamp(value, path);
  if (message) return readMessage(message, value, path, source);
  switch (scalar) {
    case ScalarType.STRING:
      if (typeof value !== "string") throw wrong(path, "a string");
      // A lone surrogate is valid in JSON but not in UTF-8. It becomes U+FFFD, as in UTF-8 encoders.
      return value.toWellFormed();
    case ScalarType.BOOL:
      if (typeof value !== "boolean") throw wrong(path, "true or false");
      return value;
    case ScalarType.DOUBLE:
      if (typeof value !== "number" || !Number.isFinite(value)) throw wrong(path, "a number");
      return value;
    case ScalarType.INT32:
      if (typeof value !== "number" || !Number.isInteger(value)) throw wrong(path, "a whole number");
      // A number beyond 32 bits is outside of every range that the service checks. Clamping keeps that check's message.
      return Math.max(-2147483648, Math.min(2147483647, value));
    case ScalarType.BYTES:
      return readBytes(value, path);
    default:
      throw new TypeError(`The facade cannot read field ${field.toString()}.`);
  }
}

function readEnum(desc: DescEnum, value: unknown, path: Path): number {
  for (const [number, word] of words(desc)) if (word === value) return number;
  throw wrong(path, wordsOf(desc));
}

const RFC3339 = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/i;

function readTimestamp(value: unknown, path: Path): Message {
  const expected = 'a time such as "2026-01-31T00:00:00Z", or a date';
  if (typeof value !== "string" || !RFC3339.test(value)) throw wrong(path, expected);
  const date = new Date(value);
  if (Number.isNaN(date.getTime()) || !hasRealDay(value)) throw wrong(path, expected);
  return timestampFromDate(date);
}

function readBytes(value: unknown, path: Path): Uint8Array {
  if (typeof value !== "string") throw wrong(path, "a base64 string");
  const bytes = decodeBase64(value);
  if (!bytes) throw wrong(path, "a base64 string");
  return bytes;
}

/** Decodes base64 with or without padding; undefined for text that is not base64. */
export function decodeBase64(value: string): Uint8Array | undefined {
  const bytes = Buffer.from(value, "base64");
  // Buffer skips characters that are not base64. A body of the expected length had none.
  const digits = value.length - (value.endsWith("==") ? 2 : value.endsWith("=") ? 1 : 0);
  return bytes.length === Math.floor((digits * 3) / 4) && digits % 4 !== 1 ? bytes : undefined;
}

function missing(path: Path): Error {
  const field = pathText(path);
  return invalid(field, `${field} is required. Add it.`);
}

function wrong(path: Path, expected: string): Error {
  return mustBe(pathText(path), expected);
}
