import { type JsonNode, parseJson } from "../../contract/json.ts";
import type { Candidate } from "../fuse/medoid.ts";
import { isFreeText, valueKey } from "../fuse/value.ts";
import { weightOf } from "../fuse/vote.ts";

/**
 * How well the candidates support a merged object: for each of its paths the share of the candidates' weight that
 * supports it, and of these shares the smallest. A candidate supports a path when it has the same value there, or
 * free text where the merged object has free text, or when both lack it.
 * @returns 0 to 1
 */
export function fieldAgreement(merged: JsonNode, candidates: readonly Candidate[]): number {
  const paths = new Paths();
  const mergedValues = valuesByPath(merged, paths);
  const supporters = candidates.map(({ json, weight }) => ({ values: valuesByPath(parseJson(json), paths), weight }));
  const total = weightOf(supporters);
  let least = total;
  for (let path = 0; path < paths.count; path++) {
    const supporting = supporters.filter(({ values }) => values.get(path) === mergedValues.get(path));
    least = Math.min(least, weightOf(supporting));
  }
  return total > 0 ? least / total : 0;
}

/** Numbers paths from 0. Written out, they can have many times the length of the JSON. */
class Paths {
  readonly #numbers = new Map<string, number>();

  /** The root is a path, too. */
  get count(): number {
    return this.#numbers.size + 1;
  }

  below(path: number, step: string): number {
    const key = `${path}${step}`;
    const number = this.#numbers.get(key) ?? this.count;
    this.#numbers.set(key, number);
    return number;
  }
}

/** A comparable form of each leaf, object and list of a JSON tree, by path. */
function valuesByPath(root: JsonNode, paths: Paths): Map<number, string> {
  const found = new Map<number, string>();
  const walk = (node: JsonNode, path: number) => {
    if (node.kind === "scalar") found.set(path, isFreeText(node) ? "free text" : `=${valueKey(node)}`);
    else if (node.kind === "object") {
      found.set(path, node.kind);
      for (const [name, value] of node.members) walk(value, paths.below(path, `.${name}`));
    } else {
      found.set(path, `${node.kind} of ${node.items.length}`);
      for (const [index, item] of node.items.entries()) walk(item, paths.below(path, `[${index}`));
    }
  };
  walk(root, 0);
  return found;
}
