import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { bestDraft } from "../../../src/engine/plan/best.ts";
import { type Comparison, compareAnswers, compareObjects } from "../../../src/engine/plan/compare.ts";
import type { Draft } from "../../../src/engine/plan/draft.ts";
import { extractObject } from "../../../src/engine/structured/repair.ts";
import { end } from "../../models/fake-model.ts";
import { saying } from "./members.ts";

const objects = (share: "majority" | "all") =>
  compareObjects(share, (text) => extractObject(text).structured ?? undefined);

function draft(compare: Comparison, text: string, more: Partial<Draft["member"]> = {}): Draft {
  return {
    member: { role: "fast", model: saying(""), ...more },
    text,
    calls: [],
    canonical: compare.canonicalise(text, []),
    end: end(),
  };
}

function settle(compare: Comparison, texts: string[], outstanding = 0): string | undefined {
  return compare.settle(
    texts.map((text) => draft(compare, text)),
    Array.from({ length: outstanding }, () => 1),
  )?.text;
}

test("settles an answer by the most support once the outstanding drafts cannot change it", () => {
  const vote = compareAnswers("majority");
  assert.equal(settle(vote, ["A", "A", "B"]), "A");
  assert.equal(settle(vote, ["A", "A", "B", "B"]), undefined);
  assert.equal(settle(vote, ["A"]), undefined);
  assert.equal(settle(vote, ["A", "A"], 1), "A");
  assert.equal(settle(vote, ["A", "A"], 2), undefined);
  // Two that agree settle an answer if all others differ.
  assert.equal(settle(vote, ["A", "A", "B", "C"]), "A");
  assert.equal(settle(vote, ["A", "A", "B", "C"], 1), undefined);
  // A draft without an answer has no vote.
  assert.equal(settle(vote, ["A", "A", "I do not know what to say to this long question.\nSorry."]), "A");
});

test("keeps a settled answer whatever the outstanding drafts say", () => {
  const vote = compareAnswers("majority");
  const letter = fc.constantFrom("A", "B", "C");
  fc.assert(
    fc.property(fc.array(letter, { maxLength: 5 }), fc.array(letter, { maxLength: 3 }), (come, late) => {
      const early = settle(vote, come, late.length);
      if (early !== undefined) assert.equal(settle(vote, [...come, ...late]), early);
    }),
  );
});

test("votes on objects field by field", () => {
  const texts = ['{"a":1,"b":2,"c":9}', '{"a":1,"b":9,"c":3}', '{"a":9,"b":2,"c":3}'];
  assert.equal(settle(objects("majority"), texts), '{"a":1,"b":2,"c":3}');
  assert.equal(settle(objects("all"), texts), undefined);
  assert.equal(settle(objects("majority"), ['{"a":1}', '{"a":2}', '{"a":3}']), undefined);
  assert.equal(settle(objects("majority"), ['{"a":[1]}', '{"a":[1,2]}']), undefined);
});

test("lets free text differ, and counts a field that only some drafts have as a disagreement", () => {
  const long = (word: string) => `${word} and ${"many other words ".repeat(5)}`;
  const [one, two] = [JSON.stringify({ a: 1, b: long("one") }), JSON.stringify({ a: 1, b: long("two") })];
  assert.equal(settle(objects("all"), [one, two]), one);
  assert.equal(settle(objects("all"), ['{"a":1}', '{"a":1,"b":2}']), undefined);
});

test("compares long lists under long names in a time that grows with the length of the drafts", () => {
  // Written out, the paths of each draft have 260 MB.
  const text = JSON.stringify({ ["=".repeat(128_000)]: Array(2_000).fill(1) });
  assert.equal(settle(objects("all"), [text, text]), text);
});

test("tells a member from an item of a list at the same place", () => {
  assert.equal(settle(objects("all"), ['{"a":["x"]}', '{"a":{"0":"x"}}']), undefined);
});

test("gives one draft when the merged object is not valid", () => {
  const texts = ['{"a":1,"b":2,"c":9}', '{"a":1,"b":9,"c":3}', '{"a":9,"b":2,"c":3}'];
  const compare = compareObjects("majority", (text) => (texts.includes(text) ? text : undefined));
  const text = settle(compare, texts);
  assert.ok(text !== undefined && texts.includes(text), text);
});

test("chooses the best draft by validity, agreement, length and the member's accuracy", () => {
  const vote = compareAnswers("majority");
  const best = (...drafts: Draft[]) => bestDraft(drafts)?.text;
  assert.equal(bestDraft([]), undefined);
  assert.equal(best(draft(vote, "A"), draft(vote, "Answer: B"), draft(vote, "B")), "Answer: B");
  assert.equal(best(draft(vote, "A", { accuracy: 0.6 }), draft(vote, "B", { accuracy: 0.7 })), "B");
  assert.equal(best(draft(vote, "A"), draft(vote, "B", { role: "strong" })), "B");
  const broken = { ...draft(vote, "A", { role: "strong" }), canonical: undefined };
  assert.equal(best(broken, draft(vote, "B")), "B");
  assert.equal(best(broken), "A");
  const prose = { canonicalise: (text: string) => text, settle: () => undefined, agreement: () => undefined };
  const text = "the whole story of the house by the sea ".repeat(5);
  assert.equal(best(draft(prose, "short"), draft(prose, text), draft(prose, `${text}and more`)), text);
});
