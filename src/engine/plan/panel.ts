/**
 * A panel is one model made of several that draft side by side. It needs no service around it:
 *
 *     const trio = panel({ members: models.map((model) => ({ role: "fast", model })), compare: compareAnswers("majority") });
 *     const plan = cascade({ first: trio, next: () => strong });      // next: () => undefined answers with the best draft
 *     const { content, providerMetadata } = await plan.doGenerate({ prompt });   // providerMetadata.chorus.steps: what was done
 */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { LinkedAbort } from "../../abort.ts";
import type { Part } from "../../models/stream.ts";
import { Alarm } from "./branch.ts";
import type { Compare, Verdict } from "./compare.ts";
import { type Call, composed } from "./composite.ts";
import { askDraft, type Draft, draftParts, type PanelMember } from "./draft.ts";
import { Steps, stepPart } from "./step.ts";

export interface PanelOptions {
  members: readonly PanelMember[];
  /** How drafts settle the answer. Absent: they never do, being material for whoever writes it. */
  compare?: Compare;
  /** Time that the drafts may take, in milliseconds. Default 60,000. */
  deadlineMs?: number;
  /** Drafts from which on the others get only a short grace. Default more than half of the members; of two, one. */
  quorum?: number;
  steps?: Steps;
}

/** Tokens of one draft, at most: three pages, and room to think for a closed question. A longer answer is written by one model. */
export const DRAFT_TOKENS = 4_096;
/** Tokens that a draft may have over the caller's cap: room for a model that thinks before it answers. */
const SPARE_TOKENS = 1_024;
/**
 * What stragglers get once a quorum is there: this time, in milliseconds, or this share of the time so far if that is more. The second of
 * two gets as long again as the first one took, because without it nothing is agreed on.
 */
const GRACE = { ms: 1_500, share: 0.25, shareOfTwo: 1 };

/** A panel came to no answer, because its drafts disagree or there are none. */
export class Undecided extends Error {
  override name = "Undecided";
  /** In the order of the members. */
  readonly drafts: readonly Draft[];
  /** What the members threw that failed. */
  readonly causes: readonly unknown[];

  constructor(drafts: readonly Draft[], causes: readonly unknown[]) {
    super(`A panel came to no answer: ${drafts.length} drafts, ${causes.length} failures.`);
    this.drafts = drafts;
    this.causes = causes;
  }
}

/**
 * Asks the members side by side and compares their drafts. It ends as soon as those who are still drafting cannot change the answer,
 * or a quorum is there and the grace for stragglers is over, or time is up; who is late is cancelled. An answer is streamed in pieces.
 *
 * Stop sequences are for the final answer, so drafts get none, and a ceiling of their own.
 * @throws Undecided; the reason of the caller's signal.
 */
export function panel(options: PanelOptions): LanguageModelV4 {
  const { members, compare, deadlineMs = 60_000, quorum = usualQuorum(members.length) } = options;
  const steps = options.steps ?? new Steps();
  const share = members.length === 2 ? GRACE.shareOfTwo : GRACE.share;
  const form = compare?.form ?? ((text: string) => text);

  async function* parts(call: Call): AsyncGenerator<Part> {
    const startedAt = performance.now();
    using branch = new LinkedAbort(call.abortSignal);
    using alarm = new Alarm(deadlineMs, call.abortSignal);
    const causes: unknown[] = [];
    const drafts = new Map<PanelMember, Draft>();
    const inOrder = () => members.flatMap((member) => drafts.get(member) ?? []);
    const begun = new Map(members.map((member) => [member, steps.begin("draft", member.role)]));
    for (const step of begun.values()) yield stepPart(step);

    const pending = new Map(
      members.map((member) => [
        member,
        askDraft(member, draftCall(call, member, branch.signal), form).then(
          (draft) => ({ member, draft }),
          (error: unknown) => ({ member, error }),
        ),
      ]),
    );
    /** A comparison that fails leaves the answer open. */
    const settle = (outstanding: number): Verdict | undefined => {
      try {
        return compare?.settle(inOrder(), outstanding);
      } catch (error) {
        causes.push(error);
        return undefined;
      }
    };
    const outstanding = () => pending.keys().reduce((sum, { weight = 1 }) => sum + weight, 0);
    let verdict: Verdict | undefined;
    while (pending.size > 0 && !verdict) {
      const arrival = await Promise.race([...pending.values(), alarm.rung]);
      call.abortSignal?.throwIfAborted();
      if (!arrival) break;
      const { member } = arrival;
      pending.delete(member);
      if ("draft" in arrival) drafts.set(member, arrival.draft);
      else causes.push(arrival.error);
      const step = begun.get(member);
      if (step) yield stepPart({ ...step, outcome: "draft" in arrival ? "ok" : "failed" });
      verdict = settle(outstanding());
      if (drafts.size >= quorum) alarm.hasten(Math.max(GRACE.ms, share * (performance.now() - startedAt)));
    }
    branch.abort();
    for (const member of pending.keys()) {
      const step = begun.get(member);
      if (step) yield stepPart({ ...step, outcome: "dropped" });
    }
    verdict ??= settle(0);
    if (compare && drafts.size > 0) yield* voteParts(steps, verdict, drafts.size);
    if (!verdict) throw new Undecided(inOrder(), causes);
    yield* draftParts(verdict.chosen, verdict.text);
  }
  return composed("panel", parts);
}

function usualQuorum(members: number): number {
  return members === 2 ? 1 : Math.floor(members / 2) + 1;
}

function* voteParts(steps: Steps, verdict: Verdict | undefined, drafts: number): Generator<Part> {
  const step = steps.begin("vote", "service");
  yield stepPart(step);
  if (!verdict) yield stepPart({ ...step, outcome: "failed", detail: `${drafts} drafts do not settle the answer` });
  else {
    const { agreement } = verdict;
    const detail = `${drafts} drafts, agreement ${Math.round(agreement * 100)} %`;
    yield stepPart({ ...step, outcome: "ok", agreement, detail });
  }
}

function draftCall({ stopSequences: _, ...call }: Call, { temperature }: PanelMember, abortSignal: AbortSignal): Call {
  const cap = call.maxOutputTokens ?? DRAFT_TOKENS;
  return {
    ...call,
    abortSignal,
    maxOutputTokens: Math.min(DRAFT_TOKENS, cap + SPARE_TOKENS),
    ...(temperature === undefined ? {} : { temperature }),
  };
}
