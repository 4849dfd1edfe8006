import { type JsonNode, member } from "../../contract/json.ts";
import { demand } from "./assertions.ts";
import { count, type Keyword, list, members, NoSchema, type SchemaReader, text, texts } from "./keyword.ts";
import { quoted } from "./path.ts";
import { type Check, type Place, type Rule, scalarKey, type Wrong } from "./rules.ts";
import { hasType } from "./value-types.ts";

const items: Keyword = (node, schema, reader) => {
  // Of earlier drafts.
  if (node.kind === "array") return reader.skip("items", schema);
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
    const found = value.items.map((item, step) => check.attempt(rule, item, { above, step }).fits);
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
  const rules = list(node).map((schema) => reader.rule(schema));
  if (rules.length === 0) throw new NoSchema();
  return (value, place, check) => {
    for (const rule of rules) rule(value, place, check);
  };
};

const anyOf = choice((branches, value, place, check) => {
  let nearest: readonly Wrong[] | undefined;
  for (const rule of branches) {
    const { wrong } = check.attempt(rule, value, place);
    if (wrong.length === 0) return;
    if (!nearest || wrong.length < nearest.length) nearest = wrong;
  }
  check.fail(place, "must match a schema in anyOf", nearest);
});

const oneOf = choice((branches, value, place, check) => {
  const tried = branches.map((rule) => check.attempt(rule, value, place));
  const fitting = tried.filter(({ fits }) => fits).length;
  const nearest = tried
    .map(({ wrong }) => wrong)
    .reduce((least, wrong) => (wrong.length < least.length ? wrong : least));
  if (fitting < 2 && nearest.length === 0) return;
  check.fail(place, `must match exactly one schema in oneOf, not ${fitting}`, fitting > 0 ? undefined : nearest);
});

/**
 * A choice between branches. Those that a value cannot fit by their marks are left out, and if one is left, that is
 * what the value must fit: an object that names its kind is checked against that kind only, and the messages are about
 * that. A tree of such objects would take a time that doubles with each of its levels otherwise.
 * @param among for several branches
 */
function choice(among: (branches: readonly Rule[], value: JsonNode, place: Place, check: Check) => void): Keyword {
  return (node, _, reader) => {
    const branches = list(node).map((schema) => ({ rule: reader.rule(schema), marks: reader.marks(schema) }));
    if (branches.length === 0) throw new NoSchema();
    const names = new Set(branches.flatMap(({ marks }) => [...marks.members.keys()]));
    return (value, place, check) => {
      check.spend(1 + (branches.length >> 2));
      const ofType = branches.filter(({ marks: { types } }) => !types || hasType(value, types));
      const own = value.kind === "object" ? value.members.filter(([name]) => names.has(name)) : [];
      const keys = own.map(([name, child]) => [name, scalarKey(child)] as const);
      const ofKind = ofType.filter(({ marks: { members } }) => {
        check.spend(keys.length >> 2);
        return keys.every(([name, key]) => members.get(name)?.has(key) !== false);
      });
      const left = [ofKind, ofType, branches].find(({ length }) => length > 0) ?? [];
      const [only, ...others] = left.map(({ rule }) => rule);
      if (only && others.length === 0) only(value, place, check);
      else if (only) among([only, ...others], value, place, check);
    };
  };
}

const not: Keyword = (node, _, reader) => {
  const rule = reader.rule(node);
  return (value, place, check) => {
    if (check.attempt(rule, value, place).fits) check.fail(place, "must NOT be valid");
  };
};

const condition: Keyword = (node, schema, reader) => {
  const [is, yes, no] = [node, member(schema, "then"), member(schema, "else")].map((each) => each && reader.rule(each));
  return (value, place, check) => {
    const fits = is && check.attempt(is, value, place).fits;
    if (fits !== undefined) (fits ? yes : no)?.(value, place, check);
  };
};

const reference: Keyword = (node, schema, reader) => {
  const pointer = text(node);
  return pointer === "#" || pointer.startsWith("#/") ? reader.target(pointer) : reader.skip("$ref", schema);
};

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
