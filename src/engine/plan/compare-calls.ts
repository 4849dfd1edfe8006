import { parseJson, stringifyJson } from "../../contract/json.ts";
import type { WrittenCall } from "../../models/port/model.ts";
import { type Ballot, EPSILON, tally, type VoteConstants } from "../fuse/vote.ts";
import { NO_CALL, namesOf } from "../tools/canonical.ts";
import { ballotOf, type Comparison, type Share } from "./compare.ts";
import type { Draft } from "./draft.ts";

/**
 * Compares drafts that may call tools, by their calls as a whole. A draft without calls votes for no call, one whose
 * calls must not leave has no vote. With `all`, every draft must have the same calls. Else most support counts, and
 * among equals the heaviest draft, so that a vote always has an answer; then each argument is voted on by itself, among
 * the drafts that call the same tools.
 * @param canonicalise gives the canonical form of a draft's calls
 */
export function compareCalls(
  share: Share,
  canonicalise: (text: string, calls: readonly WrittenCall[]) => string | undefined,
  constants: VoteConstants = {},
): Comparison {
  const count = (drafts: readonly Draft[], outstanding: readonly number[]) =>
    tally(drafts.map(ballotOf), outstanding, constants);
  return {
    canonicalise,
    settle(drafts, outstanding) {
      const all = count(drafts, outstanding);
      const chosen = all && drafts[all.leader];
      if (!chosen) return undefined;
      const verdict = { chosen, text: chosen.text, agreement: all.agreement };
      if (share === "all") {
        const agree = drafts.length > 1 && outstanding.length === 0 && all.agreement > 1 - EPSILON;
        return agree && drafts.every(({ canonical }) => canonical !== undefined) ? verdict : undefined;
      }
      if (outstanding.length > 0) return all.decided ? verdict : undefined;
      const { canonical = "" } = chosen;
      const voted = voteArguments(canonical, drafts.map(ballotOf), constants);
      if (voted === canonical) return verdict;
      const calls = callsOf(voted);
      return canonicalise("", calls) === undefined ? verdict : { ...verdict, calls };
    },
    agreement: (drafts) => count(drafts, [])?.agreement,
  };
}

/**
 * Votes on each argument of calls by itself, among the drafts that call the same tools. Calls of a tool that is called
 * twice stay as they are, because their names do not tell which one to compare.
 * @param form canonical form of the calls that have won as a whole; see `canonicalCalls`
 * @returns a canonical form, perhaps one that no draft has
 */
export function voteArguments(form: string, ballots: readonly Ballot[], constants: VoteConstants = {}): string {
  const names = namesOf(form).split("\n");
  if (form === NO_CALL || new Set(names).size < names.length) return form;
  const same = ballots.flatMap(({ answer, weight }) =>
    answer !== undefined && namesOf(answer) === namesOf(form) ? [{ weight, lines: answer.split("\n") }] : [],
  );
  const voted = names.map((name, at) => {
    const given = same.map(({ weight, lines }) => ({ weight, values: argumentsIn(lines[at] ?? "") }));
    const all = new Set(given.flatMap(({ values }) => [...values.keys()]));
    const members = [...all].flatMap((argument) => {
      const count = tally(
        given.map(({ weight, values }) => ({ answer: values.get(argument) ?? "", weight })),
        [],
        constants,
      );
      const value = given[count?.leader ?? 0]?.values.get(argument);
      return value === undefined ? [] : [`${JSON.stringify(argument)}:${value}`];
    });
    return `${name} {${members.sort().join(",")}}`;
  });
  return voted.join("\n");
}

/** The calls of a canonical form. */
function callsOf(form: string): WrittenCall[] {
  if (form === NO_CALL) return [];
  return form.split("\n").map((line) => {
    const space = line.indexOf(" ");
    return { name: line.slice(0, space), arguments: line.slice(space + 1) };
  });
}

/** The arguments of a line of a canonical form, as text. */
function argumentsIn(line: string): ReadonlyMap<string, string> {
  const node = parseJson(line.slice(line.indexOf(" ") + 1));
  return new Map(node.kind === "object" ? node.members.map(([name, value]) => [name, stringifyJson(value)]) : []);
}
