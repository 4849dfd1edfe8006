import assert from "node:assert/strict";
import { type Account, makeAccount } from "./books.ts";
import { testDatabase } from "./database.ts";
import { admit, makeGrants } from "./grants.ts";
import type { Lifetime } from "./lifetime.ts";

const RICH = { granted: 10 ** 12 };

/** Number of requests that each account of `EDGES` allows. */
const FIT = 20;

/** Accounts with a limit of each kind, for requests that hold 100 micro-credits and have one token of input. */
export const EDGES: Record<string, Account> = {
  "granted credit": { granted: 100 * FIT },
  "a spend limit": { purchased: 10 ** 9, spendLimits: { day: 100 * FIT } },
  ...Object.fromEntries(
    ["minute", "day", "month"].flatMap((unit) => [
      [`requests per ${unit}`, { ...RICH, limits: { [`requests_per_${unit}`]: FIT } }],
      [`input tokens per ${unit}`, { ...RICH, limits: { [`input_tokens_per_${unit}`]: FIT } }],
    ]),
  ),
  "concurrent requests": { ...RICH, limits: { concurrent_requests: FIT } },
};

/**
 * Sends requests to two replicas, each round for another workspace, and checks that exactly as many are admitted as
 * fit: none more, and none less because the other replica holds headroom that it does not use.
 */
export async function checkEdge(t: Lifetime, account: Account, rounds: number): Promise<void> {
  const database = await testDatabase(t);
  // The clock stands still, so that no minute ends during a round.
  const now = Date.parse("2026-05-06T07:08:09.123Z");
  const make = (id: string) => makeGrants(t, database, id, { clock: () => now });
  const [first, second] = [await make("r1"), await make("r2")];
  for (let round = 0; round < rounds; round++) {
    const workspace = `ws_${round}`;
    await makeAccount(database.pool, workspace, account);
    // One of them takes headroom in advance, which the other one then needs.
    for (let i = 0; i < 3; i++) await admit(first, { workspace });
    const results = await Promise.allSettled(
      Array.from({ length: 2 * FIT }, (_, i) => admit(i < FIT / 2 && i % 2 === 0 ? first : second, { workspace })),
    );
    const admitted = 3 + results.filter(({ status }) => status === "fulfilled").length;
    assert.equal(admitted, FIT, `round ${round}`);
  }
}
