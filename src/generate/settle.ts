import { create } from "@bufbuild/protobuf";
import {
  type StreamGenerateResponse_Done,
  StreamGenerateResponse_DoneSchema,
  UsageSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Lease, ModelCost } from "../admission/lease.ts";
import type { Outcome } from "../contract/terms.ts";
import type { Tokenizer } from "../engine/tokens/tokens.ts";
import { traced } from "../telemetry/tracing.ts";
import type { AdmittedRequest } from "./admitted-request.ts";
import type { Cost } from "./costs.ts";
import { CONTENT_FILTERED, CUT_SHORT } from "./notices.ts";
import { finishReason, finishWord, fold, structuredOf, traceMessage } from "./response.ts";

/** What an answer came to. */
interface Settled {
  credits: number;
  outputTokens: number;
  /** What the calls of models took. */
  cost: ModelCost & { models: number };
}

/**
 * Ends the lease of a request. Only the first end counts; later ones have no effect. It is a class, because V8 keeps an
 * object literal with a getter as a hash table.
 */
export class Settlement {
  readonly #request: AdmittedRequest;
  readonly #lease: Lease;
  readonly #cost: Cost;
  readonly #tokenizer: Pick<Tokenizer, "count">;
  #settled: Promise<Settled> | undefined;

  /** @param cost the cost of the calls for this request */
  constructor(request: AdmittedRequest, lease: Lease, cost: Cost, tokenizer: Pick<Tokenizer, "count">) {
    this.#request = request;
    this.#lease = lease;
    this.#cost = cost;
    this.#tokenizer = tokenizer;
  }

  /** Settles an answer of which the caller has at least a part: whole, or cut short. @returns the last event */
  async conclude(): Promise<StreamGenerateResponse_Done> {
    const request = this.#request;
    const reason = request.finish?.reason;
    const isWhole = reason === "stop" || reason === "length";
    if (!isWhole) request.notices.push(reason === "filtered" ? CONTENT_FILTERED : CUT_SHORT);
    return doneMessage(request, await this.#settle(isWhole ? "ok" : "cut_short"));
  }

  /** Settles any other end. Admission derives from the outcome whether the request is charged. */
  async settle(outcome: Outcome): Promise<void> {
    await this.#settle(outcome);
  }

  /** Whether an end has come. */
  get hasBegun(): boolean {
    return this.#settled !== undefined;
  }

  #settle(outcome: Outcome): Promise<Settled> {
    this.#settled ??= traced("settlement", () => this.#settleLease(outcome));
    return this.#settled;
  }

  async #settleLease(outcome: Outcome): Promise<Settled> {
    const request = this.#request;
    const { context, input, idempotency, finish, delivered } = request;
    const outputTokens = finish?.outputTokens ?? this.#tokenizer.count(delivered);
    const total = await this.#cost.sum();
    const done = (credits: number) => doneMessage(request, { credits, outputTokens, cost: total });
    const { credits } = await this.#lease.settle({
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
