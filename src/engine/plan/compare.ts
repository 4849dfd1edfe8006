import { parseJson } from "../../contract/json.ts";
import type { WrittenCall } from "../../models/port/model.ts";
import { closedAnswer } from "../fuse/closed-answer.ts";
import { voteFields } from "../fuse/fields.ts";
import { type Candidate, medoid } from "../fuse/medoid.ts";
import { type Ballot, EPSILON, tally, type VoteConstants } from "../fuse/vote.ts";
import { fieldAgreement } from "./agreement.ts";
import type { Draft, DraftAnswer } from "./draft.ts";

/** The answer on which drafts agree; the chosen draft is the one most similar to a merged answer. */
export interface Verdict extends DraftAnswer {
  /** Share of the weight of all votes that agree, 0 to 1. */
  readonly agreement: number;
}

/** How drafts are compared and combined. */
export interface Comparison {
  /** Gives `Draft.canonical` for a text and calls of tools. */
  canonicalise(text: string, calls: readonly WrittenCall[]): string | undefined;
  /**
   * The answer, as soon as the outstanding drafts cannot change it.
   * @param outstanding weights of the members that have not answered yet; empty when no more drafts will come
   * @returns undefined while the answer can still change, or finally when the drafts disagree
   */
  settle(drafts: readonly Draft[], outstanding: readonly number[]): Verdict | undefined;
  /** Share of the weight of all votes that the leading answer has, 0 to 1; undefined without an answer. */
  agreement(drafts: readonly Draft[]): number | undefined;
  /**
   * Combines disagreeing drafts with the text of a judge who saw them. Absent: the judge's text is the answer.
   * @returns undefined when the judge's text cannot be the answer but a draft can
   */
  join?(drafts: readonly Draft[], judgeText: string): string | undefined;
}

/**
 * What drafts need to settle an answer: most support of two or more (of JSON, more than half of the weight for each
 * field), or the agreement of all.
 */
export type Share = "majority" | "all";

/** Fewest drafts that can agree. */
const MIN_DRAFTS = 2;

const weightOf = ({ member }: Draft): number => member.weight ?? 1;
const sum = (drafts: readonly Draft[]): number => drafts.reduce((total, draft) => total + weightOf(draft), 0);
const hasCanonical = ({ canonical }: Draft): boolean => canonical !== undefined;
const isEnough = (share: Share, part: number): boolean => part > (share === "all" ? 1 - EPSILON : 0.5 + EPSILON);

export function ballotOf(draft: Draft): Ballot {
  return { answer: draft.canonical, weight: weightOf(draft) };
}

/**
 * Compares answers by a canonical form.
 * @param canonicalise gives the form of the answer in a text, or undefined when there is none
 * @param constants of the vote on the answers
 */
export function compareAnswers(
  share: Share,
  canonicalise: (text: string) => string | undefined = closedAnswer,
  constants: VoteConstants = {},
): Comparison {
  const count = (drafts: readonly Draft[], outstanding: readonly number[]) =>
    tally(drafts.map(ballotOf), outstanding, constants);
  return {
    canonicalise,
    settle(drafts, outstanding) {
      if (drafts.length < MIN_DRAFTS) return undefined;
      const result = count(drafts, outstanding);
      const chosen = result && drafts[result.leader];
      if (!chosen) return undefined;
      const agreeing = drafts.filter(({ canonical }) => canonical === chosen.canonical);
      const isSettled = share === "all" ? result.agreement > 1 - EPSILON && outstanding.length === 0 : result.decided;
      if (agreeing.length < MIN_DRAFTS || !isSettled) return undefined;
      return { chosen, text: chosen.text, agreement: result.agreement };
    },
    agreement: (drafts) => count(drafts, [])?.agreement,
  };
}

/**
 * Compares JSON objects field by field. The drafts settle the answer when every field except free text has its share;
 * else a judge decides the fields without a majority.
 * @param read the valid object in a text, as JSON text; undefined when there is none
 */
export function compareObjects(share: Share, read: (text: string) => string | undefined): Comparison {
  const candidatesOf = (drafts: readonly Draft[]) =>
    drafts.map((draft): Candidate => ({ json: draft.canonical ?? "", weight: weightOf(draft) }));
  return {
    canonicalise: read,
    settle(drafts, outstanding) {
      const valid = drafts.filter(hasCanonical);
      if (valid.length < MIN_DRAFTS) return undefined;
      const candidates = candidatesOf(valid);
      const merged = voteFields(candidates);
      const agreement = fieldAgreement(parseJson(merged), candidates);
      const guaranteed = (agreement * sum(valid)) / (sum(valid) + outstanding.reduce((a, b) => a + b, 0));
      if (!isEnough(share, guaranteed)) return undefined;
      const chosen = valid[medoid(candidates)];
      if (!chosen) return undefined;
      return { chosen, text: read(merged) ?? chosen.canonical ?? chosen.text, agreement };
    },
    agreement(drafts) {
      const candidates = candidatesOf(drafts.filter(hasCanonical));
      return candidates.length === 0 ? undefined : fieldAgreement(parseJson(voteFields(candidates)), candidates);
    },
    // The majority of the drafts overrides the judge, so that one mistake of the judge cannot change a settled field.
    join(drafts, judgeText) {
      const valid = drafts.filter(hasCanonical);
      const judged = read(judgeText);
      if (judged === undefined) return valid.length > 0 ? undefined : judgeText;
      return valid.length < MIN_DRAFTS ? judged : (read(voteFields(candidatesOf(valid), judged)) ?? judged);
    },
  };
}
