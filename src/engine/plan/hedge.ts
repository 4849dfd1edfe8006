import type { LanguageModelV4 } from "@ai-sdk/provider";
import { LinkedAbort } from "../../abort.ts";
import type { Part } from "../../models/stream.ts";
import { type Call, compositeModel } from "./composite.ts";
import { Steps, stepPart } from "./step.ts";
import { Timeout } from "./timeout.ts";

interface HedgeOptions {
  first: LanguageModelV4;
  /** Gives the model that is called in addition when the first one is late. */
  second: () => LanguageModelV4;
  /** Time after which the first model is late, in milliseconds. */
  afterMs: number;
  /** Whether a second call is allowed now. */
  mayHedge: () => boolean;
  /** Role of the second model in the trace. */
  role: string;
  steps?: Steps;
}

interface Attempt {
  abort: LinkedAbort;
  /** Set once the stream is open. */
  parts: AsyncIterator<Part> | undefined;
  firstPart: Promise<IteratorResult<Part>>;
}

/**
 * A hedged request: calls a second model when the first is slower than in 19 of 20 calls. The model whose first part
 * comes first answers; the other call is cancelled. `mayHedge` limits the extra load on a slow vendor. Both models
 * must deliver nothing before their first text.
 * @throws what the first model throws, if neither delivers; the reason of the caller's signal.
 */
export function hedge(options: HedgeOptions): LanguageModelV4 {
  const { first, second, afterMs, mayHedge, role, steps = new Steps() } = options;

  async function* parts(call: Call): AsyncGenerator<Part> {
    const one = start(first, call);
    const attempts = [one];
    try {
      let winner = one;
      if ((await isLate(one, afterMs, call.abortSignal)) && mayHedge()) {
        const step = steps.begin("hedge", role);
        yield stepPart(step);
        const other = start(second(), call);
        attempts.push(other);
        winner = await Promise.any(attempts.map((each) => each.firstPart.then(() => each))).catch(() => one);
        cancel(winner === one ? other : one);
        yield stepPart({ ...step, outcome: winner === one ? "dropped" : "ok" });
      }
      let next = await winner.firstPart;
      while (!next.done) {
        yield next.value;
        next = (await winner.parts?.next()) ?? { done: true, value: undefined };
      }
    } finally {
      for (const attempt of attempts) cancel(attempt);
    }
  }
  return compositeModel("hedge", parts);
}

async function isLate({ firstPart }: Attempt, afterMs: number, signal: AbortSignal | undefined): Promise<boolean> {
  using timeout = new Timeout(afterMs, signal);
  const first = await Promise.race([firstPart, timeout.reached]);
  signal?.throwIfAborted();
  return first === undefined;
}

function start(model: LanguageModelV4, call: Call): Attempt {
  const abort = new LinkedAbort(call.abortSignal);
  const open = async () => {
    const { stream } = await model.doStream({ ...call, abortSignal: abort.signal });
    attempt.parts = stream[Symbol.asyncIterator]();
    return attempt.parts.next();
  };
  const attempt: Attempt = { abort, parts: undefined, firstPart: Promise.try(open) };
  // Marks a rejection as handled, because the promise may be awaited later or never.
  attempt.firstPart.catch(() => {});
  return attempt;
}

/** Ends a call without waiting for its stream to close, which can take until the vendor's next event. */
function cancel({ parts, abort }: Attempt): void {
  abort[Symbol.dispose]();
  parts?.return?.().catch(() => {});
}
