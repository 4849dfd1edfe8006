import { type JsonNode, member, stringifyJson } from "../../contract/json.ts";
import { MAX_LENGTH, parseSchema } from "./check-schema.ts";
import { memberStep } from "./path.ts";

/** Members of a schema that hold schemas by name, as a list, or as one. */
const NAMED: ReadonlySet<string> = new Set(["properties", "$defs", "definitions"]);
const LISTED: ReadonlySet<string> = new Set(["anyOf", "allOf", "oneOf"]);
const SINGLE: ReadonlySet<string> = new Set(["items"]);

/** A schema without `format`, and where each one stood. */
interface Described {
  /** JSON text; the caller's own if it has no format. */
  readonly schema: string;
  readonly paths: readonly string[];
}

/**
 * Moves each `format` of a JSON Schema into the description of its node, where the models see it. It is only a note in
 * JSON Schema 2020-12, so exactly the same values are valid.
 * @param path of the schema in the request
 * @throws Failure `invalid_response_schema` for a text that is no JSON
 */
export function describeFormats(schema: string, path: string): Described {
  if (schema.length > MAX_LENGTH || !schema.includes('"format"')) return { schema, paths: [] };
  const paths: string[] = [];
  const described = describe(parseSchema(schema, path), path, paths);
  return paths.length === 0 ? { schema, paths } : { schema: stringifyJson(described), paths };
}

/** @param paths collects the places of formats */
function describe(node: JsonNode, path: string, paths: string[]): JsonNode {
  if (node.kind !== "object") return node;
  const below = (schema: JsonNode, step: string) => describe(schema, `${path}${step}`, paths);
  const members = node.members.map(([name, value]): [string, JsonNode] => {
    if (SINGLE.has(name)) return [name, below(value, `.${name}`)];
    if (LISTED.has(name) && value.kind === "array")
      return [name, { ...value, items: value.items.map((item, i) => below(item, `.${name}[${i}]`)) }];
    if (!NAMED.has(name) || value.kind !== "object") return [name, value];
    const schemas = value.members.map(([one, schema]): [string, JsonNode] => [
      one,
      below(schema, `.${name}${memberStep(one)}`),
    ]);
    return [name, { ...value, members: schemas }];
  });
  const format = textOf(member(node, "format"));
  if (format === undefined) return { ...node, members };
  paths.push(path);
  const others = members.filter(([name]) => name !== "format" && name !== "description");
  const description = [textOf(member(node, "description")), `Format: ${format}.`].filter(Boolean).join("\n");
  return { ...node, members: [...others, ["description", { kind: "scalar", text: JSON.stringify(description) }]] };
}

/** Undefined: it is no text. */
function textOf(node: JsonNode | undefined): string | undefined {
  const value: unknown = node?.kind === "scalar" ? JSON.parse(node.text) : undefined;
  return typeof value === "string" ? value : undefined;
}
