import { type JsonNode, parseJson } from "../../json.ts";
import type { Candidate } from "../fuse/medoid.ts";
import { isFreeText, valueKey } from "../fuse/value.ts";

/**
 * How well a merged object is backed: the smallest share of the candidates' weight that any of its places has. A place is backed by a candidate
 * that has the same value there, or free text where the merged object has some; what the merged object lacks is backed by those who lack it.
 * @returns 0 to 1
 */
export function fieldAgreement(merged: JsonNode, candidates: readonly Candidate[]): number {
  const own = places(merged);
  const theirs = candidates.map(({ json, weight }) => ({ places: places(parseJson(json)), weight }));
  const all = theirs.reduce((sum, { weight }) => sum + weight, 0);
  let least = all;
  for (const path of new Set([own, ...theirs.map(({ places }) => places)].flatMap((each) => [...each.keys()]))) {
    const backing = theirs.filter(({ places }) => places.get(path) === own.get(path));
    least = Math.min(
      least,
      backing.reduce((sum, { weight }) => sum + weight, 0),
    );
  }
  return all > 0 ? least / all : 0;
}

/** What an object says at each of its leaves, and that there is an empty object or list. */
function places(root: JsonNode): Map<string, string> {
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
