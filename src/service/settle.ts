import { create } from "@bufbuild/protobuf";
import {
  type StreamGenerateResponse_Done,
  StreamGenerateResponse_DoneSchema,
  UsageSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Lease, ModelCost } from "../admission/lease.ts";
import type { Tokenizer } from "../engine/tokens.ts";
import type { Outcome } from "../terms.ts";
import { traced } from "../tracing.ts";
import type { AdmittedRequest } from "./admitted-request.ts";
import type { Cost } from "./costs.ts";
import { CONTENT_FILTERED, CUT_SHORT } from "./notices.ts";
import { finishReason, finishWord, fold, structuredOf, traceMessage } from "./response.ts";

/** Ends the lease of a request. Only the first end counts; later ones have no effect. */
export interface Settlement {
  /** Settles an answer of which the caller has at least a part: whole, or cut short. @returns the last event */
  conclude(): Promise<StreamGenerateResponse_Done>;
  /** Settles any other end. Admission derives from the outcome whether the request is charged. */
  settle(outcome: Outcome): Promise<void>;
  /** Whether an end has come. */
  readonly hasBegun: boolean;
}

/** What an answer came to. */
interface Settled {
  credits: number;
  outputTokens: number;
  /** What the calls of models took. */
  cost: ModelCost & { models: number };
}

/** @param cost the cost of the calls for this request */
export function createSettlement(
  request: AdmittedRequest,
  lease: Lease,
  cost: Cost,
  tokenizer: Pick<Tokenizer, "count">,
): Settlement {
  const { context, input, idempotency } = request;
  let settled: Promise<Settled> | undefined;
  return {
    async conclude() {
      const reason = request.finish?.reason;
      const isWhole = reason === "stop" || reason === "length";
      if (!isWhole) request.notices.push(reason === "filtered" ? CONTENT_FILTERED : CUT_SHORT);
      return doneMessage(request, await settle(isWhole ? "ok" : "cut_short"));
    },
    async settle(outcome) {
      await settle(outcome);
    },
    get hasBegun() {
      return settled !== undefined;
    },
  };

  function settle(outcome: Outcome): Promise<Settled> {
    settled ??= traced("settlement", () => settleLease(outcome));
    return settled;
  }

  async function settleLease(outcome: Outcome): Promise<Settled> {
    const { finish, delivered } = request;
    const outputTokens = finish?.outputTokens ?? tokenizer.count(delivered);
    const total = await cost.sum();
    const done = (credits: number) => doneMessage(request, { credits, outputTokens, cost: total });
    const { credits } = await lease.settle({
      outcome,
      outputTokens,
      cachedTokens: cachedTokens(request),
      latencyMs: Math.round(performance.now() - context.startedAt),
      ...(outcome === "ok" || outcome === "cut_short" ? { finishReason: finishWord(finish) } : {}),
      ...(finish?.model ? { model: finish.model } : {}),
      cost: total,
      ...(idempotency && outcome === "ok"
        ? { response: (credits) => idempotency.seal(fold(delivered, done(credits), context)) }
        : {}),
    });
    const { inputTokens } = input;
    const { facts } = context;
    facts.outcome = outcome;
    facts.inputTokens = inputTokens;
    facts.outputTokens = outputTokens;
    facts.cachedTokens = cachedTokens(request);
    facts.credits = credits;
    return { credits, outputTokens, cost: total };
  }
}

function doneMessage(request: AdmittedRequest, settled: Settled): StreamGenerateResponse_Done {
  const { id, checked, choice, context, finish, input, notices, trace } = request;
  const { credits, outputTokens, cost } = settled;
  const { inputTokens } = input;
  return create(StreamGenerateResponse_DoneSchema, {
    id,
    requestId: context.requestId,
    usage: create(UsageSchema, { inputTokens, outputTokens, cachedTokens: cachedTokens(request), credits }),
    finishReason: finishReason(finish),
    notices,
    ...structuredOf(checked, finish),
    ...(trace ? { intelligenceTrace: traceMessage(trace, choice.level, choice.reasons, cost) } : {}),
  });
}

/** A vendor counts with its own tokenizer, so its figure can exceed the input tokens. */
function cachedTokens({ finish, input }: AdmittedRequest): number {
  return Math.min(finish?.cachedTokens ?? 0, input.inputTokens);
}
