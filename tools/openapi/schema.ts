import {
  type DescEnum,
  type DescExtension,
  type DescField,
  type DescMessage,
  type DescOneof,
  getOption,
  ScalarType,
} from "@bufbuild/protobuf";
import { getComments } from "@bufbuild/protoplugin";
import { memberName, words } from "../../src/contract/json-names.ts";
import { BOUNDS, INLINE, OPTIONAL } from "./bounds.ts";

/** A JSON Schema (2020-12), or any other object of the document. */
export type Schema = { [keyword: string]: unknown };

/** The field option `chorus.v1.json`: rules of the JSON form. */
interface JsonRule {
  inline: boolean;
  required: boolean;
  nullable: boolean;
  nullBeside: string;
  orString: boolean;
  inPath: boolean;
  qualifier: string;
  omitEmpty: boolean;
}

/** Collects the schemas of messages and enums in their JSON form, by name. */
export interface Schemas {
  /** The schemas so far, by name. */
  readonly named: Record<string, Schema>;
  /** A reference to the schema of a message. Adds the schema if it is missing. */
  message(desc: DescMessage): Schema;
  /** The schema of one field, with its comment. */
  field(field: DescField): Schema;
}

/**
 * Creates an empty collection. The JSON form is that of `src/transport/rest/decode.ts` and
 * `src/transport/rest/encode.ts`.
 * @param json the extension `chorus.v1.json`, from the same descriptors as the messages
 * @param jsonTag the extension `chorus.v1.json_tag`, from the same descriptors
 * @param requests messages that only callers send
 */
export function createSchemas(
  json: DescExtension,
  jsonTag: DescExtension,
  requests: ReadonlySet<DescMessage>,
): Schemas {
  const named: Record<string, Schema> = {};
  return { named, message, field };

  function rule(field: DescField): JsonRule {
    return getOption(field, json) as unknown as JsonRule;
  }

  function message(desc: DescMessage): Schema {
    const name = schemaName(desc);
    if (!named[name]) {
      // Set before the fields are read, because a message may contain itself.
      named[name] = {};
      const union = desc.oneofs.find((oneof) => getOption(oneof, jsonTag) !== "");
      Object.assign(named[name], {
        type: "object",
        ...described(desc),
        ...(union ? unionMembers(union) : members(desc)),
      });
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  function members(desc: DescMessage): Schema {
    const fields = desc.fields.filter((f) => !rule(f).inPath);
    const required = fields.filter((f) => (isRequest(desc) ? rule(f).required : isAlwaysSent(f)));
    return {
      ...(required.length > 0 ? { required: required.map(memberName) } : {}),
      properties: Object.fromEntries(fields.map((f) => [memberName(f), field(f)])),
    };
  }

  /** The tag that names the case, and the members of all cases, which stand beside it. */
  function unionMembers(union: DescOneof): Schema {
    const tag = String(getOption(union, jsonTag));
    const name = `${schemaName(union.parent)}${tag.charAt(0).toUpperCase()}${tag.slice(1)}`;
    named[name] = enumOf(union, new Map(union.fields.map((one) => [one.name, one])));
    const fields = union.fields.flatMap(({ message }) => message?.fields ?? []);
    const sameNames = Map.groupBy(fields, memberName);
    return {
      ...(OPTIONAL.has(`${schemaName(union.parent)}.${tag}`) ? {} : { required: [tag] }),
      properties: {
        [tag]: { ...wordOf(name, union.parent), ...described(union) },
        ...Object.fromEntries([...sameNames].map(([member, those]) => [member, oneOf(those.map(field))])),
      },
    };
  }

  function field(field: DescField): Schema {
    const one = value(field);
    const { nullable, nullBeside, inline, orString, qualifier } = rule(field);
    const list = { type: "array", items: one };
    const several = orString ? { anyOf: [{ type: "string" }, list] } : list;
    const map = { type: "object", additionalProperties: one };
    const [first] = orString && field.fieldKind !== "list" ? (field.message?.fields ?? []) : [];
    const orWord = first ? { anyOf: [value(first), one] } : one;
    const single = qualifier === "" ? orWord : { anyOf: [one, { type: "string", pattern: "^[a-z]+:.+$" }] };
    const schema = field.fieldKind === "list" ? several : field.fieldKind === "map" ? map : single;
    return {
      ...(nullable || nullBeside !== "" ? orNull(schema) : schema),
      // The comment describes the proto field, which is a string.
      ...described(field, inline ? " In JSON it is the value itself, not a string." : ""),
      ...BOUNDS[fullName(field)],
    };
  }

  function value(field: DescField): Schema {
    const { message: inner, enum: enumeration, scalar } = field;
    if (inner?.typeName === "google.protobuf.Timestamp") return { type: "string", format: "date-time" };
    if (inner) return message(inner);
    if (enumeration) return enumSchema(enumeration, field.parent);
    if (rule(field).inline)
      return INLINE.others[fullName(field)] ?? (isRequest(field.parent) ? INLINE.request : INLINE.response);
    switch (scalar) {
      case ScalarType.STRING:
        return { type: "string" };
      case ScalarType.BYTES:
        return { type: "string", contentEncoding: "base64" };
      case ScalarType.BOOL:
        return { type: "boolean" };
      case ScalarType.DOUBLE:
        return { type: "number", format: "double" };
      case ScalarType.INT32:
        return { type: "integer", format: "int32" };
      case ScalarType.INT64:
        return { type: "integer", format: "int64" };
      default:
        throw new TypeError(`The reference cannot describe field ${field.toString()}.`);
    }
  }

  function enumSchema(desc: DescEnum, parent: DescMessage): Schema {
    const known = words(desc);
    const values = desc.values.filter(({ number }) => known.has(number));
    named[desc.name] = enumOf(desc, new Map(values.map((value) => [known.get(value.number) ?? "", value])));
    return wordOf(desc.name, parent);
  }

  function wordOf(name: string, parent: DescMessage): Schema {
    return isRequest(parent) ? { $ref: `#/components/schemas/${name}` } : openWord(name);
  }

  /** Whether the member is in every response: fields without `optional`, and those that may be null. */
  function isAlwaysSent(field: DescField): boolean {
    const { nullable, omitEmpty } = rule(field);
    return (!field.proto.proto3Optional || nullable) && !omitEmpty && !OPTIONAL.has(fullName(field));
  }

  function isRequest(desc: DescMessage): boolean {
    return requests.has(desc);
  }
}

/**
 * A word of a response: one that the named schema lists, or one that is added later. Generators of clients make it a
 * string, or a union of the list and a string. They refuse other words where a list stands alone, as in requests.
 */
export function openWord(name: string): Schema {
  return { anyOf: [{ $ref: `#/components/schemas/${name}` }, { type: "string" }] };
}

/** The comment of a declaration in the proto files as one line. */
export function commentOf(desc: Parameters<typeof getComments>[0]): string {
  const text = getComments(desc).leading ?? "";
  return text.replace(/\s*\n\s*/g, " ").trim();
}

function enumOf(desc: DescEnum | DescOneof, values: ReadonlyMap<string, Parameters<typeof getComments>[0]>): Schema {
  const meanings = [...values].map(([word, value]) => `- \`${word}\`: ${commentOf(value)}`);
  return {
    type: "string",
    enum: [...values.keys()],
    description: `${commentOf(desc)}\n\n${meanings.join("\n")}`,
  };
}

function described(desc: DescMessage | DescField | DescOneof, more = ""): Schema {
  const description = commentOf(desc) + more;
  return description === "" ? {} : { description };
}

/** The schema of a member that several cases of a union have. */
function oneOf(schemas: readonly Schema[]): Schema {
  const [first = {}] = schemas;
  const texts = new Set(schemas.map(({ description: _, ...schema }) => JSON.stringify(schema)));
  if (texts.size === 1) return first;
  const description = [...new Set(schemas.map(({ description = "" }) => description))].join(" Or: ");
  return { anyOf: [...texts].map((text) => JSON.parse(text)), description };
}

function orNull(schema: Schema): Schema {
  const { type, anyOf } = schema;
  if (Array.isArray(type)) return schema;
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...anyOf, { type: "null" }] };
  return typeof type === "string" ? { ...schema, type: [type, "null"] } : { anyOf: [schema, { type: "null" }] };
}

/** `StreamGenerateResponse.Delta` is `StreamGenerateResponseDelta`. */
function schemaName(desc: DescMessage): string {
  return desc.typeName.split(".").slice(2).join("");
}

function fullName(field: DescField): string {
  return `${schemaName(field.parent)}.${memberName(field)}`;
}

/** The messages that a request consists of: `desc` and all that it contains. */
export function withParts(desc: DescMessage, found = new Set<DescMessage>()): Set<DescMessage> {
  if (found.has(desc)) return found;
  found.add(desc);
  for (const { message } of desc.fields) if (message) withParts(message, found);
  return found;
}
