import { type JsonNode, parseJson } from "../../contract/json.ts";
import type { Candidate } from "../fuse/medoid.ts";
import { isFreeText, valueKey } from "../fuse/value.ts";

/**
 * How well the candidates support a merged object: for each of its paths the share of the candidates' weight that
 * supports it, and of these shares the smallest. A candidate supports a path when it has the same value there, or
 * free text where the merged object has free text, or when both lack it.
 * @returns 0 to 1
 */
export function fieldAgreement(merged: JsonNode, candidates: readonly Candidate[]): number {
  const mergedValues = valuesByPath(merged);
  const supporters = candidates.map(({ json, weight }) => ({ values: valuesByPath(parseJson(json)), weight }));
  const total = weightOf(supporters);
  const paths = new Set([mergedValues, ...supporters.map(({ values }) => values)].flatMap((each) => [...each.keys()]));
  let least = total;
  for (const path of paths) {
    const supporting = supporters.filter(({ values }) => values.get(path) === mergedValues.get(path));
    least = Math.min(least, weightOf(supporting));
  }
  return total > 0 ? least / total : 0;
}

function weightOf(supporters: ReadonlyArray<{ weight: number }>): number {
  return supporters.reduce((sum, { weight }) => sum + weight, 0);
}

/** A comparable form of each leaf, object and list of a JSON tree, by path. */
function valuesByPath(root: JsonNode): Map<string, string> {
  const found = new Map<string, string>();
  const walk = (node: JsonNode, path: string) => {
    if (node.kind === "scalar") found.set(path, isFreeText(node) ? "free text" : `=${valueKey(node)}`);
    else if (node.kind === "object") {
      found.set(path, node.kind);
      for (const [name, value] of node.members) walk(value, `${path}/${JSON.stringify(name)}`);
    } else {
      found.set(path, `${node.kind} of ${node.items.length}`);
      for (const [index, item] of node.items.entries()) walk(item, `${path}/${index}`);
    }
  };
  walk(root, "");
  return found;
}
