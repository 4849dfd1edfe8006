import { type JsonNode, member } from "../../contract/json.ts";

/** One step of a path to a member: `.name`, or `["any name"]`. */
export function memberStep(name: string): string {
  return /^[A-Za-z_$][\w$]{0,63}$/.test(name) ? `.${name}` : `[${quoted(name)}]`;
}

/** A name for a message: in quotes, shortened to 64 characters. */
export function quoted(name: string): string {
  return JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);
}

/** The node of a JSON pointer in a URI fragment (RFC 6901, section 6). */
export function nodeAt(root: JsonNode, pointer: string): JsonNode | undefined {
  if (pointer !== "#" && !pointer.startsWith("#/")) return undefined;
  const steps = pointer.split("/").slice(1);
  return steps.reduce<JsonNode | undefined>((node, step) => {
    const name = decoded(step);
    if (!node || name === undefined) return undefined;
    return node.kind === "array" ? node.items[/^\d+$/.test(name) ? Number(name) : -1] : member(node, name);
  }, root);
}

function decoded(step: string): string | undefined {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return undefined;
  }
}
