import { parseJson, stringifyJson } from "../../contract/json.ts";
import type { WrittenCall } from "../../models/port/model.ts";
import { type Ballot, tally, type VoteConstants } from "../fuse/vote.ts";
import { NO_CALL, namesOf } from "../tools/canonical.ts";

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
export function callsOf(form: string): WrittenCall[] {
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
