import { useMemo } from "preact/hooks";
import { type JsonNode, parseJson } from "../../../src/contract/json.ts";
import { count } from "../format.ts";

/** Levels that are open at first. */
const OPEN_LEVELS = 3;

/** JSON text as a tree whose objects and lists open and close. Numbers are shown as written. */
export function JsonTree({ json }: { json: string }) {
  const root = useMemo(() => parseJson(json), [json]);
  return (
    <div class="json-tree">
      <Node node={root} name="" level={0} />
    </div>
  );
}

function Node({ node, name, level }: { node: JsonNode; name: string; level: number }) {
  const label = name && <span class="name">{name}: </span>;
  if (node.kind === "scalar") {
    return (
      <p>
        {label}
        <span class={kindOf(node.text)}>{node.text}</span>
      </p>
    );
  }
  const children: [string, JsonNode][] =
    node.kind === "object" ? node.members : node.items.map((item, i) => [`${i}`, item]);
  const [open, close] = node.kind === "object" ? ["{", "}"] : ["[", "]"];
  if (children.length === 0) {
    return (
      <p>
        {label}
        {open + close}
      </p>
    );
  }
  return (
    <details open={level < OPEN_LEVELS}>
      <summary>
        {label}
        <span class="soft">
          {open} {count(children.length)} {node.kind === "object" ? "member" : "item"}
          {children.length > 1 && "s"} {close}
        </span>
      </summary>
      {children.map(([own, child]) => (
        <Node key={own} node={child} name={own} level={level + 1} />
      ))}
    </details>
  );
}

/** Class for the colour of a literal. */
function kindOf(text: string): string {
  return text.startsWith('"') ? "string" : /^[-\d]/.test(text) ? "number" : "word";
}
