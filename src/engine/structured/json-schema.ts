import { type JsonNode, member } from "../../contract/json.ts";
import { nodeAt, targetOf } from "../../contract/schema-parts.ts";
import { APPLICATORS } from "./applicators.ts";
import { ASSERTIONS, TYPES } from "./assertions.ts";
import { type Keyword, type Marks, NoSchema, type SchemaReader } from "./keyword.ts";
import type { Pattern } from "./pattern.ts";
import { Patterns } from "./patterns.ts";
import { type Rule, scalarKey, stringOf } from "./rules.ts";

/** A schema that values can be checked against. */
export interface Schema {
  readonly rule: Rule;
  /** Whether the work of a check grows with the value only. Without that, parts of it may be looked at many times. */
  readonly isPlain: boolean;
  /** Those of its keywords that are not checked, each with the first schema that has it. */
  readonly unchecked: ReadonlyMap<string, JsonNode>;
}

/**
 * Prepares the check of values against a schema of JSON Schema 2020-12, in a time that grows with its length. Numbers
 * are compared by their exact values, and every name is an ordinary one. `nullable` of OpenAPI counts, too.
 * docs/decisions/strict-json.md says why no library does this.
 * @throws NoSchema
 */
export function prepareSchema(root: JsonNode): Schema {
  const reader = new Reader(root);
  const rule = reader.rule(root);
  reader.finish();
  const { isPlain, unchecked } = reader;
  return { rule, isPlain, unchecked };
}

/** Keywords that change what is valid and are not checked. The last three are of other drafts. */
const UNCHECKED: ReadonlySet<string> = new Set([
  ...["format", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef"],
  ...["$recursiveRef", "dependencies", "additionalItems"],
]);

export const KEYWORDS: ReadonlyMap<string, Keyword> = new Map([...ASSERTIONS, ...APPLICATORS]);

/** Keywords that look at each part of a value once at most. */
const PLAIN: ReadonlySet<string> = new Set([
  ...ASSERTIONS.map(([name]) => name).filter((name) => name !== "uniqueItems" && name !== "multipleOf"),
  ...["items", "prefixItems", "properties", "additionalProperties"],
]);

/** Most members by which the branches of a choice are told apart. */
const MAX_MARKS = 8;
/** Most references to references that are followed to find the values of members. */
const MAX_REFERENCES = 3;

class Reader implements SchemaReader {
  readonly #root: JsonNode;
  readonly #rules = new Map<JsonNode, Rule[]>();
  readonly #marks = new Map<JsonNode, Marks>();
  readonly #listed = new Map<JsonNode, ReadonlySet<string> | undefined>();
  readonly #patterns = new Patterns();
  readonly #unread: [JsonNode, Rule[]][] = [];
  isPlain = true;
  readonly unchecked = new Map<string, JsonNode>();

  constructor(root: JsonNode) {
    this.#root = root;
  }

  rule(schema: JsonNode): Rule {
    let rules = this.#rules.get(schema);
    if (!rules) {
      rules = [];
      this.#rules.set(schema, rules);
      this.#unread.push([schema, rules]);
    }
    const own = rules;
    return (value, place, check) => check.apply(own, value, place);
  }

  /** Reads all schemas. @throws NoSchema */
  finish(): void {
    for (let next = this.#unread.pop(); next; next = this.#unread.pop()) {
      const [schema, rules] = next;
      if (schema.kind === "array") throw new NoSchema();
      if (schema.kind === "scalar") {
        if (schema.text === "false") rules.push((_, place, check) => check.fail(place, "must not be there"));
        else if (schema.text !== "true") throw new NoSchema();
        continue;
      }
      for (const [name, value] of schema.members) {
        const rule = this.#ruleOf(name, value, schema);
        if (rule) rules.push(rule);
      }
    }
  }

  /** The rule of a keyword. One whose value cannot be read, such as a pattern of another language, is not checked. */
  #ruleOf(name: string, value: JsonNode, schema: JsonNode): Rule | undefined {
    if (UNCHECKED.has(name)) return this.skip(name, schema);
    const keyword = KEYWORDS.get(name);
    if (keyword && !PLAIN.has(name)) this.isPlain = false;
    try {
      return keyword?.(value, schema, this);
    } catch (error) {
      if (!(error instanceof NoSchema)) throw error;
      return this.skip(name, schema);
    }
  }

  skip(keyword: string, schema: JsonNode): Rule {
    if (!this.unchecked.has(keyword)) this.unchecked.set(keyword, schema);
    return (_, __, check) => check.doubt();
  }

  target(pointer: string): Rule {
    const schema = nodeAt(this.#root, pointer);
    if (!schema) throw new NoSchema();
    return this.rule(schema);
  }

  marks(schema: JsonNode): Marks {
    const own = this.#resolved(schema);
    let marks = this.#marks.get(own);
    if (!marks) {
      const named = member(own, "properties");
      const properties = named?.kind === "object" ? named.members : [];
      const listed = properties.flatMap(([name, property]): [string, ReadonlySet<string>][] => {
        const keys = this.#listedKeys(this.#resolved(property));
        return keys ? [[name, keys]] : [];
      });
      marks = { types: typesIn(own), members: new Map(listed.slice(0, MAX_MARKS)) };
      this.#marks.set(own, marks);
    }
    return marks;
  }

  #listedKeys(schema: JsonNode): ReadonlySet<string> | undefined {
    if (!this.#listed.has(schema)) this.#listed.set(schema, listedKeys(schema));
    return this.#listed.get(schema);
  }

  /** The schema that a schema refers to, else the schema itself. */
  #resolved(schema: JsonNode): JsonNode {
    let resolved = schema;
    for (let steps = 0; steps < MAX_REFERENCES; steps++) {
      const target = targetOf(resolved, this.#root);
      if (!target) break;
      resolved = target;
    }
    return resolved;
  }

  pattern(text: string): Pattern {
    const pattern = this.#patterns.read(text);
    if (!pattern) throw new NoSchema();
    return pattern;
  }
}

/** The only types of a schema's values. Undefined: any, or some that nobody knows. */
function typesIn(schema: JsonNode): ReadonlySet<string> | undefined {
  const type = member(schema, "type");
  if (!type || member(schema, "nullable")) return undefined;
  const names = new Set((type.kind === "array" ? type.items : [type]).map((name) => stringOf(name) ?? ""));
  return names.size > 0 && names.isSubsetOf(TYPES) ? names : undefined;
}

/** The keys of the only values that a schema allows. Undefined: it lists none, or some are no scalars. */
function listedKeys(schema: JsonNode): ReadonlySet<string> | undefined {
  const [constant, values] = [member(schema, "const"), member(schema, "enum")];
  const listed = constant ? [constant] : values?.kind === "array" ? values.items : [];
  const keys = listed.map(scalarKey).filter((key) => key !== undefined);
  return keys.length > 0 && keys.length === listed.length ? new Set(keys) : undefined;
}
