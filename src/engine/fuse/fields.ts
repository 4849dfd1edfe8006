import { type JsonNode, parseJson, stringifyJson } from "../../contract/json.ts";
import { type Candidate, medoid } from "./medoid.ts";
import { valueKey } from "./value.ts";
import { tally, weightOf } from "./vote.ts";

/**
 * A value with the weight of its candidate. In a list the decider's value comes first, if it has one, then the others
 * by falling weight.
 */
interface Vote<T extends JsonNode = JsonNode> {
  node: T;
  weight: number;
}

/**
 * Merges JSON objects by a vote on each field, recursively, which removes mistakes that only a minority of the
 * candidates has in a place:
 * - A member is kept when candidates with more than half of the weight have it.
 * - A list is voted on by element when more than half agree on its length.
 * - Numbers and short strings are compared by value (`valueKey`) and copied as written.
 * - Free text comes from one candidate. The decider decides everything without a majority.
 *
 * The result can violate a schema that every candidate satisfies. Validate it, and fall back to the decider.
 * @param candidates valid JSON texts, at least one
 * @param decider JSON text without a vote, which wins ties, such as the text of a judge who saw the candidates.
 *   Default: the medoid of the candidates.
 * @returns compact JSON: its leaves are literals of candidates or of the decider, its members have the decider's
 *   order
 * @throws SyntaxError if a candidate is not JSON; RangeError without candidates.
 */
export function voteFields(candidates: readonly Candidate[], decider?: string): string {
  const votes = candidates.map(({ json, weight }) => ({ node: parseJson(json), weight }));
  const [central] = votes.splice(decider === undefined ? medoid(candidates) : votes.length, 1);
  const first = decider === undefined ? central : { node: parseJson(decider), weight: 0 };
  if (!first || candidates.length === 0) throw new RangeError("A vote needs at least one candidate.");
  return stringifyJson(merge([first, ...votes.sort((a, b) => b.weight - a.weight)]));
}

/** @param votes the values at one path; at least one */
function merge(votes: readonly Vote[]): JsonNode {
  const sameKind = winners(votes, ({ kind }) => kind);
  const [first] = sameKind;
  if (!first) throw new RangeError("A vote needs at least one candidate.");
  switch (first.node.kind) {
    case "object":
      return mergeObjects(sameKind.filter(isKind("object")));
    case "array":
      return mergeArrays(sameKind.filter(isKind("array"))) ?? first.node;
    case "scalar":
      return mergeScalars(sameKind.filter(isKind("scalar"))) ?? first.node;
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
  const deciders = new Set(votes[0]?.node.members.map(([name]) => name));
  const total = weightOf(votes);
  const kept = [...byName].filter(([name, values]) => {
    const lead = 2 * weightOf(values) - total;
    return Math.abs(lead) <= total * 1e-9 ? deciders.has(name) : lead > 0;
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
  const leader = ballots[tally(ballots, [])?.leader ?? 0]?.answer;
  return votes.filter((_, index) => ballots[index]?.answer === leader);
}

function isMajority(some: readonly Vote[], all: readonly Vote[]): boolean {
  return weightOf(some) * 2 > weightOf(all);
}

function isKind<K extends JsonNode["kind"]>(kind: K) {
  return (vote: Vote): vote is Vote<Extract<JsonNode, { kind: K }>> => vote.node.kind === kind;
}
