import type { Clock } from "../contract/clock.ts";
import { toFailure } from "../contract/failure.ts";
import type { Subjects } from "../contract/subjects.ts";
import type { Ability, Effort, Level, Outcome, Shape } from "../contract/terms.ts";
import type { Pool } from "../store/pool.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Caller } from "./authenticate.ts";
import type { Grants } from "./grants.ts";
import { createKeyCheck } from "./key-check.ts";
import type { SettlementRow } from "./post-journal.ts";
import { postLog } from "./poster.ts";
import { isCharged, maxPriceOf, priceOf, type Rates } from "./price.ts";
import type { RateLimit } from "./rate-limits.ts";
import { createStanding } from "./standing.ts";

export interface LeaseRequest {
  caller: Caller;
  subjects: Subjects;
  /** `performance.now()` before the caller's key was looked up. */
  authenticatedAt: number;
  /** `req_…` */
  requestId: string;
  /** `gen_…` */
  generationId: string;
  streamed: boolean;
  shape: Shape;
  /** The effort that the caller asked for. */
  effort: Effort;
  /** The level that the service applies. */
  level: Level;
  inputTokens: number;
  /** Largest number of tokens that the answer can have. */
  maxOutputTokens: number;
  /** The rates of both the hold and the charge, also if the service's rates change meanwhile. */
  rates: Rates;
  /** Set when the caller sent an idempotency key: SHA-256 of the key and of the request, in hex. */
  idempotency?: { key: string; body: string };
}

/** What the model calls for a request used. */
export interface ModelCost {
  /** Calls of vendors, retries included. */
  calls: number;
  inputTokens: number;
  outputTokens: number;
  /** Cost in US dollars of the calls whose model has a price; undefined where none has. */
  usd: number | undefined;
}

/** How a request ended. The outcome decides whether it is charged; see `isCharged`. */
export interface Settlement {
  outcome: Outcome;
  outputTokens: number;
  /** The part of the input that the answering vendor reported as cached. Capped at the input tokens. */
  cachedTokens: number;
  /** Absent when there was no answer. */
  finishReason?: "stop" | "length" | "content_filter" | "tool_calls";
  latencyMs: number;
  /** Catalogue name of the model that answered; for operators only. */
  model?: string;
  /** What the prompt needed of a model. */
  ability?: Ability;
  /** Identifies the catalogue's entry of `model`. */
  fingerprint?: string;
  /** Who drafted the answer: JSON for the table `outcomes`. */
  drafts?: object;
  /** For operators only; no part of the charge. */
  cost?: ModelCost;
  /**
   * Returns the response to keep for the idempotency key. Absent when there is none to keep.
   * @param credits what is charged
   */
  response?: (credits: number) => Uint8Array;
}

/** The hold of a running request. Disposing of it before it is settled settles it as `internal`, without a charge. */
export interface Lease extends AsyncDisposable {
  /**
   * Ends the lease and charges for it. Charge and record are on disk when this resolves. Only the first call has an
   * effect; later calls return its result.
   * @throws Failure overloaded when nothing is charged, so that the end of the answer may not be sent; see
   *   `Grants.settle`
   * @returns credits charged, a decimal that is exact to one millionth
   */
  settle(actual: Settlement): Promise<{ credits: number }>;
  /** Whether a cap allows only the effort `low`. */
  readonly isLow?: boolean;
}

/** A lease, or the response that was kept for the same idempotency key. */
export type Opened = Lease | { replay: Uint8Array };

export interface Admission {
  /**
   * Admits a request: checks limits, spend limits and credit together, in memory where the replica has headroom, else
   * by a statement. The caller must settle the lease.
   * @returns without a promise if the lease was taken in memory
   * @throws Failure naming the limit, with the wait that helps; a refused request uses up nothing. `unauthenticated`
   *   when the key was revoked meanwhile. `overloaded` when the database is unavailable.
   */
  open(request: LeaseRequest): Opened | Promise<Opened>;
  /** Refuses what `open` would refuse however small the request is; see `createStanding`. @throws Failure */
  precheck(workspaceId: string, rates: Rates): Promise<void> | undefined;
  /** The rate limits of a workspace as this replica knows them, without a statement; undefined: none is known. */
  limits(workspaceId: string): readonly RateLimit[] | undefined;
  /**
   * Tells the database what the workspace's requests on this replica use, and then posts what waits in its log, so that
   * a request which has just ended is charged or runs. Other replicas tell it every two seconds.
   */
  report(workspaceId: string): Promise<void>;
}

/** Creates admission over the grants of this replica. */
export function createAdmission(pool: Pool, grants: Grants, clock?: Clock, telemetry?: Telemetry): Admission {
  const standing = createStanding(pool, clock);
  const checkKey = createKeyCheck(pool, clock);
  const limits = (workspaceId: string) => grants.limits(workspaceId) ?? standing.limits(workspaceId);
  return { open, precheck, limits, report };

  function precheck(workspaceId: string, rates: Rates): Promise<void> | undefined {
    return standing.check(workspaceId, rates)?.catch((error) => refused(workspaceId, error));
  }

  async function report(workspaceId: string): Promise<void> {
    await grants.report(workspaceId);
    await postLog(pool, workspaceId, clock);
  }

  function open(request: LeaseRequest): Opened | Promise<Opened> {
    try {
      const toCheck = checkKey(request.caller, request.authenticatedAt);
      const asked = toCheck ? toCheck.then(() => admit(request)) : admit(request);
      if (!asked) return opened(request, undefined);
      return asked.then((told) => opened(request, told)).catch((error) => refused(request.caller.workspaceId, error));
    } catch (error) {
      return refused(request.caller.workspaceId, error);
    }
  }

  function admit({ caller, subjects, requestId, rates, inputTokens: input, ...request }: LeaseRequest) {
    const hold = Number(maxPriceOf(rates, input, request.maxOutputTokens));
    const capped = caller.capped && cappedSubjects(caller.capped, caller.keyId, subjects);
    const ask = { requestId, hold, input, ...request.idempotency };
    return grants.admit(caller.workspaceId, capped ? { ...ask, subjects: capped } : ask);
  }

  function opened(request: LeaseRequest, told: { response?: string; isLow?: boolean } | undefined): Opened {
    standing.note(request.caller.workspaceId, true);
    if (told?.response !== undefined) return { replay: Buffer.from(told.response, "base64") };
    telemetry?.leaseTaken();
    return new HeldLease(grants, request, (clock ?? Date.now)(), telemetry, told?.isLow);
  }

  function refused(workspaceId: string, error: unknown): never {
    const { kind, limit } = toFailure(error);
    // A cap binds its subject only. Its name has the name of a tag, which would be a label without bound.
    const isCap = limit?.includes(":") ?? false;
    if (kind !== "overloaded" && !isCap) standing.note(workspaceId, false);
    telemetry?.leaseRefused(isCap ? "cap" : (limit ?? kind));
    throw error;
  }
}

/** The subjects of a request that can have caps. @param kinds see `Caller.capped`. @returns undefined: it has none */
function cappedSubjects(kinds: readonly string[], keyId: string, { user, tags }: Subjects): string[] | undefined {
  const found: string[] = kinds.includes("key") ? [`key:${keyId}`] : [];
  if (user !== undefined && kinds.includes("user")) found.push(`user:${user}`);
  for (const name in tags) if (kinds.includes(`tag:${name}`)) found.push(`tag:${name}=${tags[name]}`);
  return found.length > 0 ? found : undefined;
}

/** A class, because an object with closures holds 0.4 KB more for as long as the answer lasts. */
class HeldLease implements Lease {
  readonly #grants: Grants;
  readonly #request: LeaseRequest;
  /** In milliseconds since 1970. */
  readonly #createdAt: number;
  readonly #telemetry: Telemetry | undefined;
  readonly #startedAt = performance.now();
  #settled: Promise<{ credits: number }> | undefined;
  readonly isLow: boolean;

  constructor(
    grants: Grants,
    request: LeaseRequest,
    createdAt: number,
    telemetry: Telemetry | undefined,
    isLow = false,
  ) {
    this.isLow = isLow;
    this.#grants = grants;
    this.#request = isLow ? { ...request, level: "low" } : request;
    this.#createdAt = createdAt;
    this.#telemetry = telemetry;
  }

  settle(actual: Settlement): Promise<{ credits: number }> {
    this.#settled ??= this.#end(settlementRow(this.#request, actual, new Date(this.#createdAt)), actual);
    return this.#settled;
  }

  /** Without an asynchronous function, which makes one promise more. */
  #end(row: SettlementRow, { outputTokens: output }: Settlement): Promise<{ credits: number }> {
    const post = { requestId: this.#request.requestId, charge: Number(row.credits_micro), output, row };
    return this.#grants.settle(post).then(
      (charge) => {
        this.#telemetry?.leaseEnded();
        return { credits: charge / 1e6 };
      },
      (error: unknown) => {
        this.#telemetry?.leaseEnded();
        throw error;
      },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const latencyMs = performance.now() - this.#startedAt;
    const failed = { outcome: "internal", outputTokens: 0, cachedTokens: 0, latencyMs } as const;
    // Nothing is charged, so a failure to record it must not hide the failure that the caller gets.
    await this.settle(failed).catch(() => undefined);
  }
}

/** JSON leaves out what is undefined. */
function settlementRow(request: LeaseRequest, actual: Settlement, createdAt: Date): SettlementRow {
  const { inputTokens, streamed, subjects } = request;
  const { outcome, outputTokens } = actual;
  const cached = Math.min(actual.cachedTokens, inputTokens);
  const tokens = { input: inputTokens, cached, output: outputTokens };
  const price = isCharged(outcome, streamed) ? priceOf(request.rates, tokens) : 0n;
  const response = actual.response?.(Number(price) / 1e6);
  return {
    id: request.generationId,
    request_id: request.requestId,
    created_at: createdAt,
    key_id: request.caller.keyId,
    end_user: subjects.user,
    tags: subjects.tags,
    streamed,
    shape: request.shape,
    effort: request.effort,
    level: request.level,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cached_tokens: cached,
    credits_micro: String(price),
    outcome,
    finish_reason: actual.finishReason ?? null,
    latency_ms: Math.round(actual.latencyMs),
    model: actual.model ?? null,
    ability: actual.ability,
    fingerprint: actual.fingerprint,
    drafts: actual.drafts,
    ...(actual.cost && costColumns(actual.cost)),
    ...request.idempotency,
    response: response && Buffer.from(response).toString("base64"),
  };
}

function costColumns({ calls, inputTokens, outputTokens, usd }: ModelCost) {
  return {
    model_calls: calls,
    model_input_tokens: inputTokens,
    model_output_tokens: outputTokens,
    // Rounded to billionths, because binary sums are not exact.
    cost_usd: usd === undefined ? null : usd.toFixed(9),
  };
}
