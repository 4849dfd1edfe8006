import type { DescEnum, DescField, DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { memberName } from "../../src/contract/json-names.ts";

/** A place in the JSON of a request, with the objects around it. */
export interface Place {
  /** Path with the public names, such as `messages[0]`; empty for the request itself. */
  readonly path: string;
  /** @returns the request that has this value at the place */
  with(value: JsonValue): JsonObject;
}

export interface EnumSite extends Place {
  readonly desc: DescEnum;
  readonly isItem: boolean;
}

/** The enum fields of a message and of the messages in it; `spell` names their members. */
export function enumSites(desc: DescMessage, spell: (field: DescField) => string = memberName): EnumSite[] {
  return messagePlaces(desc, spell).flatMap(({ message, ...place }) =>
    message.fields.flatMap((field) => {
      if (!field.enum) return [];
      const { path, inside } = membersOf(field, place.path);
      const within = (value: JsonValue) => place.with({ [spell(field)]: inside(value) });
      return [{ path, desc: field.enum, isItem: field.fieldKind !== "enum", with: within }];
    }),
  );
}

/** The message itself and the messages in it, without those of protobuf. */
export function messagePlaces(
  message: DescMessage,
  spell: (field: DescField) => string = memberName,
  place: Place = { path: "", with: (value) => value as JsonObject },
): (Place & { message: DescMessage })[] {
  const inner = message.fields.flatMap((field) => {
    if (!field.message || field.message.typeName.startsWith("google.protobuf.")) return [];
    const { path, inside } = membersOf(field, place.path);
    const within = (value: JsonValue) => place.with({ [spell(field)]: inside(value) });
    return messagePlaces(field.message, spell, { path, with: within });
  });
  return [{ ...place, message }, ...inner];
}

/** The path of a field, or of its first item, and the member that holds this one value. */
function membersOf(field: DescField, parent: string): { path: string; inside: (value: JsonValue) => JsonValue } {
  const path = parent === "" ? memberName(field) : `${parent}.${memberName(field)}`;
  if (field.fieldKind === "list") return { path: `${path}[0]`, inside: (value) => [value] };
  if (field.fieldKind === "map") return { path: `${path}.1`, inside: (value) => ({ 1: value }) };
  return { path, inside: (value) => value };
}
