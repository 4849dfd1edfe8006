import { type JsonNode, member } from "../../contract/json.ts";
import { targetOf } from "../../contract/schema-parts.ts";
import { membersOf } from "../port/schema.ts";

type Members = Extract<JsonNode, { kind: "object" }>["members"];

/** Most listed values, and schemas, each of which counts as five, that are read. References can multiply them. */
const MAX_WORK = 10_000;
/** Most schemas within each other. It bounds the stack. */
const MAX_DEPTH = 100;

/** Keywords that `settle` replaces. */
const REPLACED: ReadonlySet<string> = new Set(["$ref", "anyOf", "oneOf", "allOf", "$defs", "definitions"]);

/**
 * Writes a schema without references and choices: of a choice, the first branch counts of which there are values that
 * end, and null stays possible. What contains itself is left out.
 * @returns the same node if nothing changes
 */
export function settle(root: JsonNode): JsonNode {
  return new Settler(root).settled(root) ?? root;
}

class Settler {
  readonly #root: JsonNode;
  /** Schemas that are being settled. */
  readonly #open = new Set<JsonNode>();
  #left = MAX_WORK;

  constructor(root: JsonNode) {
    this.#root = root;
  }

  /** @returns undefined if no value ends */
  settled(node: JsonNode): JsonNode | undefined {
    this.#left -= 5 + itemsOf(member(node, "enum")).length;
    if (this.#open.has(node) || this.#open.size > MAX_DEPTH || this.#left < 0) return undefined;
    if (node.kind !== "object") return node;
    this.#open.add(node);
    const inner = this.#inner(node);
    this.#open.delete(node);
    return inner;
  }

  #inner(node: JsonNode): JsonNode | undefined {
    const bases = this.#bases(node);
    if (bases.includes(undefined)) return undefined;
    const own = membersOf(node).filter(([name]) => !REPLACED.has(name));
    const members = this.#ended(bases.reduceRight<Members>((all, base) => joined(membersOf(base), all), own));
    return members && { kind: "object", members };
  }

  /** What stands for the references and choices of a schema. */
  #bases(node: JsonNode): (JsonNode | undefined)[] {
    const target = targetOf(node, this.#root);
    const choices = ["anyOf", "oneOf"].flatMap((keyword) => {
      const branches = itemsOf(member(node, keyword));
      return branches.length > 0 ? [this.#chosen(branches)] : [];
    });
    const all = itemsOf(member(node, "allOf")).map((schema) => this.settled(schema));
    return [...(target ? [this.settled(target)] : []), ...choices, ...all];
  }

  #chosen(branches: readonly JsonNode[]): JsonNode | undefined {
    const nothing = branches.find(isNull);
    for (const branch of branches) {
      const settled = isNull(branch) ? undefined : this.settled(branch);
      if (settled) return nothing ? orNull(settled) : settled;
    }
    return nothing;
  }

  /** The members of a schema without the properties and items of which no value ends. */
  #ended(members: Members): Members | undefined {
    const ended: Members = [];
    const required = new Set(
      itemsOf(memberOf(members, "required")).map((name) => (name.kind === "scalar" ? JSON.parse(name.text) : "")),
    );
    for (const [name, value] of members) {
      if (name === "properties") {
        const properties = membersOf(value).flatMap(([property, schema]): Members => {
          const settled = this.settled(schema);
          return settled ? [[property, settled]] : [];
        });
        const found = new Set(properties.map(([property]) => property));
        if (membersOf(value).some(([property]) => required.has(property) && !found.has(property))) return undefined;
        ended.push([name, { kind: "object", members: properties }]);
      } else if (name === "items") {
        const items = this.settled(value);
        const least = memberOf(members, "minItems");
        if (items) ended.push([name, items]);
        else if (least?.kind === "scalar" && Number(least.text) > 0) return undefined;
      } else ended.push([name, value]);
    }
    return ended;
  }
}

function memberOf(members: Members, name: string): JsonNode | undefined {
  return members.find(([own]) => own === name)?.[1];
}

function itemsOf(node: JsonNode | undefined): readonly JsonNode[] {
  return node?.kind === "array" ? node.items : [];
}

/** The members of two schemas that both hold. Of keywords that cannot be joined, that of the second counts. */
function joined(first: Members, second: Members): Members {
  const all = new Map(first);
  for (const [name, value] of second) {
    const own = all.get(name);
    if (name === "properties") all.set(name, { kind: "object", members: joined(membersOf(own), membersOf(value)) });
    else if (name === "required") all.set(name, { kind: "array", items: [...itemsOf(own), ...itemsOf(value)] });
    else all.set(name, value);
  }
  return [...all];
}

function isNull(schema: JsonNode): boolean {
  const [type, value] = [member(schema, "type"), member(schema, "const")];
  return (type?.kind === "scalar" && type.text === '"null"') || (value?.kind === "scalar" && value.text === "null");
}

/** The schema, or null. One with listed values stays as it is. */
function orNull(schema: JsonNode): JsonNode {
  const type = member(schema, "type");
  if (!type || member(schema, "enum") || member(schema, "const")) return schema;
  const items = [...(type.kind === "array" ? type.items : [type]), { kind: "scalar", text: '"null"' } as const];
  return { kind: "object", members: joined(membersOf(schema), [["type", { kind: "array", items }]]) };
}
