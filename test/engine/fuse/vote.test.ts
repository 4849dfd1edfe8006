import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { type Ballot, tally } from "../../../src/engine/fuse/vote.ts";

const votes = (...answers: (string | undefined)[]): Ballot[] => answers.map((answer) => ({ answer, weight: 1 }));

test("gives the first ballot of the majority as the leader", () => {
  assert.deepEqual(tally(votes("a", "b", "b"), []), { leader: 1, agreement: 2 / 3, decided: true });
});

test("ignores the weight of a ballot without an answer", () => {
  assert.deepEqual(tally(votes(undefined, "b", undefined), []), { leader: 1, agreement: 1, decided: true });
  assert.equal(tally(votes(undefined, undefined), [1]), undefined);
  assert.equal(tally([], []), undefined);
});

test("decides a vote once the outstanding ballots cannot change it", () => {
  assert.equal(tally(votes("a", "a"), [1])?.decided, true);
  assert.equal(tally(votes("a", "a", "b"), [1])?.decided, false);
  assert.equal(tally(votes("a", "a"), [1, 1])?.decided, false);
  assert.equal(tally(votes("a", "b"), [])?.decided, false);
});

test("counts further ballots for an answer less than the heaviest one", () => {
  const vote = (...weights: number[]) =>
    tally(
      weights.map((weight, at) => ({ answer: at === 0 ? "alone" : "joint", weight })),
      [],
    )?.leader;
  // .85 and two of .64, .72 and two of .64, as log-odds + .8.
  assert.equal(vote(2.53, 1.38, 1.38), 0);
  assert.equal(vote(1.74, 1.38, 1.38), 1);
});

test("compares sums of weights without floating-point error", () => {
  const ballots = [
    { answer: "a", weight: 0.3 },
    { answer: "b", weight: 0.3 },
    { answer: "a", weight: 0.1 },
    { answer: "b", weight: 0.1 },
  ];
  const { leader, agreement, decided } = tally(ballots, []) ?? assert.fail();
  assert.deepEqual([leader, decided, agreement.toFixed(6)], [0, false, "0.500000"]);
});

test("gives the first answer and decides nothing when all weights are zero", () => {
  assert.deepEqual(tally([{ answer: "a", weight: 0 }], []), { leader: 0, agreement: 0, decided: false });
});

test("keeps the leader of a decided vote for any outstanding ballots", () => {
  const ballot = fc.record({
    answer: fc.option(fc.constantFrom("a", "b", "c"), { nil: undefined }),
    weight: fc.integer({ min: 0, max: 9 }),
  });
  fc.assert(
    fc.property(fc.array(ballot, { maxLength: 6 }), fc.array(ballot, { maxLength: 4 }), (cast, late) => {
      const before = tally(
        cast,
        late.map(({ weight }) => weight),
      );
      if (!before?.decided) return;
      assert.equal(
        cast[before.leader]?.answer,
        [...cast, ...late][tally([...cast, ...late], [])?.leader ?? -1]?.answer,
      );
    }),
  );
});
