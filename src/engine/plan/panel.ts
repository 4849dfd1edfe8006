/**
 * A panel is one model made of several that draft at the same time. It works without the rest of the service:
 *
 *     const members = models.map((model) => ({ role: "fast", model }));
 *     const trio = panel({ members, compare: compareAnswers("majority") });
 *     // With next: () => undefined the best draft is the answer when the drafts disagree.
 *     const plan = cascade({ first: trio, next: () => strong });
 *     // providerMetadata.chorus.steps lists the steps.
 *     const { content, providerMetadata } = await plan.doGenerate({ prompt });
 */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { LinkedAbort } from "../../abort.ts";
import type { Part } from "../../models/stream.ts";
import type { Comparison, Verdict } from "./compare.ts";
import { type Call, compositeModel } from "./composite.ts";
import { type Draft, draftParts, type PanelMember, requestDraft } from "./draft.ts";
import { Steps, stepPart } from "./step.ts";
import { Timeout } from "./timeout.ts";

interface PanelOptions {
  members: readonly PanelMember[];
  /** How drafts settle the answer. Absent: they never settle it, because a synthesis follows. */
  compare?: Comparison;
  /** Timeout of the drafts, in milliseconds. Default 60,000. */
  deadlineMs?: number;
  /**
   * Number of drafts after which the others get only a short time. Default: more than half of the members; of two,
   * one.
   */
  quorum?: number;
  steps?: Steps;
}

/** Most tokens of one draft: three pages, and room for a model that thinks. One model alone writes longer answers. */
export const DRAFT_TOKENS = 4_096;
/** Tokens that a draft may have above the caller's cap: room for a model that thinks before it answers. */
const SPARE_TOKENS = 1_024;
/**
 * Time for the remaining members once the quorum is reached: `ms` milliseconds, or if longer `share` of the time so
 * far. With two members the second gets as long again as the first took, because one draft alone settles nothing.
 */
const GRACE = { ms: 1_500, share: 0.25, shareOfTwo: 1 };

/** Thrown by a panel whose drafts disagree, or that has no drafts. */
export class UndecidedError extends Error {
  override name = "UndecidedError";
  /** In the order of the members. */
  readonly drafts: readonly Draft[];
  /** What the failed members threw. */
  readonly causes: readonly unknown[];

  constructor(drafts: readonly Draft[], causes: readonly unknown[]) {
    super(`A panel has no answer: ${drafts.length} drafts, ${causes.length} failures.`);
    this.drafts = drafts;
    this.causes = causes;
  }
}

/**
 * Calls the members at the same time and compares their drafts. It ends when the outstanding drafts cannot change the
 * answer, or the grace time after the quorum is over, or the deadline is reached; then it cancels the outstanding
 * calls. An answer is streamed in pieces.
 *
 * Drafts get no stop sequences, which are for the final answer, and their own token ceiling.
 * @throws UndecidedError; the reason of the caller's signal.
 */
export function panel(options: PanelOptions): LanguageModelV4 {
  const { members, compare, deadlineMs = 60_000, quorum = defaultQuorum(members.length) } = options;
  const steps = options.steps ?? new Steps();
  const graceShare = members.length === 2 ? GRACE.shareOfTwo : GRACE.share;
  const canonicalise = compare?.canonicalise ?? ((text: string) => text);

  async function* parts(call: Call): AsyncGenerator<Part> {
    const startedAt = performance.now();
    using abort = new LinkedAbort(call.abortSignal);
    using timeout = new Timeout(deadlineMs, call.abortSignal);
    const causes: unknown[] = [];
    const drafts = new Map<PanelMember, Draft>();
    const inOrder = () => members.flatMap((member) => drafts.get(member) ?? []);
    const draftSteps = new Map(members.map((member) => [member, steps.begin("draft", member.role)]));
    for (const step of draftSteps.values()) yield stepPart(step);

    const pending = new Map(
      members.map((member) => [
        member,
        requestDraft(member, draftCall(call, member, abort.signal), canonicalise).then(
          (draft) => ({ member, draft }),
          (error: unknown) => ({ member, error }),
        ),
      ]),
    );
    /** If the comparison throws, the drafts settle nothing. */
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
      const arrival = await Promise.race([...pending.values(), timeout.reached]);
      call.abortSignal?.throwIfAborted();
      if (!arrival) break;
      const { member } = arrival;
      pending.delete(member);
      if ("draft" in arrival) drafts.set(member, arrival.draft);
      else causes.push(arrival.error);
      const step = draftSteps.get(member);
      if (step) yield stepPart({ ...step, outcome: "draft" in arrival ? "ok" : "failed" });
      verdict = settle(outstanding());
      if (drafts.size >= quorum) timeout.shorten(Math.max(GRACE.ms, graceShare * (performance.now() - startedAt)));
    }
    abort.abort();
    for (const member of pending.keys()) {
      const step = draftSteps.get(member);
      if (step) yield stepPart({ ...step, outcome: "dropped" });
    }
    verdict ??= settle(0);
    if (compare && drafts.size > 0) yield* voteParts(steps, verdict, drafts.size);
    if (!verdict) throw new UndecidedError(inOrder(), causes);
    yield* draftParts(verdict.chosen, verdict.text);
  }
  return compositeModel("panel", parts);
}

function defaultQuorum(members: number): number {
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
