import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { type Ballot, tally } from "../../../src/engine/fuse/vote.ts";

const votes = (...answers: (string | undefined)[]): Ballot[] => answers.map((answer) => ({ answer, weight: 1 }));

test("the majority leads, by its first ballot", () => {
  assert.deepEqual(tally(votes("a", "b", "b"), 0), { leader: 1, agreement: 2 / 3, decided: true });
});

test("who gives no answer casts no weight", () => {
  assert.deepEqual(tally(votes(undefined, "b", undefined), 0), { leader: 1, agreement: 1, decided: true });
  assert.equal(tally(votes(undefined, undefined), 1), undefined);
  assert.equal(tally([], 0), undefined);
});

test("a vote is decided once what is outstanding cannot change it", () => {
  assert.equal(tally(votes("a", "a"), 1)?.decided, true);
  assert.equal(tally(votes("a", "a", "b"), 1)?.decided, false);
  assert.equal(tally(votes("a", "a"), 2)?.decided, false);
  assert.equal(tally(votes("a", "b"), 0)?.decided, false);
});

test("weights count, whatever their binary fractions say", () => {
  const ballots = [
    { answer: "a", weight: 0.3 },
    { answer: "b", weight: 0.1 },
    { answer: "b", weight: 0.2 },
  ];
  const { leader, agreement, decided } = tally(ballots, 0) ?? assert.fail();
  assert.deepEqual([leader, decided, agreement.toFixed(6)], [0, false, "0.500000"]);
});

test("without any weight the first answer leads and nothing is decided", () => {
  assert.deepEqual(tally([{ answer: "a", weight: 0 }], 0), { leader: 0, agreement: 0, decided: false });
});

test("no ballots that are still out can turn a decided vote", () => {
  const ballot = fc.record({
    answer: fc.option(fc.constantFrom("a", "b", "c"), { nil: undefined }),
    weight: fc.integer({ min: 0, max: 9 }),
  });
  fc.assert(
    fc.property(fc.array(ballot, { maxLength: 6 }), fc.array(ballot, { maxLength: 4 }), (cast, late) => {
      const before = tally(
        cast,
        late.reduce((sum, { weight }) => sum + weight, 0),
      );
      if (!before?.decided) return;
      assert.equal(cast[before.leader]?.answer, [...cast, ...late][tally([...cast, ...late], 0)?.leader ?? -1]?.answer);
    }),
  );
});
