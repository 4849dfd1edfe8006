import { type JsonNode, parseJson } from "../../contract/json.ts";
import { valueKey } from "./value.ts";

/** A candidate answer. */
export interface Candidate {
  /** JSON text. Any other text is compared by its words. */
  json: string;
  /** 0 or more. */
  weight: number;
}

/** Most features of a candidate that are compared, which bounds the time for five long candidates to 0.15 s. */
const MAX_FEATURES = 20_000;

/**
 * The candidate that is most similar to all others, weighted (k-medoids with k = 1). Similarity is the weighted
 * Jaccard index of features: each leaf of the JSON has the same mass, which a long text divides among its pairs of
 * neighbouring words. Ties go to the heavier candidate, then to the first.
 * @returns its index; -1 without candidates
 */
export function medoid(candidates: readonly Candidate[]): number {
  const features = candidates.map(({ json }) => featuresOf(json));
  const scores = features.map((own) =>
    features.reduce((sum, other, index) => sum + (candidates[index]?.weight ?? 0) * similarity(own, other), 0),
  );
  let best = -1;
  for (const [index, score] of scores.entries()) {
    const lead = score - (scores[best] ?? -1);
    const heavier = (candidates[index]?.weight ?? 0) > (candidates[best]?.weight ?? 0);
    if (lead > 1e-9 || (lead > -1e-9 && heavier)) best = index;
  }
  return best;
}

/** Mass of each feature of a candidate, by hash. A leaf has mass 1. */
type Features = Map<number, number>;

function similarity(one: Features, other: Features): number {
  if (one === other) return 1;
  let shared = 0;
  let all = 0;
  for (const [feature, mass] of one) {
    const otherMass = other.get(feature) ?? 0;
    shared += Math.min(mass, otherMass);
    all += Math.max(mass, otherMass);
  }
  for (const [feature, mass] of other) if (!one.has(feature)) all += mass;
  return all === 0 ? 1 : shared / all;
}

function featuresOf(text: string): Features {
  const features: Features = new Map();
  const add = (feature: number, mass: number) => {
    if (features.size < MAX_FEATURES) features.set(feature, (features.get(feature) ?? 0) + mass);
  };
  const walk = (node: JsonNode, path: number) => {
    if (features.size >= MAX_FEATURES) return;
    if (node.kind === "object") for (const [name, value] of node.members) walk(value, hash(name, path));
    else if (node.kind === "array")
      for (const [index, item] of node.items.entries()) walk(item, hash(`${index}`, path));
    else leaf(valueKey(node), path);
    // Objects and lists are features too, so that an empty one counts.
    if (node.kind !== "scalar") add(hash(node.kind, path), 0.1);
  };
  const leaf = (value: string, path: number) => {
    const words = value.slice(0, 8 * MAX_FEATURES).split(" ");
    if (words.length < 4) return add(hash(value, path), 1);
    for (const [index, word] of words.entries()) {
      if (index > 0) add(hash(word, hash(words[index - 1] ?? "", path)), 1 / (words.length - 1));
    }
  };
  try {
    walk(parseJson(text), START);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    leaf(
      text
        .slice(0, 8 * MAX_FEATURES)
        .toLowerCase()
        .replace(/\s+/g, " ")
        .trim(),
      START,
    );
  }
  return features;
}

const START = 0x811c9dc5;

/** FNV-1a over UTF-16 units, continued from `seed`, with an end marker. */
function hash(text: string, seed: number): number {
  let value = seed;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return Math.imul(value ^ 0x1ffff, 0x01000193);
}
