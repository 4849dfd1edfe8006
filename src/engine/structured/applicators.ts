import { type JsonNode, member } from "../../contract/json.ts";
import { demand } from "./assertions.ts";
import { count, type Keyword, list, members, NoSchema, type SchemaReader, text, texts } from "./keyword.ts";
import { quoted } from "./path.ts";
import type { Rule } from "./rules.ts";

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
      for (const [expression, rule] of rules)
        if (check.matches(expression, name)) rule(child, { above, step: name }, check);
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
      if (known.has(name) || expressions.some((expression) => check.matches(expression, name))) continue;
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

/** @param rule of the members of `dependentRequired` and `dependentSchemas` */
function dependent(rule: (node: JsonNode, reader: SchemaReader) => Rule): Keyword {
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

function schemas(node: JsonNode, reader: SchemaReader): readonly [Rule, ...Rule[]] {
  const [first, ...others] = list(node).map((schema) => reader.rule(schema));
  if (!first) throw new NoSchema();
  return [first, ...others];
}

/** Keywords that apply schemas to a value or to its parts. */
export const APPLICATORS: readonly (readonly [name: string, keyword: Keyword])[] = [
  ["items", items],
  ["prefixItems", prefixItems],
  ["contains", contains],
  ["properties", properties],
  ["patternProperties", patternProperties],
  ["additionalProperties", additionalProperties],
  ["propertyNames", propertyNames],
  ["dependentRequired", dependent((node) => demand(texts(node)))],
  ["dependentSchemas", dependent((node, reader) => reader.rule(node))],
  ["allOf", allOf],
  ["anyOf", anyOf],
  ["oneOf", oneOf],
  ["not", not],
  ["if", condition],
  ["$ref", reference],
];
