import { type JsonNode, member, stringifyJson } from "../../contract/json.ts";
import { mapParts } from "../../contract/schema-parts.ts";
import { MAX_LENGTH, parseSchema } from "./check-schema.ts";
import { partSteps } from "./path.ts";
import { stringOf } from "./rules.ts";

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
function describe(schema: JsonNode, path: string, paths: string[]): JsonNode {
  const node = mapParts(schema, (part) => describe(part.node, `${path}${partSteps(part)}`, paths));
  const [format, own] = ["format", "description"].map((name) => stringOf(member(node, name)));
  if (format === undefined || node.kind !== "object") return node;
  paths.push(path);
  const others = node.members.filter(([name]) => name !== "format" && name !== "description");
  const description = [own, `Format: ${format}.`].filter(Boolean).join("\n");
  return { ...node, members: [...others, ["description", { kind: "scalar", text: JSON.stringify(description) }]] };
}
