import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { Escrow } from "../../../src/admission/escrow/escrow.ts";
import type { Command, Event } from "../../../src/admission/escrow/events.ts";
import type { Headroom, Item, Reply } from "../../../src/admission/escrow/exchange.ts";
import { NOTHING } from "../../../src/admission/escrow/exchange.ts";

const LIMITLESS = Number.POSITIVE_INFINITY;
const MINUTE = 60_000;
const RATES = ["requests", "input", "output"] as const;
const PARTS = ["credit", "running", ...RATES] as const;

/** A step of a replica; `after` in milliseconds. */
type Step = { after: number } & (
  | { do: "request"; hold: number; input: number }
  | { do: "settle"; which: number; share: number; output: number }
  | { do: "tick" }
);

const amount = (most: number) => fc.oneof(fc.integer({ min: 0, max: most }), fc.constant(LIMITLESS));
const headroom = fc.record({
  credit: fc.integer({ min: 0, max: 60 }),
  ...{ running: amount(6), requests: amount(6), input: amount(40), output: amount(12) },
});
const after = fc.oneof({ weight: 8, arbitrary: fc.constant(1) }, fc.integer({ min: 0, max: 7_500 }));
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("request" as const), after, hold: fc.nat(20), input: fc.nat(12) }),
  fc.record({ do: fc.constant("settle" as const), after, which: fc.nat(20), share: fc.nat(4), output: fc.nat(6) }),
  fc.record({ do: fc.constant("tick" as const), after }),
);

/** What a replica has, computed from the messages, and the requests that it runs. */
class Model {
  free: Headroom = { ...NOTHING };
  minuteEnds = 0;
  used = { requests: 0, input: 0 };
  readonly running: { requestId: string; hold: number }[] = [];
  readonly #limited: ReadonlySet<string>;

  constructor(first: Headroom) {
    this.#limited = new Set(PARTS.filter((part) => first[part] < LIMITLESS));
  }

  endMinute(now: number): void {
    if (now >= this.minuteEnds)
      for (const part of RATES) if (this.free[part] < LIMITLESS) this.free[part] = Math.min(0, this.free[part]);
  }

  fits(hold: number, input: number): boolean {
    const { credit, running, requests, input: tokens, output } = this.free;
    return credit >= hold && running >= 1 && requests >= 1 && tokens >= input && output > 0;
  }

  /** A part without a limit stays without one, and the other way round. */
  extra(given: Headroom, item: Item): Headroom {
    const extra = { ...given };
    for (const part of PARTS) {
      const size = Number.isFinite(given[part]) ? given[part] : 7;
      extra[part] = this.#limited.has(part) ? (item.spare.n > 0 || item.asks.length > 0 ? size : 0) : LIMITLESS;
    }
    return extra;
  }
}

test("admits exactly the requests that fit what is reserved, and keeps no more than that", () => {
  fc.assert(fc.property(headroom, fc.array(headroom, { minLength: 1 }), fc.array(step, { maxLength: 40 }), runSteps), {
    numRuns: Number(process.env.CHORUS_TEST_RUNS ?? 300),
  });
});

function runSteps(first: Headroom, given: readonly Headroom[], steps: readonly Step[]): void {
  const escrow = new Escrow("r1");
  const model = new Model(first);
  let now = 0;
  let sent = 0;
  const tell = (event: Event): readonly Command[] => {
    escrow.handle({ type: "beat", sentAt: now, isDeaf: false }, now);
    const commands = escrow.handle(event, now);
    for (const command of commands) if (command.type === "send") receive(command.mode, command.items);
    return commands;
  };
  /** The database grants each request, and what is drawn. */
  function receive(mode: Item["mode"], [item]: readonly Item[]): void {
    if (!item) return;
    assert.deepEqual(item.used, model.used);
    model.used = { requests: 0, input: 0 };
    model.endMinute(now);
    if (mode === "append") {
      escrow.handle({ type: "receive", mode, replies: [{ state: "appended" }] }, now);
      return;
    }
    for (const part of PARTS)
      assert.ok(item.keep[part] <= Math.max(0, model.free[part]), `keeps ${item.keep[part]} of ${part}`);
    const extra = model.extra(sent === 0 ? first : (given[sent % given.length] as Headroom), item);
    sent++;
    for (const part of PARTS) model.free[part] = item.keep[part] + extra[part];
    model.minuteEnds = now + MINUTE;
    for (const { requestId, hold } of item.asks) model.running.push({ requestId, hold });
    if (item.close) model.free = { ...NOTHING };
    const verdicts = item.asks.map(() => ({}));
    const none = { grant: 1, charges: {}, minute: 0, msLeft: MINUTE, isOver: false };
    const reply: Reply = { state: "done", verdicts, ...none, extra: item.close ? NOTHING : extra };
    assert.equal(escrow.handle({ type: "receive", mode, replies: [reply] }, now).filter(isSend).length, 0);
  }
  for (const [i, one] of steps.entries()) {
    now += one.after;
    if (one.do === "tick") tell({ type: "tick" });
    else if (one.do === "request") {
      const { hold, input } = one;
      model.endMinute(now);
      const fits = model.fits(hold, input);
      if (fits) {
        model.free = take(model.free, hold, input);
        model.used = { requests: model.used.requests + 1, input: model.used.input + input };
        model.running.push({ requestId: `q${i}`, hold });
      }
      const commands = tell({ type: "request", workspace: "ws_1", requestId: `q${i}`, hold, input });
      assert.equal(
        commands.some(({ type }) => type === "admit"),
        fits,
        `request ${i}`,
      );
    } else {
      const [ended] = model.running.splice(one.which % Math.max(1, model.running.length), 1);
      if (!ended) {
        tell({ type: "tick" });
        continue;
      }
      const charge = Math.floor((ended.hold * one.share) / 4);
      model.free.credit += ended.hold - charge;
      model.free.running += 1;
      model.free.output -= one.output;
      const post = { requestId: ended.requestId, charge, output: one.output, row: {} };
      tell({ type: "settle", posts: [post] });
    }
  }
}

function take(free: Headroom, hold: number, input: number): Headroom {
  const { credit, running, requests, input: tokens, output } = free;
  return { credit: credit - hold, running: running - 1, requests: requests - 1, input: tokens - input, output };
}

function isSend({ type }: Command): boolean {
  return type === "send";
}
