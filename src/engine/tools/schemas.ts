import { type JsonNode, member, parseJson } from "../../contract/json.ts";
import type { Tool } from "../../models/port/model.ts";
import { looseSchema } from "../structured/loose-schema.ts";

/**
 * The schemas of tools, without references and alternatives where they can be written so. Each is parsed when it is
 * first needed, because an answer can have many calls of one tool.
 */
export class ToolSchemas {
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #parsed = new Map<string, JsonNode>();

  constructor(tools: readonly Tool[]) {
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
  }

  /** @throws SyntaxError if it is nested too deeply */
  get(name: string): JsonNode {
    let schema = this.#parsed.get(name);
    if (!schema) {
      schema = parseJson(looseSchema(this.#tools.get(name)?.parameters ?? "{}").simplified);
      this.#parsed.set(name, schema);
    }
    return schema;
  }
}

const known = new WeakMap<JsonNode, ReadonlyMap<string, JsonNode>>();

/** The schemas of the members that a schema names. */
export function propertiesOf(schema: JsonNode): ReadonlyMap<string, JsonNode> {
  let properties = known.get(schema);
  if (!properties) {
    const node = member(schema, "properties");
    properties = new Map(node?.kind === "object" ? node.members : []);
    known.set(schema, properties);
  }
  return properties;
}
