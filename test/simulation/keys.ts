import type { Ask, Freed, Post, Verdict } from "../../src/admission/escrow/exchange.ts";
import type { Account } from "./account.ts";

/** The request that has used an idempotency key last. */
export interface KeyUse {
  readonly requestId: string;
  readonly body: string;
  /** Number of the grant under which it runs; undefined: it came from a journal. */
  readonly grant: number | undefined;
  /** In base64; undefined: the request runs, or has ended without a response. */
  readonly response: string | undefined;
}

/** What a post of a request with an idempotency key has in its row. */
export interface KeyedRow {
  key?: string;
  body?: string;
  response?: string;
}

/**
 * The rule of earlier_use.sql: what the key means for a request; undefined: nothing.
 * @param grants numbers of the grants that count
 * @param isKept whether the response of the same request counts, if it is asked for again
 */
export function earlierUse({ keys }: Account, ask: Ask, grants: readonly number[], isKept = true): Verdict | undefined {
  const earlier = ask.key === undefined ? undefined : keys.get(ask.key);
  if (!earlier) return undefined;
  const { grant, response, requestId } = earlier;
  if (requestId === ask.requestId && (response === undefined || !isKept)) return undefined;
  if (response === undefined && (grant === undefined || !grants.includes(grant))) return undefined;
  if (earlier.body !== ask.body) return { refusal: { refusal: "idempotency_key_reused" } };
  return response === undefined ? { refusal: { refusal: "idempotency_key_in_use" } } : { response };
}

/** The request that is admitted uses its key. */
export function useKey({ keys }: Account, { key, body = "", requestId }: Ask, grant: number): void {
  if (key !== undefined) keys.set(key, { requestId, body, grant, response: undefined });
}

/** Whether another request uses the key of a post. */
export function isUsedByOther({ keys }: Account, { requestId, row }: Post): boolean {
  const { key } = row as KeyedRow;
  const use = key === undefined ? undefined : keys.get(key);
  return use !== undefined && use.requestId !== requestId;
}

/** The keys of requests without a response may be used again. */
export function freeKeys({ keys }: Account, freed: readonly Freed[]): void {
  for (const { requestId, key } of freed) {
    const use = key === undefined ? undefined : keys.get(key);
    if (key !== undefined && use?.requestId === requestId && use.response === undefined) keys.delete(key);
  }
}

/**
 * The rule of keep_responses.sql.
 * @param isLate whether a post of the journal takes its key again, if nothing uses it
 */
export function keepResponses(account: Account, posts: readonly Post[], isLate = true): void {
  const { keys } = account;
  for (const { requestId, row, admittedBy } of posts) {
    const { key, body = "", response } = row as KeyedRow;
    if (key === undefined) continue;
    const use = keys.get(key);
    if (use?.requestId === requestId) {
      if (response === undefined) freeKeys(account, [{ requestId, key }]);
      else keys.set(key, { ...use, response });
    } else if (!use && response !== undefined && admittedBy !== undefined && isLate) {
      keys.set(key, { requestId, body, grant: undefined, response });
    }
  }
}
