import { testAdvice } from "./advice.ts";
import { codeOf } from "./failures.ts";
import type { CallFailure, ModelEntry } from "./port/entry.ts";
import { complete, type Model } from "./port/model.ts";
import { toModelError } from "./port/model-error.ts";
import { knownWords } from "./vendor-words.ts";

/** Longest time of a test call, in milliseconds. */
const TIME_MS = 30_000;

/** What has come of a test call. */
export interface Tested {
  /** Time to the whole answer, or to the last failure, in milliseconds. */
  readonly durationMs: number;
  /** What answered, as the vendor names it. */
  readonly version?: string | undefined;
  /** Tokens of the prompt and of the answer that the vendor reports. */
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** By the prices of the catalogue. Absent without a price. */
  readonly usd?: number | undefined;
  /** Why there was no answer, and what to do. Absent if there was one. */
  readonly failure?: Omit<CallFailure, "count">;
}

/**
 * Asks a model for one word, also while its circuit is open, with the retries of any call. The vendor bills it, and
 * what comes of it counts as that of any call.
 * @param model that of the entry, with retries
 */
export async function testCall(entry: ModelEntry, model: Model): Promise<Tested> {
  const startedAt = performance.now();
  const signal = AbortSignal.timeout(TIME_MS);
  const used = { inputTokens: 0, outputTokens: 0, usd: undefined as number | undefined };
  try {
    const { end } = await complete(model, {
      prompt: { system: "", messages: [{ role: "user", text: "Reply with the word OK." }] },
      ...{ signal, endsAt: startedAt + TIME_MS, streamed: false, maxTokens: 16, reasoning: "none", isLastResort: true },
      onUsed({ inputTokens, outputTokens, usd }) {
        used.inputTokens += inputTokens;
        used.outputTokens += outputTokens;
        if (usd !== undefined) used.usd = (used.usd ?? 0) + usd;
      },
    });
    return { ...used, durationMs: performance.now() - startedAt, version: end.version };
  } catch (error) {
    return { ...used, durationMs: performance.now() - startedAt, failure: failureOf(entry, error, signal.aborted) };
  }
}

/** The prompt is known, so that a code and known words of the vendor can quote no text of a caller. */
function failureOf(entry: ModelEntry, thrown: unknown, isLate: boolean): NonNullable<Tested["failure"]> {
  const error = toModelError(thrown);
  const { status, vendorCode, needsOperator, kind, refusal, cause } = error;
  const own = isLate ? "timed_out" : (refusal ?? kind);
  const code = codeOf(entry, { safeCode: vendorCode }) ?? own;
  const message = typeof cause === "string" ? knownWords(cause) : undefined;
  return {
    at: Date.now(),
    ...(status === undefined ? {} : { status }),
    ...(code === undefined ? {} : { code }),
    ...(message === undefined ? {} : { message }),
    needsOperator,
    action: testAdvice(entry, error, isLate),
  };
}
