import { LinkedAbort, type Signal } from "../../concurrency/abort.ts";
import { failover } from "../../models/failover.ts";
import { HandOver } from "../../models/hand-over.ts";
import type { Ranked } from "../../models/order.ts";
import type { Model, ModelCall, NextPiece, Piece, Pieces } from "../../models/port/model.ts";
import { Steps, stepPiece } from "./step.ts";
import { Timeout } from "./timeout.ts";

interface HedgeOptions {
  first: Model;
  /** Gives the model that is called in addition when the first one is late. */
  second: () => Model;
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
  pieces: Pieces;
  firstPiece: Promise<NextPiece>;
}

/**
 * A hedged request: calls a second model when the first is slower than in 19 of 20 calls. The model whose first piece
 * comes first answers; the other call is cancelled. `mayHedge` limits the extra load on a slow vendor. Both models
 * must deliver nothing before their first text.
 * @throws what the first model throws, if neither delivers; the reason of the caller's signal.
 */
export function hedge(options: HedgeOptions): Model {
  const { first, second, afterMs, mayHedge, role, steps = new Steps() } = options;

  async function* begin(call: ModelCall): AsyncGenerator<Piece, Pieces | undefined, undefined> {
    const one = start(first, call);
    const attempts = new Set([one]);
    try {
      let winner = one;
      if ((await isLate(one, afterMs, call.signal)) && mayHedge()) {
        const step = steps.begin("hedge", role);
        yield stepPiece(step);
        const other = start(second(), { ...call, step: step.id });
        attempts.add(other);
        winner = await Promise.any([one, other].map((each) => each.firstPiece.then(() => each))).catch(() => one);
        cancel(winner === one ? other : one);
        yield stepPiece({ ...step, outcome: winner === one ? "dropped" : "ok" });
      }
      const { done, value } = await winner.firstPiece;
      if (done) return undefined;
      yield value;
      attempts.delete(winner);
      return winner.pieces;
    } finally {
      for (const attempt of attempts) cancel(attempt);
    }
  }
  return { name: "hedge", ask: (call) => new HandOver(begin(call)) };
}

async function isLate({ firstPiece }: Attempt, afterMs: number, signal: Signal): Promise<boolean> {
  using timeout = new Timeout(afterMs, signal);
  const first = await Promise.race([firstPiece, timeout.reached]);
  signal.throwIfAborted();
  return first === undefined;
}

function start(model: Model, call: ModelCall): Attempt {
  const abort = new LinkedAbort(call.signal);
  const pieces = model.ask({ ...call, signal: abort.signal });
  const attempt: Attempt = { abort, pieces, firstPiece: Promise.resolve(pieces.next()) };
  // Marks a rejection as handled, because the promise may be awaited later or never.
  attempt.firstPiece.catch(() => {});
  return attempt;
}

/** Ends a call without waiting for its stream to close, which can take until the vendor's next event. */
function cancel({ pieces, abort }: Attempt): void {
  abort[Symbol.dispose]();
  Promise.resolve(pieces.return?.()).catch(() => {});
}

/**
 * Adds a hedge to a model where its first member's latency is known. The second model is of another vendor if there is
 * one, because a vendor's models are often slow together.
 * @param order the members behind `model`, in failover order
 */
export function hedged(model: Model, order: readonly Ranked[], steps: Steps): Model {
  const [first, ...others] = order;
  const { vendor, latency } = first ?? {};
  const afterMs = others.length > 0 ? latency?.hedgeAfterMs() : undefined;
  if (!latency || afterMs === undefined) return model;
  const ofOther = others.filter((other) => other.vendor !== vendor);
  const seconds = [...new Set([...ofOther, ...others])];
  return hedge({
    first: model,
    second: () => failover(seconds.map(({ model }) => model)),
    afterMs,
    mayHedge: () => latency.maySpend(),
    role: seconds[0]?.tier ?? "strong",
    steps,
  });
}
