import type { Lease, Settlement } from "../admission/lease.ts";
import { CallerGone, CutShort } from "../contract/endings.ts";
import { toFailure } from "../contract/failure.ts";
import type { Outcome } from "../contract/terms.ts";
import type { Engine } from "../engine/answer.ts";
import { abilityOf } from "../engine/difficulty/difficulty.ts";
import { tokensOfCalls } from "../engine/tools/tokens.ts";
import { draftsRecord } from "../outcomes/drafts.ts";
import { traced } from "../telemetry/tracing.ts";
import { abortedCalls, type TotalCost } from "./costs.ts";
import { CONTENT_FILTERED, CUT_SHORT } from "./notices.ts";
import type { Progress } from "./progress.ts";
import { visibleError } from "./request-context.ts";
import { cachedTokens, doneMessage, finishWord, fold } from "./response.ts";

/** How an answer has ended. Admission derives from the outcome whether it is charged. */
export interface Ending {
  readonly outcome: Outcome;
  /** What the caller gets in place of the last event. */
  readonly failure?: unknown;
}

/** What was charged, and for what. */
export interface Settled {
  readonly credits: number;
  readonly outputTokens: number;
  readonly cost: TotalCost;
}

/** The end of an answer of which the caller has at least a part: whole, or cut short. */
export function ended(progress: Progress): Ending {
  const reason = progress.finish?.reason;
  if (reason === "stop" || reason === "length" || reason === "calls") return { outcome: "ok" };
  progress.notices.push(reason === "filtered" ? CONTENT_FILTERED : CUT_SHORT);
  return { outcome: "cut_short" };
}

/** The end by an error. An answer that was cut short after some text counts as an answer. */
export function failed(progress: Progress, error: unknown): Ending {
  if (error instanceof CutShort && progress.delivered !== "") return ended(progress);
  const failure = visibleError(error);
  return failure instanceof CallerGone ? { ...left(progress), failure } : { outcome: toFailure(failure).kind, failure };
}

/** The end by a caller who has left. An answer that the service had already cut short is free. */
function left({ running }: Progress): Ending {
  return { outcome: running.signal.reason instanceof CutShort ? "cut_short" : "caller_gone" };
}

/**
 * Ends the lease of a request: the hold becomes the charge, which is on disk when this resolves.
 * @throws Failure; see `Lease.settle`. Then nothing is charged.
 */
export function settle(
  progress: Progress,
  lease: Lease,
  { outcome }: Ending,
  engine: Pick<Engine, "tokenizer" | "models">,
): Promise<Settled> {
  return traced("settlement", () => settleLease(progress, lease, outcome, engine));
}

async function settleLease(
  progress: Progress,
  lease: Lease,
  outcome: Outcome,
  { tokenizer, models }: Pick<Engine, "tokenizer" | "models">,
): Promise<Settled> {
  const { context, input, idempotency, finish, delivered: text, calls } = progress;
  try {
    await abortedCalls();
    const cost = progress.cost.sum();
    const outputTokens = finish?.outputTokens ?? tokenizer.count(text) + (await tokensOfCalls(calls, tokenizer));
    const done = (credits: number) => doneMessage(progress, { credits, outputTokens, cost });
    const { credits } = await lease.settle({
      outcome,
      outputTokens,
      cachedTokens: cachedTokens(progress),
      latencyMs: Math.round(performance.now() - context.startedAt),
      ...(outcome === "ok" || outcome === "cut_short" ? { finishReason: finishWord(finish) } : {}),
      ...(finish?.model ? { model: finish.model } : {}),
      ...(outcome === "ok" && finish?.model ? authorship(progress, finish.model, models) : {}),
      cost,
      ...(idempotency && outcome === "ok"
        ? { response: (credits) => idempotency.seal(fold({ text, calls }, done(credits), context)) }
        : {}),
    });
    const { facts } = context;
    facts.outcome = outcome;
    facts.inputTokens = input.inputTokens;
    facts.outputTokens = outputTokens;
    facts.cachedTokens = cachedTokens(progress);
    facts.credits = credits;
    return { credits, outputTokens, cost };
  } catch (error) {
    // Has an effect only if the lease could not be settled at all.
    await lease[Symbol.asyncDispose]();
    throw error;
  }
}

/** Who wrote the answer, as a later outcome needs to know. */
function authorship(
  { id, choice: { kind }, checked: { shape }, finish, delivered, calls, drafted }: Progress,
  model: string,
  { fingerprintOf }: Engine["models"],
): Pick<Settlement, "ability" | "fingerprint" | "drafts"> {
  const fingerprint = fingerprintOf(model, finish?.version);
  // An answer that asks for tools is a step towards one, so there is nothing to compare with a right answer.
  if (calls.length > 0) return { ability: abilityOf(kind), ...(fingerprint ? { fingerprint } : {}) };
  const text = shape === "text" ? delivered : (finish?.structured ?? "");
  const version = finish?.version;
  const drafts = draftsRecord({ generation: id, kind, shape, text, model, version, drafted, fingerprintOf });
  return { ability: abilityOf(kind), ...(fingerprint ? { fingerprint } : {}), ...(drafts ? { drafts } : {}) };
}
