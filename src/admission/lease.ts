import { toFailure } from "../failure.ts";
import { orOverloaded, type Pool } from "../store/pool.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Effort, Level, Outcome, Shape } from "../terms.ts";
import type { Caller } from "./authenticate.ts";
import { createBatcher } from "./batch.ts";
import { createKeyCheck } from "./key-check.ts";
import type { SettlementRow } from "./post-journal.ts";
import { isCharged, maxPriceOf, priceOf, type Rates } from "./price.ts";
import { type Refusal, refusalFailure } from "./refusal.ts";
import type { Settlements } from "./settle.ts";
import { createStanding } from "./standing.ts";

export interface LeaseRequest {
  caller: Caller;
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
  finishReason?: "stop" | "length" | "content_filter";
  latencyMs: number;
  /** Catalogue name of the model that answered; for operators only. */
  model?: string;
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
   * @returns credits charged, a decimal that is exact to one millionth
   */
  settle(actual: Settlement): Promise<{ credits: number }>;
}

export interface Admission {
  /**
   * Admits a request in one round trip to the database: checks key, limits, spend limits and credit together. The
   * caller must settle the lease.
   * @returns the lease, or the response that was kept for the same idempotency key
   * @throws Failure naming the limit, with the wait that helps; a refused request uses up nothing. `overloaded` when
   *   the database is unavailable.
   */
  open(request: LeaseRequest): Promise<Lease | { replay: Uint8Array }>;
  /** Refuses what `open` would refuse however small the request is; see `Standing.check`. @throws Failure */
  precheck(workspaceId: string): Promise<void> | undefined;
  /** Whether this process admits, runs or settles the request. */
  holds(requestId: string): boolean;
}

/** An item of `open_leases()`. */
interface OpenItem {
  request_id: string;
  key_id: string;
  input_tokens: number;
  hold_micro: string;
  key?: string;
  body?: string;
}

/** A verdict of `open_leases()`. Empty when the request is admitted. */
type Verdict = Refusal | { refusal?: never; response?: string };

/**
 * Creates admission over the function `open_leases()`.
 * @param replica identifier of this process, under which it keeps its leases alive
 * @param clock the time in milliseconds since 1970, for tests; undefined: the database's clock
 */
export function createAdmission(
  pool: Pool,
  settlements: Settlements,
  replica: string,
  clock?: () => number,
  telemetry?: Telemetry,
): Admission {
  // 256 requests of one workspace are admitted in about 7 ms.
  const openLease = createBatcher(openBatch, { maxItems: 256, maxWaiting: 20_000 }, (waitedMs) =>
    telemetry?.batch("admission", waitedMs),
  );
  const inFlight = new Set<string>();
  const standing = createStanding(pool, clock);
  const checkKey = createKeyCheck(pool, clock);
  return {
    open,
    precheck: standing.check,
    holds: (requestId) => inFlight.has(requestId) || settlements.waits(requestId),
  };

  async function openBatch(workspaceId: string, items: OpenItem[]): Promise<Verdict[]> {
    const [row] = await pool.query<{ verdicts: Verdict[] }>("select open_leases($1, $2, $3, $4) as verdicts", [
      workspaceId,
      replica,
      JSON.stringify(items),
      clock ? new Date(clock()) : null,
    ]);
    return row?.verdicts ?? [];
  }

  async function open(request: LeaseRequest): Promise<Lease | { replay: Uint8Array }> {
    const { caller, requestId } = request;
    // Added before the statement is sent. A lease in the database that is not in this set was opened by a statement
    // that timed out here, and can be released.
    inFlight.add(requestId);
    try {
      const toCheck = checkKey(caller, request.authenticatedAt);
      if (toCheck) await toCheck;
      settlements.checkWritable();
      const verdict = await orOverloaded(openLease(caller.workspaceId, openItem(request)));
      standing.note(caller.workspaceId, verdict.refusal === undefined);
      if (verdict.refusal) throw refusalFailure(verdict);
      if (verdict.response === undefined) {
        telemetry?.leaseTaken();
        return createLease(settlements, request, clock ?? Date.now, ended);
      }
      inFlight.delete(requestId);
      return { replay: Buffer.from(verdict.response, "base64") };
    } catch (error) {
      inFlight.delete(requestId);
      const { kind, limit } = toFailure(error);
      telemetry?.leaseRefused(limit ?? kind);
      throw error;
    }

    function ended(): void {
      inFlight.delete(requestId);
      telemetry?.leaseEnded();
    }
  }
}

/** @param ended called once, when the request has been settled or its settlement has failed */
function createLease(settlements: Settlements, request: LeaseRequest, clock: () => number, ended: () => void): Lease {
  const createdAt = new Date(clock());
  const startedAt = performance.now();
  let settled: Promise<{ credits: number }> | undefined;
  const settle = (actual: Settlement): Promise<{ credits: number }> => {
    settled ??= settlements
      .settle(request.caller.workspaceId, settlementRow(request, actual, createdAt))
      .then((charged) => ({ credits: Number(charged) / 1e6 }))
      .finally(ended);
    return settled;
  };
  return {
    settle,
    async [Symbol.asyncDispose]() {
      const latencyMs = performance.now() - startedAt;
      const failed = { outcome: "internal", outputTokens: 0, cachedTokens: 0, latencyMs } as const;
      // Nothing is charged, so a failure to record it must not hide the failure that the caller gets.
      await settle(failed).catch(() => undefined);
    },
  };
}

function openItem(request: LeaseRequest): OpenItem {
  return {
    request_id: request.requestId,
    key_id: request.caller.keyId,
    input_tokens: request.inputTokens,
    hold_micro: String(maxPriceOf(request.rates, request.inputTokens, request.maxOutputTokens)),
    ...request.idempotency,
  };
}

function settlementRow(request: LeaseRequest, actual: Settlement, createdAt: Date): SettlementRow {
  const { inputTokens, streamed } = request;
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
    ...(actual.cost ? costColumns(actual.cost) : {}),
    ...request.idempotency,
    ...(response ? { response: Buffer.from(response).toString("base64") } : {}),
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
