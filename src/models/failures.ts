import type { CallFailure, ModelEntry } from "./port/entry.ts";
import type { ModelError } from "./port/model-error.ts";
import type { CallEnd } from "./try.ts";

/** Shortest time between two reports of one model, in milliseconds. */
const REPORT_MS = 10_000;

/** Longest message of a vendor that is kept, in characters. */
const MAX_MESSAGE = 200;

/** @param failures number of failures of the model since the last report, this one included */
export type FailureReport = (entry: ModelEntry, failure: CallFailure, failures: number) => void;

interface State {
  failure?: CallFailure | undefined;
  /** Whether a probe has found the failure, not a call. */
  isProbed: boolean;
  unreported: number;
  nextReportAt: number;
}

/** Keeps why the last call of each model failed, and reports it, at most once in ten seconds for each model. */
export class Failures {
  readonly #states = new Map<string, State>();
  readonly #report: FailureReport | undefined;
  readonly #now: () => number;

  /** @param now milliseconds since 1970 */
  constructor(report?: FailureReport, now: () => number = Date.now) {
    this.#report = report;
    this.#now = now;
  }

  /** Notes how a call of a model ended. A failure that the request has caused, or its caller, says nothing. */
  note(entry: ModelEntry, { outcome, failure }: Pick<CallEnd, "outcome" | "failure">): void {
    if (outcome === "ok") this.clear(entry);
    else if (outcome !== "left" && failure && failure.kind === undefined) this.#add(entry, failure, false);
  }

  /** Notes what a probe has found: a failure, or none. */
  noteProbe(entry: ModelEntry, error: ModelError | undefined): CallFailure | undefined {
    if (error) return this.#add(entry, error, true);
    // A key that is taken does not mean that a completion is.
    if (this.mayBeMended(entry)) this.clear(entry);
    return undefined;
  }

  #add(entry: ModelEntry, error: ModelError, isProbed: boolean): CallFailure {
    const state = this.#states.get(entry.name) ?? { isProbed, unreported: 0, nextReportAt: 0 };
    state.isProbed = isProbed;
    this.#states.set(entry.name, state);
    const at = this.#now();
    const failure = failureOf(entry, error, at);
    state.failure = failure;
    state.unreported += 1;
    if (at < state.nextReportAt) return failure;
    const failures = state.unreported;
    state.unreported = 0;
    state.nextReportAt = at + REPORT_MS;
    this.#report?.(entry, failure, failures);
    return failure;
  }

  clear({ name }: ModelEntry): void {
    const state = this.#states.get(name);
    if (state?.failure) state.failure = undefined;
  }

  /** Whether the vendor has refused the model for a reason that a probe would find. */
  mayBeMended({ name }: ModelEntry): boolean {
    const { failure, isProbed = false } = this.#states.get(name) ?? {};
    return failure !== undefined && (isProbed || failure.status === 401);
  }

  /** Why the last call failed; undefined if it succeeded. */
  last({ name }: ModelEntry): CallFailure | undefined {
    return this.#states.get(name)?.failure;
  }
}

function failureOf(
  { model }: ModelEntry,
  { status, safeCode: code, needsOperator, cause }: ModelError,
  at: number,
): CallFailure {
  const said = needsOperator && typeof cause === "string" ? cleaned(cause, model) : "";
  return {
    at,
    ...(status === undefined ? {} : { status }),
    ...(code === undefined ? {} : { code }),
    ...(said === "" ? {} : { message: said }),
    needsOperator,
  };
}

/**
 * Removes from a vendor's words what may be a key or a part of one: words with a star, and words of 20 or more
 * characters with a digit, except the name of the model. Control characters and runs of spaces become one space.
 */
function cleaned(words: string, model: string): string {
  return words
    .replace(/[\p{C}\s]+/gu, " ")
    .replace(/[^\s"'`()]+/g, (word) => (isSecret(word) && !word.includes(model) ? "…" : word))
    .trim()
    .slice(0, MAX_MESSAGE);
}

function isSecret(word: string): boolean {
  return word.includes("*") || (word.length >= 20 && /\d/.test(word));
}
