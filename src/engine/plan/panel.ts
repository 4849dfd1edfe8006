/**
 * A panel is one model made of several that draft at the same time. It works without the rest of the service:
 *
 *     const members = models.map((model) => ({ role: "fast", model }));
 *     const trio = panel({ members, compare: compareAnswers("majority") });
 *     // With next: () => undefined the best draft is the answer when the drafts disagree.
 *     const plan = cascade({ first: trio, next: () => strong });
 *     const { text, steps } = await complete(plan, call);
 */
import { setImmediate as turn } from "node:timers/promises";
import { LinkedAbort, type Signal } from "../../concurrency/abort.ts";
import type { DraftReport, Model, ModelCall, Piece, Step } from "../../models/port/model.ts";
import type { Comparison, Verdict } from "./compare.ts";
import type { PieceGenerator } from "./composite.ts";
import { affordable } from "./depth.ts";
import { type Draft, draftPieces, type PanelMember, requestDraft } from "./draft.ts";
import { Steps, stepPiece } from "./step.ts";
import { Timeout } from "./timeout.ts";

interface PanelOptions {
  members: readonly PanelMember[];
  /** How drafts settle the answer. Absent: they never settle it, because a synthesis follows. */
  compare?: Comparison;
  /** Timeout of the drafts, in milliseconds. Default 60,000. */
  deadlineMs?: number;
  /** Drafts that came before, which count as well. */
  given?: readonly Draft[];
  /** What decided the order of the members, as a clause for the trace. */
  reason?: string | undefined;
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
export function panel(options: PanelOptions): Model {
  const { members, compare, deadlineMs = 60_000, given = [], steps = new Steps() } = options;
  /** Number of drafts after which the others get only a short time. */
  const quorum = members.length === 2 ? 1 : Math.floor(members.length / 2) + 1;
  const graceShare = members.length === 2 ? GRACE.shareOfTwo : GRACE.share;
  const canonicalise = compare?.canonicalise ?? ((text: string) => text);

  async function* ask(call: ModelCall): PieceGenerator {
    const startedAt = performance.now();
    using abort = new LinkedAbort(call.signal);
    using timeout = new Timeout(deadlineMs, call.signal);
    const causes: unknown[] = [];
    const arrived = new Map<PanelMember, Draft>();
    /** In the order of the members. */
    let drafts = given;
    const draftSteps = new Map(
      steps.areRead ? members.map((member) => [member, steps.begin("draft", member.role)]) : [],
    );
    for (const step of draftSteps.values()) yield stepPiece(step);

    const pending = new Set(members);
    const arrivals = new Arrivals(timeout.reached);
    const callOf = (member: PanelMember) => draftCall(call, member, draftSteps.get(member), abort.signal, deadlineMs);
    for (const member of members)
      requestDraft(member, callOf(member), canonicalise).then(
        (draft) => arrivals.add({ member, draft }),
        (error: unknown) => arrivals.add({ member, error }),
      );
    /** If the comparison throws, the drafts settle nothing. */
    const settle = (outstanding: readonly number[]): Verdict | undefined => {
      try {
        return compare?.settle(drafts, outstanding);
      } catch (error) {
        causes.push(error);
        return undefined;
      }
    };
    const outstanding = () => Array.from(pending, ({ weight = 1 }) => weight);
    let verdict: Verdict | undefined;
    while (pending.size > 0) {
      // A draft that comes in the same turn of the event loop counts, and its connection stays open.
      if (verdict) await turn();
      const arrival = verdict ? arrivals.take() : await arrivals.next();
      call.signal.throwIfAborted();
      if (!arrival) break;
      const { member } = arrival;
      pending.delete(member);
      if ("draft" in arrival) {
        arrived.set(member, arrival.draft);
        drafts = [...given, ...members.flatMap((member) => arrived.get(member) ?? [])];
      } else causes.push(arrival.error);
      const step = draftSteps.get(member);
      if (step) yield stepPiece({ ...step, outcome: "draft" in arrival ? "ok" : "failed" });
      verdict = settle(outstanding()) ?? verdict;
      if (!verdict && arrived.size >= quorum)
        timeout.shorten(Math.max(GRACE.ms, graceShare * (performance.now() - startedAt)));
    }
    abort.abort();
    const dropped = Array.from(pending, (member) => draftSteps.get(member));
    for (const step of dropped) if (step) yield stepPiece({ ...step, outcome: "dropped" });
    verdict ??= settle([]);
    call.onDrafts?.(drafts.map(reportOf), verdict && drafts.indexOf(verdict.chosen));
    if (steps.areRead && compare && arrived.size > 0)
      yield* votePieces(steps, compare, drafts, verdict, options.reason);
    if (!verdict) throw new UndecidedError(drafts, causes);
    yield* draftPieces(verdict, call);
  }
  return { name: "panel", ask };
}

function reportOf({ end: { model, version, usage }, canonical, text, calls, step }: Draft): DraftReport {
  return { model, version, canonical, text, calls, cachedTokens: usage?.cachedTokens ?? 0, step };
}

/** A draft, or why there is none. */
type Arrival = { member: PanelMember; draft: Draft } | { member: PanelMember; error: unknown };

/** What the members have delivered, in the order of its arrival. `Promise.race` would make four promises for each. */
class Arrivals {
  readonly #arrived: Arrival[] = [];
  #isOver = false;
  #wake = () => {};

  /** @param over resolves when the time for the drafts is up */
  constructor(over: Promise<undefined>) {
    over.then(() => {
      this.#isOver = true;
      this.#wake();
    });
  }

  add(arrival: Arrival): void {
    this.#arrived.push(arrival);
    this.#wake();
  }

  /** Waits for the next arrival. @returns undefined when the time is up */
  async next(): Promise<Arrival | undefined> {
    if (this.#arrived.length === 0 && !this.#isOver)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    return this.take();
  }

  /** @returns undefined when nothing has arrived */
  take(): Arrival | undefined {
    return this.#arrived.shift();
  }
}

function* votePieces(
  steps: Steps,
  compare: Comparison,
  drafts: readonly Draft[],
  verdict: Verdict | undefined,
  reason: string | undefined,
): Generator<Piece> {
  const step = steps.begin("vote", "service");
  yield stepPiece(step);
  const agreement = verdict?.agreement ?? agreementOf(compare, drafts);
  const share =
    agreement === undefined ? "none has an answer that can be compared" : `agreement ${Math.round(agreement * 100)} %`;
  yield stepPiece({
    ...step,
    outcome: verdict ? "ok" : "failed",
    detail: `${drafts.length} drafts ${verdict ? "decide" : "do not decide"}, ${share}${reason ? `; ${reason}` : ""}`,
    ...(agreement === undefined ? {} : { agreement }),
  });
}

/** A comparison that throws finds no agreement. */
function agreementOf(compare: Comparison, drafts: readonly Draft[]): number | undefined {
  try {
    return compare.agreement(drafts);
  } catch {
    return undefined;
  }
}

function draftCall(
  { stops: _, ...call }: ModelCall,
  { temperature, depth }: PanelMember,
  step: Step | undefined,
  signal: Signal,
  deadlineMs: number,
): ModelCall {
  const cap = call.maxTokens ?? DRAFT_TOKENS;
  return {
    ...call,
    signal,
    streamed: false,
    maxTokens: Math.min(DRAFT_TOKENS, cap + SPARE_TOKENS),
    ...(step ? { step: step.id } : {}),
    ...(depth === undefined ? {} : { reasoning: affordable(depth, deadlineMs) }),
    ...(temperature === undefined ? {} : { defaultTemperature: temperature }),
  };
}
