import { type JsonNode, member } from "../../contract/json.ts";
import { compareDecimals, type Decimal, decimalOf, doubleOf, isMultiple } from "./decimal.ts";
import { nodeAt, quoted } from "./path.ts";
import { type Check, isNumber, keyOf, type Rule, shortened, stepsForAll, stringOf, typeOf } from "./rules.ts";

/** Thrown for what is no schema of JSON Schema 2020-12. */
export class NoSchema extends Error {}

/** A schema that values can be checked against. */
export interface Schema {
  readonly rule: Rule;
  /** Whether it has regular expressions, whose time only a clock can bound. */
  readonly hasPatterns: boolean;
  /** The first of its keywords that is not checked; undefined: none. */
  readonly unchecked: string | undefined;
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
  const { hasPatterns, unchecked } = reader;
  return { rule, hasPatterns, unchecked };
}

/** Keywords that change what is valid and are not checked. The last three are of other drafts. */
const UNCHECKED: ReadonlySet<string> = new Set([
  ...["format", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef"],
  ...["$recursiveRef", "dependencies", "additionalItems"],
]);

/** What a keyword demands. Undefined: nothing. */
type Keyword = (value: JsonNode, schema: JsonNode, reader: Reader) => Rule | undefined;

class Reader {
  readonly #root: JsonNode;
  readonly #rules = new Map<JsonNode, Rule[]>();
  readonly #patterns = new Map<string, RegExp>();
  readonly #unread: [JsonNode, Rule[]][] = [];
  hasPatterns = false;
  unchecked: string | undefined;

  constructor(root: JsonNode) {
    this.#root = root;
  }

  /** The rule of a schema, which is read later: schemas can refer to themselves. */
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

  /** The rule of a keyword that is not checked. */
  skip(keyword: string): Rule {
    this.unchecked ??= keyword;
    return (_, __, check) => check.doubt();
  }

  target(pointer: string): Rule {
    const schema = nodeAt(this.#root, pointer);
    if (!schema) throw new NoSchema();
    return this.rule(schema);
  }

  pattern(text: string): RegExp {
    this.hasPatterns = true;
    const pattern = this.#patterns.get(text) ?? expressionOf(text);
    this.#patterns.set(text, pattern);
    return pattern;
  }
}

/** Without the flag `u`, more escapes are possible. Many authors write them, as in `\d\-\d`. @throws NoSchema */
function expressionOf(pattern: string): RegExp {
  for (const flags of ["u", ""]) {
    try {
      return new RegExp(pattern, flags);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  throw new NoSchema();
}

const TYPES: ReadonlySet<string> = new Set(["object", "array", "string", "number", "integer", "boolean", "null"]);

const type: Keyword = (node, schema) => {
  const names = new Set(node.kind === "array" ? texts(node) : [text(node)]);
  if (!names.isSubsetOf(TYPES)) throw new NoSchema();
  const nullable = member(schema, "nullable");
  if (nullable?.kind === "scalar" && nullable.text === "true") names.add("null");
  const expected = `must be ${[...names].join(",")}`;
  return (value, place, check) => {
    const own = typeOf(value);
    if (!names.has(own) && !(own === "integer" && names.has("number"))) check.fail(place, expected);
  };
};

const oneValue: Keyword = (node) => {
  const key = keyOf(node);
  const expected = `must be ${shortened(node)}`;
  return (value, place, check) => {
    if (keyWithin(value, check) !== key) check.fail(place, expected);
  };
};

const values: Keyword = (node) => {
  const keys = new Set(list(node).map(keyOf));
  const expected = `must be one of ${shortened(node)}`;
  return (value, place, check) => {
    if (!keys.has(keyWithin(value, check))) check.fail(place, expected);
  };
};

function keyWithin(value: JsonNode, check: Check): string {
  check.spend(stepsForAll(value));
  return keyOf(value);
}

/** @param isWrong by the order of a number and the bound: -1, 0 or 1 */
function bound(sign: string, isWrong: (order: number) => boolean): Keyword {
  return (node) => {
    const limit = number(node);
    const double = doubleOf(node);
    const expected = `must be ${sign} ${shortened(node)}`;
    return (value, place, check) => {
      if (value.kind !== "scalar" || !isNumber(value)) return;
      const own = doubleOf(value);
      const order =
        own !== undefined && double !== undefined ? Math.sign(own - double) : compareDecimals(number(value), limit);
      if (isWrong(order)) check.fail(place, expected);
    };
  };
}

const multipleOf: Keyword = (node) => {
  const base = number(node);
  if (base.digits === "" || base.negative) throw new NoSchema();
  const expected = `must be multiple of ${shortened(node)}`;
  return (value, place, check) => {
    const own = decimalOf(value);
    const spend = (digits: number) => check.spend(digits >> 5);
    if (own && !isMultiple(own, base, spend)) check.fail(place, expected);
  };
};

/** @param size of a value that the keyword concerns; undefined for others */
function atLeast(what: string, size: (value: JsonNode) => number | undefined): Keyword {
  return (node) => {
    const least = count(node);
    const expected = `must NOT have fewer than ${shortened(node)} ${what}`;
    return (value, place, check) => {
      const own = size(value);
      if (own !== undefined && own < least) check.fail(place, expected);
    };
  };
}

/** @param size as in `atLeast` */
function atMost(what: string, size: (value: JsonNode) => number | undefined): Keyword {
  return (node) => {
    const most = count(node);
    const expected = `must NOT have more than ${shortened(node)} ${what}`;
    return (value, place, check) => {
      const own = size(value);
      if (own !== undefined && own > most) check.fail(place, expected);
    };
  };
}

/** In code points. */
function lengthOf(value: JsonNode): number | undefined {
  const own = stringOf(value);
  if (own === undefined) return undefined;
  let length = 0;
  for (const _ of own) length++;
  return length;
}

const itemsOf = (value: JsonNode) => (value.kind === "array" ? value.items.length : undefined);
const membersOf = (value: JsonNode) => (value.kind === "object" ? value.members.length : undefined);

const pattern: Keyword = (node, _, reader) => {
  const expression = reader.pattern(text(node));
  const expected = `must match pattern ${shortened(node)}`;
  return (value, place, check) => {
    const own = stringOf(value);
    if (own !== undefined && !expression.test(own)) check.fail(place, expected);
  };
};

const items: Keyword = (node, schema, reader) => {
  // Of earlier drafts.
  if (node.kind === "array") return reader.skip("items");
  const prefix = member(schema, "prefixItems");
  const first = prefix ? list(prefix).length : 0;
  const rule = reader.rule(node);
  return (value, above, check) => {
    if (value.kind !== "array") return;
    for (let i = first; i < value.items.length; i++) rule(value.items[i] as JsonNode, { above, step: i }, check);
  };
};

const prefixItems: Keyword = (node, _, reader) => {
  const rules = list(node).map((schema) => reader.rule(schema));
  return (value, above, check) => {
    if (value.kind !== "array") return;
    for (const [i, item] of value.items.slice(0, rules.length).entries()) rules[i]?.(item, { above, step: i }, check);
  };
};

const uniqueItems: Keyword = (node) => {
  if (!truth(node)) return undefined;
  return (value, place, check) => {
    if (value.kind !== "array") return;
    const keys = new Set(value.items.map((item) => keyWithin(item, check)));
    if (keys.size < value.items.length) check.fail(place, "must NOT have duplicate items");
  };
};

const contains: Keyword = (node, schema, reader) => {
  const rule = reader.rule(node);
  const [low, high] = [member(schema, "minContains"), member(schema, "maxContains")];
  const [least, most] = [low ? count(low) : 1, high ? count(high) : Number.POSITIVE_INFINITY];
  return (value, above, check) => {
    if (value.kind !== "array") return;
    const found = value.items.map((item, step) => check.fits(rule, item, { above, step }));
    if (found.filter((fits) => fits !== false).length < least)
      check.fail(above, `must contain at least ${least} valid item(s)`);
    if (found.filter((fits) => fits).length > most) check.fail(above, `must contain at most ${most} valid item(s)`);
  };
};

const properties: Keyword = (node, _, reader) => {
  const rules = new Map(members(node).map(([name, schema]) => [name, reader.rule(schema)]));
  return (value, above, check) => {
    if (value.kind !== "object") return;
    for (const [name, child] of value.members) rules.get(name)?.(child, { above, step: name }, check);
  };
};

const patternProperties: Keyword = (node, _, reader) => {
  const rules = members(node).map(([name, schema]) => [reader.pattern(name), reader.rule(schema)] as const);
  return (value, above, check) => {
    if (value.kind !== "object") return;
    check.spend(value.members.length * rules.length);
    for (const [name, child] of value.members)
      for (const [expression, rule] of rules) if (expression.test(name)) rule(child, { above, step: name }, check);
  };
};

const additionalProperties: Keyword = (node, schema, reader) => {
  const [named, patterned] = [member(schema, "properties"), member(schema, "patternProperties")];
  const known = new Set(named ? members(named).map(([name]) => name) : []);
  const expressions = patterned ? members(patterned).map(([name]) => reader.pattern(name)) : [];
  const rule = node.kind === "scalar" && node.text === "false" ? undefined : reader.rule(node);
  return (value, above, check) => {
    if (value.kind !== "object") return;
    check.spend(value.members.length * expressions.length);
    for (const [name, child] of value.members) {
      if (known.has(name) || expressions.some((expression) => expression.test(name))) continue;
      if (rule) rule(child, { above, step: name }, check);
      else check.fail(above, `must not have the property ${quoted(name)}`);
    }
  };
};

const propertyNames: Keyword = (node, _, reader) => {
  const rule = reader.rule(node);
  return (value, above, check) => {
    if (value.kind !== "object") return;
    for (const [name] of value.members)
      rule({ kind: "scalar", text: JSON.stringify(name) }, { above, step: name }, check);
  };
};

const required: Keyword = (node) => demand(texts(node));

function demand(names: readonly string[]): Rule {
  return (value, place, check) => {
    if (value.kind !== "object") return;
    check.spend(names.length);
    const own = new Set(value.members.map(([name]) => name));
    for (const name of names) if (!own.has(name)) check.fail(place, `must have the property ${quoted(name)}`);
  };
}

/** @param rule of the members of `dependentRequired` and `dependentSchemas` */
function dependent(rule: (node: JsonNode, reader: Reader) => Rule): Keyword {
  return (node, _, reader) => {
    const rules = new Map(members(node).map(([name, of]) => [name, rule(of, reader)]));
    return (value, place, check) => {
      if (value.kind !== "object") return;
      for (const [name] of value.members) rules.get(name)?.(value, place, check);
    };
  };
}

const allOf: Keyword = (node, _, reader) => {
  const rules = schemas(node, reader);
  return (value, place, check) => {
    for (const rule of rules) rule(value, place, check);
  };
};

const anyOf: Keyword = (node, _, reader) => {
  const [first, ...others] = schemas(node, reader);
  return (value, place, check) => {
    let nearest = check.apart(first, value, place);
    for (const rule of others) {
      if (nearest.length === 0) return;
      const wrong = check.apart(rule, value, place);
      if (wrong.length < nearest.length) nearest = wrong;
    }
    if (nearest.length > 0) check.fail(place, "must match a schema in anyOf", nearest);
  };
};

const oneOf: Keyword = (node, _, reader) => {
  const rules = schemas(node, reader);
  return (value, place, check) => {
    const found = rules.map((rule) => check.fits(rule, value, place));
    const fitting = found.filter((fits) => fits).length;
    if (fitting > 1 || found.every((fits) => fits === false))
      check.fail(place, `must match exactly one schema in oneOf, not ${fitting}`);
  };
};

const not: Keyword = (node, _, reader) => {
  const rule = reader.rule(node);
  return (value, place, check) => {
    if (check.fits(rule, value, place)) check.fail(place, "must NOT be valid");
  };
};

const condition: Keyword = (node, schema, reader) => {
  const [is, yes, no] = [node, member(schema, "then"), member(schema, "else")].map((each) => each && reader.rule(each));
  return (value, place, check) => {
    const fits = is && check.fits(is, value, place);
    if (fits !== undefined) (fits ? yes : no)?.(value, place, check);
  };
};

const reference: Keyword = (node, _, reader) => {
  const pointer = text(node);
  return pointer === "#" || pointer.startsWith("#/") ? reader.target(pointer) : reader.skip("$ref");
};

const KEYWORDS: ReadonlyMap<string, Keyword> = new Map<string, Keyword>([
  ["type", type],
  ["const", oneValue],
  ["enum", values],
  ["minimum", bound(">=", (order) => order < 0)],
  ["maximum", bound("<=", (order) => order > 0)],
  ["exclusiveMinimum", bound(">", (order) => order <= 0)],
  ["exclusiveMaximum", bound("<", (order) => order >= 0)],
  ["multipleOf", multipleOf],
  ["minLength", atLeast("characters", lengthOf)],
  ["maxLength", atMost("characters", lengthOf)],
  ["pattern", pattern],
  ["items", items],
  ["prefixItems", prefixItems],
  ["minItems", atLeast("items", itemsOf)],
  ["maxItems", atMost("items", itemsOf)],
  ["uniqueItems", uniqueItems],
  ["contains", contains],
  ["properties", properties],
  ["patternProperties", patternProperties],
  ["additionalProperties", additionalProperties],
  ["propertyNames", propertyNames],
  ["required", required],
  ["minProperties", atLeast("properties", membersOf)],
  ["maxProperties", atMost("properties", membersOf)],
  ["dependentRequired", dependent((node) => demand(texts(node)))],
  ["dependentSchemas", dependent((node, reader) => reader.rule(node))],
  ["allOf", allOf],
  ["anyOf", anyOf],
  ["oneOf", oneOf],
  ["not", not],
  ["if", condition],
  ["$ref", reference],
]);

// Readers of the values of keywords. @throws NoSchema for another kind of value

function schemas(node: JsonNode, reader: Reader): readonly [Rule, ...Rule[]] {
  const [first, ...others] = list(node).map((schema) => reader.rule(schema));
  if (!first) throw new NoSchema();
  return [first, ...others];
}

function list(node: JsonNode): readonly JsonNode[] {
  if (node.kind !== "array") throw new NoSchema();
  return node.items;
}

function members(node: JsonNode): readonly [string, JsonNode][] {
  if (node.kind !== "object") throw new NoSchema();
  return node.members;
}

function text(node: JsonNode): string {
  const own = stringOf(node);
  if (own === undefined) throw new NoSchema();
  return own;
}

const texts = (node: JsonNode): string[] => list(node).map(text);

function number(node: JsonNode): Decimal {
  const own = decimalOf(node);
  if (!own) throw new NoSchema();
  return own;
}

/** A number of characters, items or properties. */
function count(node: JsonNode): number {
  if (node.kind !== "scalar" || !isNumber(node)) throw new NoSchema();
  return Number(node.text);
}

function truth(node: JsonNode): boolean {
  if (node.kind !== "scalar" || (node.text !== "true" && node.text !== "false")) throw new NoSchema();
  return node.text === "true";
}
