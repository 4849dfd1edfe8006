import { type DescMessage, fromBinary, fromJson, type JsonValue, type MessageShape } from "@bufbuild/protobuf";
import { isFieldError } from "@bufbuild/protobuf/reflect";
import { Failure, invalid } from "../../failure.ts";
import { memberName } from "../../json-names.ts";
import { invalidJson } from "../invalid-json.ts";
import { addUnknown, type UnknownMembers } from "../unknown-members.ts";

/** Bytes of flags and length before each message in an envelope. */
const PREFIX_BYTES = 5;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Takes the message out of a body with an envelope: gRPC, gRPC-Web or a Connect stream.
 * @throws Failure unsupported_compression or invalid_request
 */
export function unwrap(body: Uint8Array): Uint8Array {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  const flags = body[0] ?? 0;
  if (flags === 1) throw new Failure("unsupported_compression");
  if (flags !== 0 || body.length < PREFIX_BYTES || view.getUint32(1) !== body.length - PREFIX_BYTES)
    throw new Failure("invalid_request", { message: "The body must hold exactly one message with its prefix." });
  return body.subarray(PREFIX_BYTES);
}

/**
 * Parses a message in protobuf's JSON or binary format.
 * @param found receives the members of JSON that the message does not have
 * @throws Failure invalid_json or invalid_request, without the parser's text, which may quote the body
 */
export function parseMessage<D extends DescMessage>(
  desc: D,
  bytes: Uint8Array,
  json: boolean,
  found: UnknownMembers,
): MessageShape<D> {
  if (json) return parseJson(desc, bytes, found);
  try {
    return fromBinary(desc, bytes);
  } catch (cause) {
    const message = `The message is not a ${desc.typeName} in protobuf's binary format.`;
    throw new Failure("invalid_request", { message, cause });
  }
}

function parseJson<D extends DescMessage>(desc: D, bytes: Uint8Array, found: UnknownMembers): MessageShape<D> {
  let value: JsonValue;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch (cause) {
    throw invalidJson(cause);
  }
  const message = messageOf(desc, value);
  findUnknown(desc, value, "", found);
  return message;
}

function messageOf<D extends DescMessage>(desc: D, value: JsonValue): MessageShape<D> {
  try {
    return fromJson(desc, value, { ignoreUnknownFields: true });
  } catch {
    return parseWithoutEmpty(desc, value);
  }
}

/** Adds the members that protobuf's JSON ignores, by the path with the names of the public JSON. */
function findUnknown(desc: DescMessage, value: JsonValue, path: string, found: UnknownMembers): void {
  // Messages of protobuf itself, such as Timestamp, have JSON forms of their own.
  if (typeof value !== "object" || value === null || desc.typeName.startsWith("google.protobuf.")) return;
  for (const [name, member] of Object.entries(value)) {
    const field = desc.fields.find((one) => one.jsonName === name || one.name === name);
    const at = path + (field ? memberName(field) : name);
    if (!field) addUnknown(found, at);
    else if (!field.message) continue;
    else if (!Array.isArray(member)) findUnknown(field.message, member, `${at}.`, found);
    else for (const [i, item] of member.entries()) findUnknown(field.message, item, `${at}[${i}].`, found);
  }
}

/**
 * Reads a message in which an empty string or an empty list stands for an absent field, as null does. Protobuf's JSON
 * allows that only in fields of these types, so this is the second attempt.
 */
function parseWithoutEmpty<D extends DescMessage>(desc: D, value: JsonValue): MessageShape<D> {
  try {
    return fromJson(desc, withoutEmpty(value), { ignoreUnknownFields: true });
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    if (!isFieldError(cause)) throw new Failure("invalid_json", { cause: error });
    const { name, parent } = cause.field();
    throw invalid(name, `${name} does not have the type that ${parent?.typeName ?? desc.typeName} states.`);
  }
}

/** A copy without the members that are an empty string or an empty list. */
function withoutEmpty(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([, member]) => member !== "" && !isEmptyList(member));
  return Object.fromEntries(members.map(([name, member]) => [name, withoutEmpty(member)]));
}

function isEmptyList(value: JsonValue): boolean {
  return Array.isArray(value) && value.length === 0;
}
