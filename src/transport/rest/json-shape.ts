import { type DescField, type DescMessage, type DescOneof, getOption, hasOption } from "@bufbuild/protobuf";
import { type JsonRule, json, json_tag, skipped } from "../../../gen/chorus/v1/options_pb.js";
import { memberName } from "../../contract/json-names.ts";

/** A field of a message as a member of a JSON object. */
export interface JsonMember {
  readonly name: string;
  readonly field: DescField;
  readonly rule: JsonRule | undefined;
}

/** A case of a union. */
interface JsonCase {
  readonly localName: string;
  readonly message: DescMessage;
  /** Whether its members are not read. */
  readonly isSkipped: boolean;
}

/** A oneof of which one member of the object chooses the case. */
export interface JsonUnion {
  readonly localName: string;
  /** The member that chooses: its value is the name of a case. */
  readonly tag: string;
  readonly cases: ReadonlyMap<unknown, JsonCase>;
  /** The tag, and the tag with the members of all cases. */
  readonly tagOnly: ReadonlySet<string>;
  readonly anyCase: ReadonlySet<string>;
}

/** What a message is in JSON, as the options of its fields say. */
export interface JsonShape {
  /** By name. A field that stands in the path is no member. */
  readonly members: ReadonlyMap<string, JsonMember>;
  /** Required members. One with `unless` may be absent if the other is not. */
  readonly required: readonly { readonly member: JsonMember; readonly unless: JsonMember | undefined }[];
  readonly union: JsonUnion | undefined;
}

const shapes = new WeakMap<DescMessage, JsonShape>();

/** Reads the options of a message once: each look at an option decodes it, which takes longer than a small body. */
export function shapeOf(desc: DescMessage): JsonShape {
  let shape = shapes.get(desc);
  if (!shape) {
    shape = readShape(desc);
    shapes.set(desc, shape);
  }
  return shape;
}

function readShape(desc: DescMessage): JsonShape {
  const members = membersOf(desc);
  const required = [...members.values()].flatMap((member) => {
    const unless = members.get(member.rule?.requiredUnless ?? "");
    return member.rule?.required || unless ? [{ member, unless: member.rule?.required ? undefined : unless }] : [];
  });
  const union = desc.oneofs.find((oneof) => hasOption(oneof, json_tag));
  return { members, required, union: union && unionOf(union) };
}

function membersOf(desc: DescMessage): ReadonlyMap<string, JsonMember> {
  const members = desc.fields.map((field): JsonMember => {
    const rule = hasOption(field, json) ? getOption(field, json) : undefined;
    return { name: memberName(field), field, rule };
  });
  return new Map(members.filter(({ rule }) => !rule?.inPath).map((member) => [member.name, member]));
}

function unionOf(oneof: DescOneof): JsonUnion {
  const tag = getOption(oneof, json_tag);
  const cases = new Map<unknown, JsonCase>();
  for (const { name, localName, message } of oneof.fields)
    if (message) cases.set(name, { localName, message, isSkipped: hasOption(message, skipped) });
  const names = [...cases.values()].flatMap(({ message }) => [...membersOf(message).keys()]);
  return { localName: oneof.localName, tag, cases, tagOnly: new Set([tag]), anyCase: new Set([tag, ...names]) };
}
