import { Failure, type FailureKind, toFailure } from "../failure.ts";
import { orOverloaded, type Pool } from "../store/pool.ts";
import type { Telemetry } from "../telemetry.ts";
import type { Caller } from "./authenticate.ts";
import { createBatcher } from "./batch.ts";
import type { SettlementRow, Settlements } from "./settle.ts";

/** Micro-credits per token, which is credits per million tokens; exact to six decimals. */
export interface Rates {
  input: number;
  cached: number;
  output: number;
}

export interface LeaseRequest {
  caller: Caller;
  /** `req_…` */
  requestId: string;
  /** `gen_…` */
  generationId: string;
  streamed: boolean;
  shape: "text" | "extract" | "json_schema";
  /** The effort that the caller asked for. */
  effort: "auto" | "low" | "medium" | "high";
  /** The level that the service applies. */
  level: "low" | "medium" | "high";
  inputTokens: number;
  /** Most tokens that the answer can have. */
  maxOutputTokens: number;
  /** Set when the caller sent an idempotency key: SHA-256 of the key and of the request, in hex. */
  idempotency?: { key: string; body: string };
}

/** How a request ended: with an answer, with an answer that the service cut short, with a caller who went away, or as a failure. */
export type Outcome = "ok" | "cut_short" | "caller_gone" | FailureKind;

/** What the calls of models took that an answer was made of. */
export interface ModelCost {
  /** Calls of vendors, tries included. */
  calls: number;
  inputTokens: number;
  outputTokens: number;
  /** Of the calls whose model has a price; undefined where none has. */
  usd: number | undefined;
}

export interface Settlement {
  outcome: Outcome;
  outputTokens: number;
  /** The part of the input that the answering vendor reported as cached; more than the input counts as all of it. */
  cachedTokens: number;
  /** Whether the caller pays for it. */
  charged: boolean;
  /** Left out when there was no answer. */
  finishReason?: "stop" | "length";
  latencyMs: number;
  /** Catalogue name of the model that answered; for operators only. */
  model?: string;
  /** For operators only: no part of the charge. */
  cost?: ModelCost;
  /** Gives the answer to keep for the idempotency key, when there is one; called with what is charged, in credits. */
  response?: (credits: number) => Uint8Array;
}

/** What a running request holds. Left without being settled, it is settled as `internal`, free of charge. */
export interface Lease extends AsyncDisposable {
  /**
   * Ends the lease and charges for it; once this resolves, charge and record are on disk. Only the first call counts, later ones give
   * its result.
   * @returns credits charged, a decimal that is exact to one millionth
   */
  settle(actual: Settlement): Promise<{ credits: number }>;
}

export interface Admission {
  /**
   * Admits a request in one round trip: key, limits, spend limits and credit together, all or nothing. The request then must be settled.
   * @returns the lease, or the answer that was kept for the same idempotency key
   * @throws Failure naming the limit, with the wait that helps; a refused request uses up nothing. `overloaded` when the database is away.
   */
  open(request: LeaseRequest): Promise<Lease | { replay: Uint8Array }>;
  /** Whether a request is being admitted, runs or is being settled here. */
  holds(requestId: string): boolean;
}

interface TakeItem {
  request_id: string;
  key_id: string;
  input_tokens: number;
  hold_micro: string;
  key?: string;
  body?: string;
}

interface Verdict {
  refusal?: FailureKind;
  limit?: string;
  retry_ms?: number;
  /** Whether no wait helps. */
  never?: boolean;
  response?: string;
}

/**
 * Admission over the function `open_leases`.
 * @param replica identifier of this process, under which it keeps its leases alive
 * @param clock the time in milliseconds since 1970, for tests; undefined: the database's own
 */
export function createAdmission(
  pool: Pool,
  settlements: Settlements,
  rates: Rates,
  replica: string,
  clock?: () => number,
  telemetry?: Telemetry,
): Admission {
  // 256 requests of one workspace are admitted in about 7 ms.
  const take = createBatcher(takeBatch, { maxItems: 256, maxWaiting: 20_000 }, (waitedMs) =>
    telemetry?.batch("admission", waitedMs),
  );
  const held = new Set<string>();
  return { open, holds: (requestId) => held.has(requestId) || settlements.waits(requestId) };

  async function takeBatch(workspaceId: string, items: TakeItem[]): Promise<Verdict[]> {
    const [row] = await pool.query<{ verdicts: Verdict[] }>("select open_leases($1, $2, $3, $4) as verdicts", [
      workspaceId,
      replica,
      JSON.stringify(items),
      clock ? new Date(clock()) : null,
    ]);
    return row?.verdicts ?? [];
  }

  async function open(request: LeaseRequest): Promise<Lease | { replay: Uint8Array }> {
    const { requestId } = request;
    // Before the statement is sent: a lease that is in the database and not in here was taken by a statement that was given up.
    held.add(requestId);
    try {
      const verdict = await orOverloaded(
        take(request.caller.workspaceId, {
          request_id: requestId,
          key_id: request.caller.keyId,
          input_tokens: request.inputTokens,
          hold_micro: String(holdOf(rates, request)),
          ...request.idempotency,
        }),
      );
      if (verdict.refusal) throw refusal(verdict);
      if (verdict.response === undefined) {
        telemetry?.leaseTaken();
        return lease(request);
      }
      held.delete(requestId);
      return { replay: Buffer.from(verdict.response, "base64") };
    } catch (error) {
      held.delete(requestId);
      const { kind, limit } = toFailure(error);
      telemetry?.leaseRefused(limit ?? kind);
      throw error;
    }
  }

  function lease(request: LeaseRequest): Lease {
    const createdAt = clock?.() ?? Date.now();
    let settled: Promise<{ credits: number }> | undefined;
    const settle = (actual: Settlement): Promise<{ credits: number }> => {
      settled ??= settlements
        .settle(request.caller.workspaceId, rowOf(rates, request, actual, new Date(createdAt)))
        .then((charged) => ({ credits: Number(charged) / 1e6 }))
        .finally(() => {
          held.delete(request.requestId);
          telemetry?.leaseEnded();
        });
      return settled;
    };
    return {
      settle,
      async [Symbol.asyncDispose]() {
        const latencyMs = (clock?.() ?? Date.now()) - createdAt;
        // Nothing is owed, so the failure that is on its way to the caller matters more than one of this record.
        await settle({ outcome: "internal", outputTokens: 0, cachedTokens: 0, charged: false, latencyMs }).catch(
          () => undefined,
        );
      },
    };
  }
}

const MOST = 4n * 10n ** 18n;

/** What a request can cost at most, in micro-credits. */
function holdOf(rates: Rates, { inputTokens, maxOutputTokens }: LeaseRequest): bigint {
  const dearest = { ...rates, input: Math.max(rates.input, rates.cached) };
  return costOf(dearest, { input: inputTokens, cached: 0, output: maxOutputTokens });
}

function rowOf(rates: Rates, request: LeaseRequest, actual: Settlement, createdAt: Date): SettlementRow {
  const cached = Math.min(actual.cachedTokens, request.inputTokens);
  const tokens = { input: request.inputTokens, cached, output: actual.outputTokens };
  const price = actual.charged ? costOf(rates, tokens) : 0n;
  const response = actual.response?.(Number(price) / 1e6);
  return {
    id: request.generationId,
    request_id: request.requestId,
    created_at: createdAt,
    key_id: request.caller.keyId,
    streamed: request.streamed,
    shape: request.shape,
    effort: request.effort,
    level: request.level,
    input_tokens: request.inputTokens,
    output_tokens: actual.outputTokens,
    cached_tokens: cached,
    credits_micro: String(price),
    outcome: actual.outcome,
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
    // Whole billionths, free of the dust of sums in binary.
    cost_usd: usd === undefined ? null : usd.toFixed(9),
  };
}

function refusal({ refusal: kind = "internal", limit, retry_ms, never }: Verdict): Failure {
  const message = refusalMessage(kind, limit, never ?? false);
  return new Failure(kind, {
    ...(message === undefined ? {} : { message }),
    ...(limit === undefined ? {} : { limit }),
    ...(retry_ms === undefined ? {} : { retryAfterMs: retry_ms }),
  });
}

/** What the failure's own words leave open. A request that sets no max_tokens may need more credit than it will ever use. */
function refusalMessage(kind: FailureKind, limit: string | undefined, never: boolean): string | undefined {
  if (limit === "held_credit")
    return "Running requests hold the rest of the credit. Send the request again when some of them have ended.";
  if (limit !== undefined) {
    return never
      ? `The workspace's limit ${limit} does not allow this request, however long it waits. Send a smaller one, or have the limit raised.`
      : `The workspace's limit ${limit} is reached. Wait, then send the request again.`;
  }
  if (kind === "insufficient_credit")
    return "The credit balance is lower than the most that this request can cost. Add credit or lower max_tokens, then send it again.";
  if (kind === "spend_limit_reached" && never)
    return "This request can cost more than the account owner's spend limit allows for a whole period. Lower max_tokens, or have the limit raised.";
  return undefined;
}

/**
 * Price of an answer in micro-credits: (input − cached) × input rate + cached × cached rate + output × output rate, with rates in
 * micro-credits per token, rounded half up once, at the end; at most 4 × 10^18, which is more than any account can hold and fits its
 * columns. Source: the contract's charge table.
 */
export function costOf(rates: Rates, tokens: { input: number; cached: number; output: number }): bigint {
  // Rates as whole millionths, so that 0.145 × 100 is 14.5 and not a hair below it.
  const price = (count: number, rate: number): bigint => BigInt(count) * BigInt(Math.round(rate * 1e6));
  const sum =
    price(tokens.input - tokens.cached, rates.input) +
    price(tokens.cached, rates.cached) +
    price(tokens.output, rates.output);
  const cost = (sum + 500_000n) / 1_000_000n;
  return cost < MOST ? cost : MOST;
}
