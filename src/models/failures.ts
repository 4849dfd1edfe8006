import { adviceFor } from "./advice.ts";
import type { CallFailure, ModelEntry } from "./port/entry.ts";
import type { ModelError } from "./port/model-error.ts";
import type { CallEnd } from "./try.ts";
import { knownWords } from "./vendor-words.ts";

/** Shortest time between two reports of one model with the same status and code, in milliseconds. */
const REPORT_MS = 10_000;

/** Pairs of status and code of one model that are told apart in reports. Further ones count as one. */
const MAX_KINDS = 8;

/** @param failures number of such failures of the model since the last report of one, this one included */
export type FailureReport = (entry: ModelEntry, failure: CallFailure, failures: number) => void;

/** Called when a vendor begins or ceases to refuse a model for a reason that waiting does not mend. */
export type FailureTurn = (entry: ModelEntry, isRefused: boolean) => void;

interface State {
  failure?: CallFailure | undefined;
  /** Whether a probe has found the failure, not a call. */
  isProbed: boolean;
  /** By status and code. */
  readonly reports: Map<string, { unreported: number; nextAt: number }>;
}

/**
 * Keeps why the last call of each model failed, and reports it: at most once in ten seconds for each model, status and
 * code.
 */
export class Failures {
  readonly #states = new Map<string, State>();
  readonly #report: FailureReport | undefined;
  readonly #onTurn: FailureTurn | undefined;
  readonly #now: () => number;

  /** @param now milliseconds since 1970 */
  constructor(report?: FailureReport, onTurn?: FailureTurn, now: () => number = Date.now) {
    this.#report = report;
    this.#onTurn = onTurn;
    this.#now = now;
  }

  /** Notes how a call of a model ended. A failure that the request has caused, or its caller, says nothing. */
  note(entry: ModelEntry, { outcome, failure }: Pick<CallEnd, "outcome" | "failure">): void {
    if (outcome === "ok") this.#clear(entry);
    else if (outcome !== "left" && failure && failure.kind === undefined) this.#add(entry, failure, false);
  }

  /** Notes what a probe has found: a failure, or none. */
  noteProbe(entry: ModelEntry, error: ModelError | undefined): CallFailure | undefined {
    if (error) return this.#add(entry, error, true);
    // A key that is taken does not mean that a completion is.
    if (this.mayBeMended(entry)) this.#clear(entry);
    return undefined;
  }

  #add(entry: ModelEntry, error: ModelError, isProbed: boolean): CallFailure {
    const state: State = this.#states.get(entry.name) ?? { isProbed, reports: new Map() };
    this.#states.set(entry.name, state);
    state.isProbed = isProbed;
    const before = state.failure;
    const failure = failureOf(entry, error, this.#now(), (before?.count ?? 0) + 1);
    state.failure = failure;
    const failures = dueFailures(state.reports, failure);
    if (failures > 0) this.#report?.(entry, failure, failures);
    if (failure.needsOperator !== (before?.needsOperator ?? false)) this.#onTurn?.(entry, failure.needsOperator);
    return failure;
  }

  #clear(entry: ModelEntry): void {
    const state = this.#states.get(entry.name);
    if (!state?.failure) return;
    const { needsOperator } = state.failure;
    state.failure = undefined;
    if (needsOperator) this.#onTurn?.(entry, false);
  }

  /** Whether the vendor has refused the model for a reason that a probe would find. */
  readonly mayBeMended = ({ name }: ModelEntry): boolean => {
    const { failure, isProbed = false } = this.#states.get(name) ?? {};
    return failure !== undefined && (isProbed || failure.status === 401);
  };

  /** Why the last call failed; undefined if it succeeded. */
  last({ name }: ModelEntry): CallFailure | undefined {
    return this.#states.get(name)?.failure;
  }
}

/** Counts a failure. @returns the number of such failures that are to be reported now; 0: the report is not due */
function dueFailures(reports: State["reports"], { at, status, code }: CallFailure): number {
  const kind = `${status} ${code}`;
  const key = reports.has(kind) || reports.size < MAX_KINDS ? kind : "other";
  const report = reports.get(key) ?? { unreported: 0, nextAt: 0 };
  reports.set(key, report);
  report.unreported += 1;
  if (at < report.nextAt) return 0;
  const failures = report.unreported;
  report.unreported = 0;
  report.nextAt = at + REPORT_MS;
  return failures;
}

function failureOf(entry: ModelEntry, error: ModelError, at: number, count: number): CallFailure {
  const { status, needsOperator, cause } = error;
  const code = codeOf(entry, error);
  const said = needsOperator && typeof cause === "string" ? knownWords(cause) : undefined;
  return {
    ...{ at, count },
    ...(status === undefined ? {} : { status }),
    ...(code === undefined ? {} : { code }),
    ...(said === undefined ? {} : { message: said }),
    needsOperator,
    ...(needsOperator ? { action: adviceFor(entry, error) } : {}),
  };
}

/** Keys from this length are looked for in codes. A shorter one, such as `key`, may be a part of any word. */
const MIN_KEY = 6;

/** The code of a failure if it can quote neither a prompt nor the key. Some servers quote whatever they refuse. */
export function codeOf(
  { apiKey = "" }: Pick<ModelEntry, "apiKey">,
  { safeCode }: Pick<ModelError, "safeCode">,
): string | undefined {
  if (safeCode === undefined) return undefined;
  const quotesKey = apiKey.includes(safeCode) || (apiKey.length >= MIN_KEY && safeCode.includes(apiKey));
  return quotesKey ? undefined : safeCode;
}
