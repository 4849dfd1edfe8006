import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import type { Lease, LeaseRequest } from "../../src/admission/lease.ts";
import { Failure } from "../../src/contract/failure.ts";
import type { Pool } from "../../src/store/pool.ts";
import {
  accountOf,
  answered,
  ask,
  checkBooks,
  FAILED,
  type Figures,
  makeAccount,
  makeReplica,
  RATES,
  type Replica,
} from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import { postOf, recordIn } from "../helpers/exchange.ts";
import type { Lifetime } from "../helpers/lifetime.ts";

/** Runs of each property; set CHORUS_TEST_RUNS for a longer search. */
const RUNS = Number(process.env.CHORUS_TEST_RUNS ?? 15);

const SPEND_UNITS = ["day", "week", "month"] as const;
type Unit = "minute" | (typeof SPEND_UNITS)[number];

/** An event in a workspace. `which` selects a request by its index modulo the number of requests. */
type Step =
  | { do: "take"; input: number; output: number; replica: number }
  | { do: "settle"; which: number; output: number; charged: boolean }
  | { do: "again"; which: number }
  | { do: "end"; replica: number }
  | { do: "grant" | "purchase"; amount: number }
  | { do: "spend"; unit: (typeof SPEND_UNITS)[number]; amount: number | null }
  | { do: "limit"; name: string; to: number | null }
  | { do: "wait"; ms: number };

const LIMITS: Record<string, number> = {
  requests_per_minute: 8,
  requests_per_day: 20,
  requests_per_month: 40,
  input_tokens_per_minute: 200,
  input_tokens_per_day: 500,
  input_tokens_per_month: 900,
  output_tokens_per_minute: 300,
  output_tokens_per_day: 700,
  output_tokens_per_month: 1_500,
  concurrent_requests: 5,
};

const which = fc.nat(20);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("take" as const),
      input: fc.nat(60),
      output: fc.nat(100),
      replica: fc.nat(2),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("settle" as const), which, output: fc.nat(100), charged: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("again" as const), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("end" as const), replica: fc.nat(2) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("grant" as const, "purchase" as const), amount: fc.nat(120_000) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("spend" as const),
      unit: fc.constantFrom(...SPEND_UNITS),
      amount: fc.option(fc.nat(150_000), { freq: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(...Object.entries(LIMITS)).chain(([name, most]) =>
      fc.record({
        do: fc.constant("limit" as const),
        name: fc.constant(name),
        to: fc.option(fc.nat(most), { freq: 3 }),
      }),
    ),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      ms: fc.constantFrom(1, 500, 20_000, 60_000, 86_400_000, 9 * 86_400_000),
    }),
  },
);

interface Running {
  request: LeaseRequest;
  lease: Lease;
  replica: number;
}

/** Runs steps on one workspace of shared replicas and records its requests. */
class World {
  readonly running: Running[] = [];
  readonly ended: Running[] = [];
  readonly id: string;
  readonly pool: Pool;
  readonly replicas: readonly Replica[];
  readonly clock: { now: number };
  bookings = 0;

  constructor(id: string, pool: Pool, replicas: readonly Replica[], clock: { now: number }) {
    this.id = id;
    this.pool = pool;
    this.replicas = replicas;
    this.clock = clock;
  }

  /** @returns the result of the step: the verdict, the charge in micro-credits, or undefined */
  async run(step: Step): Promise<unknown> {
    switch (step.do) {
      case "take": {
        const request = ask(this.id, { inputTokens: step.input, maxOutputTokens: step.output });
        try {
          const lease = await this.replicas[step.replica]?.take(request);
          assert.ok(lease);
          this.running.push({ request, lease, replica: step.replica });
          return "admitted";
        } catch (error) {
          assert.ok(error instanceof Failure, String(error));
          return { kind: error.kind, limit: error.limit, retry: error.retryAfterMs };
        }
      }
      case "settle": {
        const [one] = this.running.splice(step.which % (this.running.length || 1), 1);
        if (!one) return undefined;
        const outputTokens = Math.min(step.output, one.request.maxOutputTokens);
        const end = step.charged ? answered({ outputTokens }) : { ...FAILED, outputTokens };
        try {
          const { credits } = await one.lease.settle(end);
          this.ended.push(one);
          return Math.round(credits * 1e6);
        } catch (error) {
          assert.ok(error instanceof Failure && error.kind === "overloaded", String(error));
          return "refused";
        }
      }
      case "again": {
        const one = this.ended[step.which % (this.ended.length || 1)];
        if (!one) return undefined;
        // As a second process would that has the same settlement in its journal.
        const [row] = await this.pool.query<{ micro: bigint; at: Date; id: string }>(
          "select credits_micro as micro, created_at as at, id from generations where request_id = $1",
          [one.request.requestId],
        );
        assert.ok(row);
        const post = postOf(one.request.requestId, { charge: 999_999, id: row.id }, row.at);
        await recordIn(this.pool, this.id, [{ ...post, admittedBy: "r0" }], new Date(this.clock.now));
        return Number(row.micro);
      }
      case "end": {
        // As for a replica that counts as dead, and then finds out.
        const replica = this.replicas[step.replica];
        assert.ok(replica);
        await this.pool.query("select end_grants($1, $2)", [this.id, replica.id]);
        await replica.confirm(this.id);
        return undefined;
      }
      case "grant":
      case "purchase":
        await this.pool.query("select book_credit($1, $2, $3, $4)", [
          this.id,
          step.do,
          `${this.bookings++}`,
          step.amount,
        ]);
        return undefined;
      case "spend":
        await this.set("spend_limits", step.unit, step.amount);
        // As setSpendLimit does. check_books() reads it, because a new limit does not apply to earlier spending.
        await this.pool.query(
          `insert into audit (workspace_id, at, actor_kind, actor_id, action, details)
           values ($1, $2, 'owner', 'test', 'spend_limit.set', jsonb_build_object('period', $3::text))`,
          [this.id, new Date(this.clock.now), step.unit],
        );
        return undefined;
      case "limit":
        await this.set("overrides", step.name, step.to);
        return undefined;
      case "wait":
        this.clock.now += step.ms;
        // Replicas measure the rest of a minute on their own clocks, which do not jump with this one.
        for (const replica of this.replicas) await replica.confirm(this.id);
        return undefined;
    }
  }

  /** What the database knows when all replicas have told it what they use. */
  async figures(): Promise<Figures> {
    for (const { admission } of this.replicas) await admission.report(this.id);
    return accountOf(this.pool, this.id);
  }

  private async set(column: "overrides" | "spend_limits", name: string, to: number | null): Promise<void> {
    await this.pool.query(
      `update accounts set ${column} = jsonb_strip_nulls(${column} || jsonb_build_object($2::text, $3::bigint))
       where workspace_id = $1`,
      [this.id, name, to],
    );
    await this.pool.query("select refresh_limits($1)", [this.id]);
    for (const replica of this.replicas) await replica.confirm(this.id);
  }
}

/** Models the contract for sequential steps, independently of the service's SQL. */
function createModel(clock: { now: number }) {
  let granted = 0;
  let purchased = 0;
  const limits: Record<string, number | null> = {};
  const spendLimits: Record<string, number | null> = {};
  const seen = new Map<Unit, { end: number; requests: number; input: number; output: number; spent: number }>();
  const running: { hold: number; input: number; replica: number; hasEnded: boolean; most: number }[] = [];
  const charges: number[] = [];

  const endOf = (unit: Unit): number => {
    const at = new Date(clock.now);
    const [y, m, d] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()];
    if (unit === "minute") return (Math.floor(clock.now / 60_000) + 1) * 60_000;
    if (unit === "month") return Date.UTC(y, m + 1);
    return Date.UTC(y, m, d + (unit === "day" ? 1 : 7 - ((at.getUTCDay() + 6) % 7)));
  };
  const window = (unit: Unit) => {
    let found = seen.get(unit);
    if (!found || clock.now >= found.end) {
      found = { end: endOf(unit), requests: 0, input: 0, output: 0, spent: 0 };
      seen.set(unit, found);
    }
    return found;
  };
  const over = (used: number, limit: number | null | undefined) => typeof limit === "number" && used > limit;
  const held = () => running.reduce((sum, { hold, hasEnded }) => sum + (hasEnded ? 0 : hold), 0);

  function take(input: number, output: number, replica: number): unknown {
    const hold = input * RATES.input + output * RATES.output;
    for (const unit of ["month", "day", "minute"] as const) {
      const never = (limit: string) => ({ kind: "rate_limited", limit: `${limit}_per_${unit}`, retry: undefined });
      if (over(1, limits[`requests_per_${unit}`])) return never("requests");
      if (over(input, limits[`input_tokens_per_${unit}`])) return never("input_tokens");
      if (over(1, limits[`output_tokens_per_${unit}`])) return never("output_tokens");
    }
    if (over(1, limits.concurrent_requests))
      return { kind: "rate_limited", limit: "concurrent_requests", retry: undefined };
    for (const unit of ["month", "day", "minute"] as const) {
      const { requests, input: before, output: out, end } = window(unit);
      const refuse = (limit: string) => ({
        kind: "rate_limited",
        limit: `${limit}_per_${unit}`,
        retry: end - clock.now,
      });
      if (over(requests + 1, limits[`requests_per_${unit}`])) return refuse("requests");
      if (over(before + input, limits[`input_tokens_per_${unit}`])) return refuse("input_tokens");
      if (over(out + 1, limits[`output_tokens_per_${unit}`])) return refuse("output_tokens");
    }
    const short = (limit: string) => ({ kind: "rate_limited", limit, retry: 1_000 });
    if (over(running.filter(({ hasEnded }) => !hasEnded).length + 1, limits.concurrent_requests))
      return short("concurrent_requests");
    const exceeds = (all: number, unit: (typeof SPEND_UNITS)[number]) =>
      all > granted && over(window(unit).spent + all - granted, spendLimits[unit]);
    if (SPEND_UNITS.some((unit) => over(Math.max(0, hold - granted), spendLimits[unit])))
      return { kind: "spend_limit_reached", limit: undefined, retry: undefined };
    const ends = SPEND_UNITS.filter((unit) => exceeds(hold, unit)).map((unit) => window(unit).end);
    if (ends.length > 0) return { kind: "spend_limit_reached", limit: undefined, retry: Math.max(...ends) - clock.now };
    if (hold > granted + purchased) return { kind: "insufficient_credit", limit: undefined, retry: undefined };
    if (held() + hold > granted + purchased) return short("held_credit");
    for (const unit of SPEND_UNITS) {
      if (exceeds(held() + hold, unit)) return short("held_credit");
    }
    for (const unit of ["minute", "day", "month"] as const) {
      window(unit).requests += 1;
      window(unit).input += input;
    }
    running.push({ hold, input, replica, hasEnded: false, most: output });
    return "admitted";
  }

  function settle(at: number, requested: number, charged: boolean): unknown {
    const [one] = running.splice(at % (running.length || 1), 1);
    if (!one) return undefined;
    if (one.hasEnded) return "refused";
    const output = Math.min(requested, one.most);
    const charge = charged ? one.input * RATES.input + output * RATES.output : 0;
    const free = Math.min(charge, granted);
    granted -= free;
    purchased -= charge - free;
    for (const unit of ["minute", "day", "week", "month"] as const) {
      window(unit).output += output;
      window(unit).spent += charge - free;
    }
    charges.push(charge);
    return charge;
  }

  return {
    figures: () => ({
      granted: BigInt(granted),
      purchased: BigInt(purchased),
      held: BigInt(held()),
      running: running.filter(({ hasEnded }) => !hasEnded).length,
    }),
    run(step: Step): unknown {
      switch (step.do) {
        case "take":
          return take(step.input, step.output, step.replica);
        case "settle":
          return settle(step.which, step.output, step.charged);
        case "again":
          return charges[step.which % (charges.length || 1)];
        case "end":
          for (const one of running) one.hasEnded ||= one.replica === step.replica;
          return undefined;
        case "grant":
          granted += step.amount;
          return undefined;
        case "purchase":
          purchased += step.amount;
          return undefined;
        case "spend":
          spendLimits[step.unit] = step.amount;
          return undefined;
        case "limit":
          limits[step.name] = step.to;
          return undefined;
        case "wait":
          return undefined;
      }
    },
  };
}

async function setUp(t: Lifetime) {
  const { pool, url } = await testDatabase(t);
  // Tiers have no limits here: a purchase must not add any.
  await pool.query("update tiers set limits = '{}'");
  const clock = { now: Date.parse("2027-12-27T23:58:30.500Z") };
  const replicas: Replica[] = [];
  for (const id of ["r1", "r2", "r3"]) replicas.push(await makeReplica(t, pool, { id, url, clock: () => clock.now }));
  let count = 0;
  return async () => {
    const id = `ws_${count++}`;
    await makeAccount(pool, id);
    return new World(id, pool, replicas, clock);
  };
}

test("matches the model of the contract for any sequence of steps", async (t) => {
  const newWorld = await setUp(t);
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80 }), async (steps) => {
      const world = await newWorld();
      const model = createModel(world.clock);
      const opening: Step[] = [
        { do: "grant", amount: 60_000 },
        { do: "purchase", amount: 60_000 },
      ];
      for (const step of [...opening, ...steps]) {
        assert.deepEqual(await world.run(step), model.run(step), JSON.stringify(step));
        assert.deepEqual(await world.figures(), model.figures(), JSON.stringify(step));
      }
      await checkBooks(world.pool, world.id);
    }),
    { numRuns: RUNS },
  );
});

test("keeps balances, caps, ledger and holds correct for concurrent steps", async (t) => {
  const newWorld = await setUp(t);
  const wave = fc.array(step, { minLength: 1, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(fc.array(wave, { minLength: 3, maxLength: 12 }), async (waves) => {
      const world = await newWorld();
      await world.run({ do: "grant", amount: 100_000 });
      await world.run({ do: "purchase", amount: 200_000 });
      for (const name of ["concurrent_requests", "requests_per_day"])
        await world.run({ do: "limit", name, to: LIMITS[name] ?? 0 });
      for (const unit of SPEND_UNITS) await world.run({ do: "spend", unit, amount: 90_000 });
      const caps = await capsOf(world);
      for (const steps of waves) {
        // A changed limit applies only to later requests, so limits change between the waves.
        const [alone, together] = [steps.filter(isChange), steps.filter((step) => !isChange(step))];
        for (const step of alone) await world.run(step);
        if (alone.length > 0) Object.assign(caps, await capsOf(world));
        await Promise.all(together.map((step) => world.run(step)));
        await checkBooks(world.pool, world.id);
        const now = await capsOf(world);
        for (const [name, { used }] of Object.entries(now)) {
          const cap = caps[name];
          assert.ok(cap && used <= cap.most, `${name}: ${used} of ${cap?.most}`);
        }
      }
      while (world.running.length > 0) await world.run({ do: "settle", which: 0, output: 100, charged: true });
      await checkBooks(world.pool, world.id);
      const { held, running } = await accountOf(world.pool, world.id);
      assert.deepEqual({ held, running }, { held: 0n, running: 0 });
    }),
    { numRuns: RUNS },
  );
});

function isChange({ do: what }: Step): boolean {
  return what === "limit" || what === "spend" || what === "wait" || what === "grant" || what === "purchase";
}

/**
 * Use of each cap if every running request costs its whole hold, and the most that is allowed: the limit, or the use at
 * the time when a lower limit was set.
 */
async function capsOf({ pool, id, clock }: World): Promise<Record<string, { used: number; most: number }>> {
  const [row] = await pool.query<{
    spent: bigint[];
    exposure: bigint;
    running: number;
    spend: Record<string, number>;
    most: number | null;
  }>(
    `select p.spent_micro as spent, greatest(0, u.held - granted_micro) as exposure, u.running, spend_limits as spend,
       (limits ->> 'concurrent_requests')::int as most
     from accounts a, periods_at(a.workspace_id, $2) p, in_use(a.workspace_id) u where a.workspace_id = $1`,
    [id, new Date(clock.now)],
  );
  assert.ok(row);
  const cap = (used: number, limit: number | null | undefined) => ({
    used,
    most: Math.max(used, limit ?? Number.POSITIVE_INFINITY),
  });
  return {
    running: cap(row.running, row.most),
    ...Object.fromEntries(
      SPEND_UNITS.map((unit, i) => [unit, cap(Number(row.spent[i + 1]) + Number(row.exposure), row.spend[unit])]),
    ),
  };
}
