import { type JsonNode, parseJson, stringifyJson } from "../../json.ts";
import { type Candidate, medoid } from "./medoid.ts";
import { valueKey } from "./value.ts";
import { tally } from "./vote.ts";

/** A value with the weight of the candidate that gave it. In a list of these the decider's stands first, if it has one, then the heaviest. */
interface Vote<T extends JsonNode = JsonNode> {
  node: T;
  weight: number;
}

/**
 * Votes field by field, recursively, so that candidates which each have one mistake in different places make an answer without any. A member stays where
 * more than half of the weight has it; lists are voted on by element where more than half agree on the length; numbers and short strings are compared by
 * what they say and taken as written; free text is told in one voice unless more than half say the same. What stays open, the decider decides.
 *
 * The result may break a schema that every candidate keeps to, so validate it, and fall back on the decider.
 * @param candidates Whole, valid JSON texts, at least one.
 * @param decider JSON text that has no vote and the last word, such as that of a judge who saw the candidates. Default: the medoid of the candidates.
 * @returns Compact JSON: its leaves are literals of candidates or of the decider, its members stand in the decider's order.
 * @throws SyntaxError if a candidate is not JSON; RangeError without candidates.
 */
export function voteFields(candidates: readonly Candidate[], decider?: string): string {
  const votes = candidates.map(({ json, weight }) => ({ node: parseJson(json), weight }));
  const [central] = votes.splice(decider === undefined ? medoid(candidates) : votes.length, 1);
  const first = decider === undefined ? central : { node: parseJson(decider), weight: 0 };
  if (!first || candidates.length === 0) throw new RangeError("A vote needs at least one candidate.");
  return stringifyJson(merge([first, ...votes.sort((a, b) => b.weight - a.weight)]));
}

/** @param votes All that stand for one place; at least one. */
function merge(votes: readonly Vote[]): JsonNode {
  const alike = winners(votes, ({ kind }) => kind);
  const [first] = alike;
  if (!first) throw new RangeError("A vote needs at least one candidate.");
  switch (first.node.kind) {
    case "object":
      return mergeObjects(alike.filter(isKind("object")));
    case "array":
      return mergeArrays(alike.filter(isKind("array"))) ?? first.node;
    case "scalar":
      return mergeScalars(alike.filter(isKind("scalar"))) ?? first.node;
  }
}

function mergeObjects(votes: readonly Vote<Extract<JsonNode, { kind: "object" }>>[]): JsonNode {
  const byName = new Map<string, Vote[]>();
  for (const { node, weight } of votes) {
    for (const [name, value] of node.members) {
      const values = byName.get(name);
      if (values) values.push({ node: value, weight });
      else byName.set(name, [{ node: value, weight }]);
    }
  }
  const own = new Set(votes[0]?.node.members.map(([name]) => name));
  const all = weightOf(votes);
  const kept = [...byName].filter(([name, values]) => {
    const lead = 2 * weightOf(values) - all;
    return Math.abs(lead) <= all * 1e-9 ? own.has(name) : lead > 0;
  });
  return { kind: "object", members: kept.map(([name, values]) => [name, merge(values)]) };
}

function mergeArrays(votes: readonly Vote<Extract<JsonNode, { kind: "array" }>>[]): JsonNode | undefined {
  const sameLength = winners(votes, ({ items }) => String(items.length));
  if (!isMajority(sameLength, votes)) return undefined;
  const length = sameLength[0]?.node.items.length ?? 0;
  const items = Array.from({ length }, (_, index) =>
    merge(
      sameLength.flatMap(({ node, weight }) =>
        node.items.slice(index, index + 1).map((item) => ({ node: item, weight })),
      ),
    ),
  );
  return { kind: "array", items };
}

function mergeScalars(votes: readonly Vote<Extract<JsonNode, { kind: "scalar" }>>[]): JsonNode | undefined {
  const same = winners(votes, valueKey);
  return isMajority(same, votes) ? same[0]?.node : undefined;
}

/** The votes that agree with the winner of a plurality vote. */
function winners<T extends JsonNode>(votes: readonly Vote<T>[], keyOf: (node: T) => string): Vote<T>[] {
  const ballots = votes.map(({ node, weight }) => ({ answer: keyOf(node), weight }));
  const leader = ballots[tally(ballots, 0)?.leader ?? 0]?.answer;
  return votes.filter((_, index) => ballots[index]?.answer === leader);
}

function isMajority(some: readonly Vote[], all: readonly Vote[]): boolean {
  return weightOf(some) * 2 > weightOf(all);
}

function weightOf(votes: readonly Vote[]): number {
  return votes.reduce((sum, { weight }) => sum + weight, 0);
}

function isKind<K extends JsonNode["kind"]>(kind: K) {
  return (vote: Vote): vote is Vote<Extract<JsonNode, { kind: K }>> => vote.node.kind === kind;
}
