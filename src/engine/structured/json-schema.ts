import type { JsonNode } from "../../contract/json.ts";
import { APPLICATORS } from "./applicators.ts";
import { ASSERTIONS } from "./assertions.ts";
import { type Keyword, NoSchema, type SchemaReader } from "./keyword.ts";
import { nodeAt } from "./path.ts";
import type { Pattern } from "./pattern.ts";
import { Patterns } from "./patterns.ts";
import type { Rule } from "./rules.ts";

/** A schema that values can be checked against. */
export interface Schema {
  readonly rule: Rule;
  /** Those of its keywords that are not checked. */
  readonly unchecked: ReadonlySet<string>;
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
  return { rule, unchecked: reader.unchecked };
}

/** Keywords that change what is valid and are not checked. The last three are of other drafts. */
const UNCHECKED: ReadonlySet<string> = new Set([
  ...["format", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef"],
  ...["$recursiveRef", "dependencies", "additionalItems"],
]);

const KEYWORDS: ReadonlyMap<string, Keyword> = new Map([...ASSERTIONS, ...APPLICATORS]);

class Reader implements SchemaReader {
  readonly #root: JsonNode;
  readonly #rules = new Map<JsonNode, Rule[]>();
  readonly #patterns = new Patterns();
  readonly #unread: [JsonNode, Rule[]][] = [];
  readonly unchecked = new Set<string>();

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
    if (UNCHECKED.has(name)) return this.skip(name);
    try {
      return KEYWORDS.get(name)?.(value, schema, this);
    } catch (error) {
      if (!(error instanceof NoSchema)) throw error;
      return this.skip(name);
    }
  }

  skip(keyword: string): Rule {
    this.unchecked.add(keyword);
    return (_, __, check) => check.doubt();
  }

  target(pointer: string): Rule {
    const schema = nodeAt(this.#root, pointer);
    if (!schema) throw new NoSchema();
    return this.rule(schema);
  }

  pattern(text: string): Pattern {
    const pattern = this.#patterns.read(text);
    if (!pattern) throw new NoSchema();
    return pattern;
  }
}
