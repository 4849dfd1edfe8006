import assert from "node:assert/strict";
import { test } from "vitest";
import type { Mutation } from "./actors.ts";
import { type Options, runSchedule, STEPS } from "./schedule.ts";
import { Violation } from "./violation.ts";

/** Schedules of a run; set CHORUS_TEST_SCHEDULES for a longer search, or use `npm run simulate`. */
const SCHEDULES = Number(process.env.CHORUS_TEST_SCHEDULES ?? 300);

/** Returns the invariant that does not hold in the schedule of a seed; undefined: all hold. */
function violated(seed: number, options: Options = {}): number | undefined {
  try {
    runSchedule(seed, options);
    return undefined;
  } catch (error) {
    if (error instanceof Violation) return error.invariant;
    throw error;
  }
}

test(`keeps the six invariants in ${SCHEDULES} schedules of ${STEPS} steps`, () => {
  for (let seed = 1; seed <= SCHEDULES; seed++) {
    assert.equal(violated(seed), undefined, `npm run simulate -- --schedules 1 --seed ${seed}`);
  }
});

// Each defect, and the first seed that finds it.
for (const [invariant, what, seed, mutation] of [
  [1, "reserves what other replicas have reserved", 26, { ignoresOthers: true }],
  [2, "does not deduct a hold from the headroom of its replica", 1, { forgetsHolds: true }],
  [2, "continues a grant whose last changes a crash has lost", 71, { forgetsCrash: true }],
  [2, "leaves in the log what it has posted", 1, { keepsLog: true }],
  [3, "posts a repeated settlement again", 14, { postsTwice: true }],
  [3, "admits a key twice in the exchange that opens a grant", 1, { missesNewKeys: true }],
  [3, "does not take the key of a delivered answer again that a crash has lost", 71, { forgetsKeys: true }],
  [4, "lets the end of an answer leave before its settlement is durable", 1, { opensGate: true }],
  [4, "answers a statement that posts settlements before it is flushed", 21, { neverFlushes: true }],
  [4, "ends a grant without posting what waits in the log", 13, { dropsLog: true }],
  [4, "executes an exchange again that is repeated", 441, { executesAgain: true }],
  [5, "accepts settlements of a grant that was ended", 6, { acceptsEnded: true }],
  [5, "appends to the log of a grant that was ended", 104, { appendsToEnded: true }],
  [6, "refuses without calling headroom back", 26, { neverCallsBack: true }],
  [6, "leaves the key of a request in use that was refused because an answer was lost", 627, { freesNoKey: true }],
  [6, "leaves the keys of a grant in use that its replica does not know", 627, { keepsUnknown: true }],
  // Of caps.
  [1, "checks the first subject of a request alone", 7, { checksFirstSubject: true }],
  [1, "lowers the effort without a look at the caps that refuse", 23, { stopsAtLow: true }],
  [1, "does not see the holds of requests in the exchange that opens a grant", 30, { missesNewHolds: true }],
  [1, "does not hold what a running request may cost its subjects", 14, { takesNoHold: true }],
  [3, "does not count for a subject what it is charged", 1, { spendsNothing: true }],
  [3, "begins a new cap at zero", 18, { startsAtZero: true }],
  [6, "counts a request for its first subject that a cap of another one refuses", 73, { countsRefused: true }],
  [6, "keeps what requests hold of a subject whose grant has ended", 194, { keepsHoldsOfEnded: true }],
  [6, "prefers a template to the cap of a single subject", 956, { prefersTemplate: true }],
  [6, "keeps a raise after its end", 12, { keepsRaises: true }],
  [6, "counts what a subject has used in windows that have ended", 73, { keepsWindows: true }],
  // Of headroom of subjects.
  [1, "reserves of a subject what other replicas have reserved", 7, { ignoresSubjects: true }],
  [1, "does not count the requests of a subject that a replica has admitted by itself", 7, { countsNoShared: true }],
  [1, "lets headroom of a subject outlast the raise of its cap", 3291, { outlastsRaises: true }],
  [2, "does not deduct a hold from the headroom of its subjects", 7, { forgetsShares: true }],
  [6, "keeps what is reserved of a subject when its grant ends", 1321, { keepsSubjectsOfEnded: true }],
  [6, "refuses a subject without calling headroom back", 55, { callsNoSubjects: true }],
] satisfies [number, string, number, Mutation][]) {
  test(`finds a defect that ${what}`, () => {
    assert.equal(violated(seed, { mutation }), invariant);
    assert.equal(violated(seed), undefined);
  });
}

// Disturbances make what these need still more rare.
for (const [what, seed, mutation] of [
  ["charges an answer of a journal although another request has used its key", 803, { chargesKeysAgain: true }],
  ["drops the response of a request that a late copy asks for again", 162_950, { dropsResponse: true }],
] satisfies [string, number, Mutation][]) {
  test(`finds a defect that ${what}`, () => {
    assert.equal(violated(seed, { mutation, isUndisturbed: true }), 3);
    assert.equal(violated(seed, { isUndisturbed: true }), undefined);
  });
}

// Seeds that have found a defect in an earlier version of the rules, or of the checks.
for (const seed of [105, 1106, 1541, 33_401, 58_399, 901_924, 1_025_689, 7_128_656, 7_356_177, 20_010_811]) {
  test(`keeps the invariants in the schedule of seed ${seed}`, () => {
    assert.equal(violated(seed), undefined);
  });
}

// Seeds that have found a defect in an earlier version of the rules, without keys and crashes.
for (const seed of [1483, 1618, 3099, 5168, 45923, 129138, 142155]) {
  test(`keeps the invariants in the schedule of seed ${seed}`, () => {
    assert.equal(violated(seed, { isPlain: true }), undefined);
  });
}
