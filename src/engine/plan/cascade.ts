import type { LanguageModelV4 } from "@ai-sdk/provider";
import { LinkedAbort } from "../../abort.ts";
import { UpstreamError } from "../../models/failover.ts";
import type { Part } from "../../models/stream.ts";
import { bestDraft } from "./best.ts";
import { type Call, composed, partsOf } from "./composite.ts";
import { type Draft, draftParts } from "./draft.ts";
import { Undecided } from "./panel.ts";
import { Steps, stepPart } from "./step.ts";

export interface CascadeOptions {
  first: LanguageModelV4;
  /** Who answers when the first one could not: gets its drafts, in the order of its members. Undefined: the best draft is the answer. */
  next: (drafts: readonly Draft[]) => LanguageModelV4 | undefined;
  /** Time since the beginning until which the answer's first text must be there, in milliseconds, if a draft can stand in. Default: no limit. */
  firstTextMs?: number;
  steps?: Steps;
}

/**
 * One model, and where that fails or is undecided another. If that fails too, or takes too long to begin, the best of the drafts is the
 * answer. What has delivered text is not replaced.
 * @throws UpstreamError when there is no draft either, or an answer breaks off; the reason of the caller's signal.
 */
export function cascade({ first, next, firstTextMs, steps = new Steps() }: CascadeOptions): LanguageModelV4 {
  async function* parts(call: Call): AsyncGenerator<Part> {
    const until = firstTextMs === undefined ? undefined : performance.now() + firstTextMs;
    const causes: unknown[] = [];
    let drafts: readonly Draft[] = [];
    let delivered = false;
    const failed = (error: unknown) => {
      call.abortSignal?.throwIfAborted();
      if (error instanceof Undecided) {
        drafts = error.drafts;
        causes.push(...error.causes);
      } else if (error instanceof UpstreamError) causes.push(...error.causes);
      else causes.push(error);
      if (delivered) throw new UpstreamError(causes);
    };
    try {
      for await (const part of partsOf(first, call)) {
        if (isText(part)) delivered = true;
        yield part;
      }
      return;
    } catch (error) {
      failed(error);
    }
    const successor = next(drafts);
    if (successor) {
      using branch = new LinkedAbort(call.abortSignal);
      const timer =
        until === undefined || drafts.every(({ form }) => form === undefined)
          ? undefined
          : setTimeout(() => branch.abort(), Math.max(0, until - performance.now()));
      try {
        for await (const part of partsOf(successor, { ...call, abortSignal: branch.signal })) {
          if (isText(part) && !delivered) {
            delivered = true;
            clearTimeout(timer);
          }
          yield part;
        }
        return;
      } catch (error) {
        failed(error);
      } finally {
        clearTimeout(timer);
      }
    }
    const draft = bestDraft(drafts);
    if (!draft) throw new UpstreamError(causes);
    const step = steps.begin("fallback", "service");
    yield stepPart(step);
    yield stepPart({ ...step, outcome: "ok", detail: `the best of ${drafts.length} drafts` });
    yield* draftParts(draft, draft.text);
  }
  return composed("cascade", parts);
}

function isText(part: Part): boolean {
  return part.type === "text-delta" && part.delta !== "";
}
