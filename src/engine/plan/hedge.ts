import type { LanguageModelV4 } from "@ai-sdk/provider";
import { LinkedAbort } from "../../abort.ts";
import type { Part } from "../../models/stream.ts";
import { Alarm } from "./branch.ts";
import { type Call, composed } from "./composite.ts";
import { Steps, stepPart } from "./step.ts";

export interface HedgeOptions {
  first: LanguageModelV4;
  /** Who is asked as well when the first one is late. */
  second: () => LanguageModelV4;
  /** When the first one is late, in milliseconds. */
  afterMs: number;
  /** Asks for the right to a second call. */
  mayHedge: () => boolean;
  /** How the trace calls the second one. */
  role: string;
  steps?: Steps;
}

interface Runner {
  branch: LinkedAbort;
  /** Set once the stream is there. */
  parts: AsyncIterator<Part> | undefined;
  opening: Promise<IteratorResult<Part>>;
}

/**
 * One model, and a second one beside it once the first has been silent for longer than it is 19 times out of 20. Whose first part comes
 * first answers, the other is cancelled. `mayHedge` bounds how often that may be, so that a slow vendor does not double the load. For models
 * that deliver nothing before their first text.
 * @throws what the first one throws, if neither delivers; the reason of the caller's signal.
 */
export function hedge(options: HedgeOptions): LanguageModelV4 {
  const { first, second, afterMs, mayHedge, role, steps = new Steps() } = options;

  async function* parts(call: Call): AsyncGenerator<Part> {
    const one = start(first, call);
    const runners = [one];
    try {
      let winner = one;
      if ((await isLate(one, afterMs, call.abortSignal)) && mayHedge()) {
        const step = steps.begin("hedge", role);
        yield stepPart(step);
        const other = start(second(), call);
        runners.push(other);
        winner = await Promise.any(runners.map((each) => each.opening.then(() => each))).catch(() => one);
        leave(winner === one ? other : one);
        yield stepPart({ ...step, outcome: winner === one ? "dropped" : "ok" });
      }
      let next = await winner.opening;
      while (!next.done) {
        yield next.value;
        next = (await winner.parts?.next()) ?? { done: true, value: undefined };
      }
    } finally {
      for (const runner of runners) leave(runner);
    }
  }
  return composed("hedge", parts);
}

async function isLate({ opening }: Runner, afterMs: number, signal: AbortSignal | undefined): Promise<boolean> {
  using alarm = new Alarm(afterMs, signal);
  const first = await Promise.race([opening, alarm.rung]);
  signal?.throwIfAborted();
  return first === undefined;
}

function start(model: LanguageModelV4, call: Call): Runner {
  const branch = new LinkedAbort(call.abortSignal);
  const open = async () => {
    const { stream } = await model.doStream({ ...call, abortSignal: branch.signal });
    runner.parts = stream[Symbol.asyncIterator]();
    return runner.parts.next();
  };
  const runner: Runner = { branch, parts: undefined, opening: Promise.try(open) };
  // It is waited for later, if at all.
  runner.opening.catch(() => {});
  return runner;
}

/** Ends a call; closing its stream may have to wait for what the vendor is doing, so nobody does. */
function leave({ parts, branch }: Runner): void {
  branch[Symbol.dispose]();
  parts?.return?.().catch(() => {});
}
