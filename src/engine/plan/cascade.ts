import { LinkedAbort } from "../../concurrency/abort.ts";
import { UpstreamError } from "../../models/failover.ts";
import type { Model, ModelCall, Piece } from "../../models/port/model.ts";
import { bestDraft } from "./best.ts";
import type { PieceGenerator } from "./composite.ts";
import { type Draft, draftPieces } from "./draft.ts";
import { UndecidedError } from "./panel.ts";
import { Steps, stepPiece } from "./step.ts";

interface CascadeOptions {
  first: Model;
  /**
   * The model to call when the first one fails or is undecided. Gets the drafts in the order of the panel's members.
   * Undefined: the best draft is the answer.
   */
  next: (drafts: readonly Draft[]) => Model | undefined;
  /**
   * Time from the start to the first text of the answer, in milliseconds. When it is over and a draft can be the
   * answer, the second model is cancelled. Default: no limit.
   */
  firstTextMs?: number;
  steps?: Steps;
}

/**
 * Calls one model, and another if the first fails or is undecided. If that fails too or starts too late, the best
 * draft is the answer. After the first text no other model can take over.
 * @throws UpstreamError when there is no draft either, or an answer breaks off; the reason of the caller's signal.
 */
export function cascade({ first, next, firstTextMs, steps = new Steps() }: CascadeOptions): Model {
  async function* ask(call: ModelCall): PieceGenerator {
    const firstTextAt = firstTextMs === undefined ? undefined : performance.now() + firstTextMs;
    const causes: unknown[] = [];
    let drafts: readonly Draft[] = [];
    let hasText = false;
    /** Records why a model failed; throws when no other model can take over. */
    const recordFailure = (error: unknown) => {
      call.signal.throwIfAborted();
      if (error instanceof UndecidedError) {
        drafts = error.drafts;
        causes.push(...error.causes);
      } else if (error instanceof UpstreamError) causes.push(...error.causes);
      else causes.push(error);
      if (hasText) throw new UpstreamError(causes);
    };
    const askNext = () => {
      const hasDraft = drafts.some(({ canonical }) => canonical !== undefined);
      const successor = next(drafts);
      return successor && startedBy(hasDraft ? firstTextAt : undefined, successor, { ...call, hasDraft });
    };
    for (const begin of [() => first.ask(call), askNext]) {
      try {
        const pieces = begin();
        if (!pieces) break;
        for await (const piece of pieces) {
          if (isAnswer(piece)) hasText = true;
          yield piece;
        }
        return;
      } catch (error) {
        recordFailure(error);
      }
    }
    const draft = bestDraft(drafts);
    if (!draft) throw new UpstreamError(causes);
    const step = steps.begin("fallback", "service");
    yield stepPiece(step);
    yield stepPiece({ ...step, outcome: "ok", detail: `the best of ${drafts.length} drafts` });
    yield* draftPieces({ chosen: draft, text: draft.text }, call);
  }
  return { name: "cascade", ask };
}

function isAnswer({ type }: Piece): boolean {
  return type === "text" || type === "calls";
}

/** Streams a call and cancels it if there is no text by the time `at`, a value of `performance.now()`. */
async function* startedBy(at: number | undefined, model: Model, call: ModelCall): PieceGenerator {
  using abort = new LinkedAbort(call.signal);
  const timer = at === undefined ? undefined : setTimeout(() => abort.abort(), Math.max(0, at - performance.now()));
  try {
    for await (const piece of model.ask({ ...call, signal: abort.signal })) {
      if (isAnswer(piece)) clearTimeout(timer);
      yield piece;
    }
  } finally {
    clearTimeout(timer);
  }
}
