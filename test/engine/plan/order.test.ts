import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { choosePlan, type PlanCriteria } from "../../../src/engine/plan/plan.ts";
import { Steps } from "../../../src/engine/plan/step.ts";
import type { Member } from "../../../src/models/catalogue.ts";
import type { Knowledge } from "../../../src/models/order.ts";
import { call, collect, textOf } from "../../models/fake-model.ts";
import { catalogueOf, type Fake, PROSE, type Says, saying } from "./members.ts";

const CLOSED: PlanCriteria = { ...PROSE, effort: "auto", kind: "closed" };

type Row = { tier: "fast" | "strong"; says: Says[] } & Partial<Member>;

const fast = (says: Says | Says[], more: Partial<Member> = {}): Row => ({
  ...{ tier: "fast", says: [says].flat() },
  ...more,
});
const strong = (says: Says | Says[], more: Partial<Member> = {}): Row => ({ ...fast(says, more), tier: "strong" });

/** Asks a catalogue of models of different vendors. @returns the answer, the names of the models called, the details */
async function ask(rows: readonly Row[], criteria: Partial<PlanCriteria> = {}) {
  const called: string[] = [];
  const models = rows.map(({ says, ...row }, at) => {
    const model: Fake = saying(...says);
    const asking: Fake = {
      ...model,
      ask: (asked) => {
        called.push(row.name ?? `m${at}`);
        return model.ask(asked);
      },
    };
    return { vendor: `v${at}`, ...row, model: asking };
  });
  const plan = choosePlan(catalogueOf(...models), { ...CLOSED, ...criteria }, new Steps());
  const all = await collect(plan.ask(call()));
  const steps = all.flatMap((piece) => (piece.type === "step" && piece.step.outcome ? [piece.step] : []));
  return { text: textOf(all), called, details: steps.map(({ detail }) => detail ?? "").join("\n") };
}

test("the most accurate models draft and answer, whatever the catalogue's order", async () => {
  const rows = [
    fast("A", { name: "f40", accuracy: 0.4 }),
    fast("B", { name: "f55", accuracy: 0.55 }),
    fast("C", { name: "f60", accuracy: 0.6 }),
    strong("D", { name: "s45", accuracy: 0.45 }),
    strong("E", { name: "s65", accuracy: 0.65 }),
  ];
  const auto = await ask(rows);
  assert.deepEqual([auto.text, auto.called.toSorted()], ["E", ["f55", "f60", "s65"]]);
  assert.match(auto.details, /stated in the catalogue/);
  assert.deepEqual((await ask(rows, { kind: "prose", effort: "low" })).called, ["f60"]);
  const medium = { kind: "prose", level: "medium", effort: "medium", difficulty: 1 } as const;
  assert.deepEqual((await ask(rows, medium)).called, ["s65"]);
  const far = [0.3, 0.5, 0.55, 0.35, 0.8].map((accuracy, at) => ({ ...(rows[at] ?? fast("X")), accuracy }));
  assert.deepEqual((await ask(far)).called, ["s65"]);
});

test("judge, analyst and writer are the most accurate model, also of the fast tier", async () => {
  const rows = [
    strong("Answer: A", { name: "low", accuracy: 0.6 }),
    fast("Answer: B", { name: "best", accuracy: 0.7 }),
    strong("Answer: C", { name: "middle", accuracy: 0.65 }),
  ];
  const judged = await ask(rows, { level: "high", effort: "high" });
  assert.deepEqual(judged.called.slice(3), ["best"]);
  const written = await ask(rows, { level: "high", effort: "high", kind: "prose" });
  assert.deepEqual(written.called.slice(3), ["best", "best"]);
  assert.match(written.details, /wrote from the drafts; the models are ordered by accuracy, stated in the catalogue/);
});

test("with only fast models, one that has not drafted breaks the tie", async () => {
  const rows = [fast("A", { name: "f1" }), fast("B", { name: "f2" }), fast("B", { name: "f3" })];
  const { text, called } = await ask(rows);
  assert.deepEqual([text, called], ["B", ["f1", "f2", "f3"]]);
  const open = await ask([fast("A"), fast("B"), fast("C")]);
  assert.equal(open.text, "A");
});

test("with two models, a sample of the better one breaks the tie", async () => {
  const rows = [fast(["A", "B"], { name: "f1" }), fast("B", { name: "f2" })];
  const { text, called } = await ask(rows);
  assert.deepEqual([text, called], ["B", ["f1", "f2", "f1"]]);
});

test("no weaker model answers for a pair; it only votes", async () => {
  const rows = [
    fast("A", { name: "f70", accuracy: 0.7 }),
    fast("B", { name: "f68", accuracy: 0.68 }),
    strong("C", { name: "s60", accuracy: 0.6 }),
  ];
  assert.equal((await ask(rows)).text, "A");
  assert.equal((await ask([...rows.slice(0, 2), strong("B", { accuracy: 0.65 })])).text, "B");
});

test("an escalation never asks a model that has drafted while another is left", async () => {
  const row = fc.record({
    tier: fc.constantFrom("fast" as const, "strong" as const),
    accuracy: fc.option(fc.double({ min: 0.4, max: 0.6, noNaN: true }), { nil: undefined }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 3, maxLength: 6 }), async (list) => {
      const rows = list.map(({ tier, accuracy }, at) => ({
        ...(tier === "fast" ? fast(`Answer: ${at}`) : strong(`Answer: ${at}`)),
        ...(accuracy === undefined ? {} : { accuracy }),
      }));
      const { called } = await ask(rows, { level: "medium" });
      assert.equal(new Set(called).size, called.length);
    }),
  );
});

test("learned accuracies order models that state none, and the trace says so", async () => {
  const knowledge: Knowledge = (model, ability) => {
    const accuracy = ability === "maths" ? { bad: 0.5, good: 0.6, better: 0.62 }[model] : undefined;
    return accuracy === undefined ? undefined : { accuracy, sentence: "learned from 120 graded disagreements" };
  };
  const rows = [fast("A", { name: "bad" }), fast("B", { name: "good" }), fast("B", { name: "better" })];
  const maths = await ask(rows, { kind: "maths", knowledge });
  assert.deepEqual(maths.called.toSorted(), ["better", "good"]);
  assert.match(maths.details, /learned from 120 graded disagreements/);
  const closed = await ask(rows, { knowledge });
  assert.deepEqual(closed.called.slice(0, 2), ["bad", "good"]);
  assert.doesNotMatch(closed.details, /learned/);
  const stated = rows.map((one, at) => ({ ...one, accuracy: [0.62, 0.6, 0.5][at] ?? 0 }));
  assert.deepEqual((await ask(stated, { kind: "maths", knowledge })).called.slice(0, 2), ["bad", "good"]);
});

test("price orders models of which nothing else is known", async () => {
  const price = (usd: number) => ({ price: { input: usd, output: usd } });
  const rows = [fast("A", { name: "cheap", ...price(1) }), fast("B", { name: "dear", ...price(3) })];
  const low = await ask(rows, { kind: "prose", effort: "low" });
  assert.deepEqual(low.called, ["dear"]);
  assert.match(low.details, /by price/);
});

test("a better model is asked alone where two drafts and it would cost more", async () => {
  const rows = (usd: number) => [
    fast("A", { accuracy: 0.6, price: { input: usd, output: usd } }),
    fast("A", { accuracy: 0.6, price: { input: usd, output: usd } }),
    strong("B", { name: "s", accuracy: 0.65, price: { input: 1, output: 1 } }),
  ];
  // The pair is expected to disagree on .43 of the questions.
  assert.equal((await ask(rows(0.2))).text, "A");
  const dear = await ask(rows(0.4));
  assert.deepEqual(dear.called, ["s"]);
  assert.match(dear.details, /would cost more/);
});

test("a model of another vendor is preferred only if that costs less than a point", async () => {
  const rows = (other: number) => [
    fast("A", { name: "a1", vendor: "a", accuracy: 0.7 }),
    fast("A", { name: "a2", vendor: "a", accuracy: 0.695 }),
    fast("A", { name: "b", vendor: "b", accuracy: other }),
  ];
  assert.deepEqual((await ask(rows(0.69))).called.toSorted(), ["a1", "b"]);
  assert.deepEqual((await ask(rows(0.6))).called.toSorted(), ["a1", "a2"]);
});

test("high: fast models break the tie of two strong ones of which nothing is known", async () => {
  const rows = [fast("B"), fast("B"), fast("C"), strong("A"), strong("B")];
  const high = await ask(rows, { level: "high", effort: "high" });
  assert.deepEqual([high.text, high.called.length], ["B", 5]);
});

test("in maths a majority of peers outvotes the best of them", async () => {
  const rows = [0.75, 0.64, 0.63].map((accuracy, at) => strong(at === 0 ? "Answer: 1" : "Answer: 2", { accuracy }));
  const high = { level: "high", effort: "high" } as const;
  assert.equal((await ask(rows, { ...high, kind: "maths" })).text, "Answer: 2");
  assert.equal((await ask(rows, { ...high, kind: "closed" })).text, "Answer: 1");
});
