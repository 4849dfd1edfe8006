import { parseJson } from "../../json.ts";
import { closedAnswer } from "../fuse/closed-answer.ts";
import { voteFields } from "../fuse/fields.ts";
import { type Candidate, medoid } from "../fuse/medoid.ts";
import { tally } from "../fuse/vote.ts";
import { fieldAgreement } from "./agreement.ts";
import type { Draft } from "./draft.ts";

/** What drafts come to. */
export interface Verdict {
  /** The draft that is the answer, or is nearest to it. */
  chosen: Draft;
  /** The answer's text. */
  text: string;
  /** Share of the weight of all votes that agree, 0 to 1. */
  agreement: number;
}

/** How drafts are compared. */
export interface Compare {
  /** See `Draft.form`. */
  form(text: string): string | undefined;
  /**
   * The answer, as soon as drafts that are still outstanding cannot change it.
   * @param outstanding weight of the members that have not answered yet; 0 once nobody is waited for
   * @returns undefined while it is open, and in the end when the drafts disagree
   */
  settle(drafts: readonly Draft[], outstanding: number): Verdict | undefined;
  /**
   * What disagreeing drafts and the text of a judge who saw them make together. Absent: the judge's text is the answer.
   * @returns undefined when the judge's text cannot be the answer while a draft can
   */
  join?(drafts: readonly Draft[], judged: string): string | undefined;
}

/** Fewest drafts that can agree: one alone agrees with nobody. */
const FEWEST = 2;
/** Slack for sums of weights. */
const EPSILON = 1e-9;

const weightOf = ({ member }: Draft): number => member.weight ?? 1;
const sum = (drafts: readonly Draft[]): number => drafts.reduce((all, draft) => all + weightOf(draft), 0);

/**
 * Closed answers, compared by their canonical form.
 * @param share of the weight of all votes that the winner needs: `majority` is more than half, `all` is all of it
 */
export function compareAnswers(share: "majority" | "all", form = closedAnswer): Compare {
  return {
    form,
    settle(drafts, outstanding) {
      const count = tally(
        drafts.map((draft) => ({ answer: draft.form, weight: weightOf(draft) })),
        outstanding,
      );
      const chosen = count && drafts[count.leader];
      if (!chosen) return undefined;
      const agreeing = drafts.filter((draft) => draft.form === chosen.form);
      const cast = sum(drafts.filter((draft) => draft.form !== undefined)) + outstanding;
      const safe = sum(agreeing) / cast;
      if (agreeing.length < FEWEST || !(share === "all" ? safe > 1 - EPSILON : safe > 0.5 + EPSILON)) return undefined;
      return { chosen, text: chosen.text, agreement: count.agreement };
    },
  };
}

/**
 * JSON objects, voted on field by field. They settle the answer when every field that is no free text has its share; else a judge decides the fields
 * that have no majority.
 * @param read the valid object in a text, as JSON text; undefined when there is none
 */
export function compareObjects(share: "majority" | "all", read: (text: string) => string | undefined): Compare {
  const ballots = (drafts: readonly Draft[]) =>
    drafts.map((draft): Candidate => ({ json: draft.form ?? "", weight: weightOf(draft) }));
  return {
    form: read,
    settle(drafts, outstanding) {
      const valid = drafts.filter((draft) => draft.form !== undefined);
      if (valid.length < FEWEST) return undefined;
      const candidates = ballots(valid);
      const merged = voteFields(candidates);
      const agreement = fieldAgreement(parseJson(merged), candidates);
      const safe = (agreement * sum(valid)) / (sum(valid) + outstanding);
      if (!(share === "all" ? safe > 1 - EPSILON : safe > 0.5 + EPSILON)) return undefined;
      const chosen = valid[medoid(candidates)];
      if (!chosen) return undefined;
      return { chosen, text: read(merged) ?? chosen.form ?? chosen.text, agreement };
    },
    // A judge settles what is open; what most drafts share stays, or one slip of the judge's would undo it.
    join(drafts, judged) {
      const valid = drafts.filter((draft) => draft.form !== undefined);
      const own = read(judged);
      if (own === undefined) return valid.length > 0 ? undefined : judged;
      return valid.length < FEWEST ? own : (read(voteFields(ballots(valid), own)) ?? own);
    },
  };
}
