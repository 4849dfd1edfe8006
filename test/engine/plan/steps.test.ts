import assert from "node:assert/strict";
import { test } from "vitest";
import { choosePlan, type PlanCriteria } from "../../../src/engine/plan/plan.ts";
import { Steps } from "../../../src/engine/plan/step.ts";
import { Trace } from "../../../src/engine/trace.ts";
import type { Step } from "../../../src/models/port/model.ts";
import { call, collect, end, text } from "../../models/fake-model.ts";
import { catalogueOf, dead, PROSE, type Says, saying, silent } from "./members.ts";

const CRITERIA = { ...PROSE, deadlineMs: 2_000 };

/** The steps of an answer of fast models, called m0 and so on, and then strong ones. */
async function steps(fast: Says[], strong: Says[], criteria: Partial<PlanCriteria>): Promise<Step[]> {
  const named = (says: Says, at: number): Says =>
    typeof says === "string" ? async () => [text(says), end("stop", { model: `m${at}` })] : says;
  const rows = [...fast, ...strong].map((says, at) => ({
    tier: at < fast.length ? ("fast" as const) : ("strong" as const),
    vendor: `v${at}`,
    model: saying(named(says, at)),
  }));
  const plan = choosePlan(catalogueOf(...rows), { ...CRITERIA, ...criteria }, new Steps());
  const all = await collect(plan.ask({ ...call(), endsAt: performance.now() + CRITERIA.deadlineMs }));
  return all.flatMap((piece) => (piece.type === "step" ? [piece.step] : []));
}

test("a step ends with the role of the model that answered after a failover", async () => {
  const [begin, done] = await steps([dead], ["B"], {});
  assert.deepEqual([begin?.role, done?.role], ["fast", "strong"]);
  const trace = new Trace();
  for (const step of [begin, done]) if (step) trace.add(step);
  assert.deepEqual(
    trace.steps.map(({ role, outcome }) => [role, outcome]),
    [["strong", "ok"]],
  );
});

test("a vote that settles nothing has an agreement too", async () => {
  const all = await steps(["Answer: A", "Answer: B"], ["Answer: C"], { level: "medium", kind: "closed" });
  const vote = all.find(({ kind, outcome }) => kind === "vote" && outcome);
  assert.deepEqual([vote?.outcome, vote?.agreement], ["failed", 0.5]);
  assert.equal(vote?.detail, "2 drafts do not decide, agreement 50 %");
  assert.equal(all.at(-1)?.detail, "a strong model answers, because the drafts do not decide");
  const unread = await steps(["Prose.\nMore prose.", "A.\nB c."], ["C"], { level: "medium", kind: "closed" });
  const none = unread.find(({ kind, outcome }) => kind === "vote" && outcome);
  assert.equal(none?.detail, "2 drafts do not decide, none has an answer that can be compared");
});

test("a late analysis tells its end once, and why", async () => {
  const strong: Says = (asked) =>
    asked.prompt.messages.at(-1)?.text.includes("Do not answer it")
      ? typeof silent === "string"
        ? Promise.resolve([])
        : silent(asked)
      : Promise.resolve([text("A text."), end()]);
  const all = await steps([], [strong, strong], { level: "high" });
  const ends = all.filter(({ kind, outcome }) => kind === "analysis" && outcome);
  assert.deepEqual(
    ends.map(({ outcome, detail }) => [outcome, detail]),
    [["failed", "the analysis took too long and is left out"]],
  );
  assert.equal(all.at(-1)?.detail, "a strong model wrote from the drafts");
});

test("a step says the tier that answered after a failover, not the one that was asked", async () => {
  const detail = async (...of: Parameters<typeof steps>) => (await steps(...of)).at(-1)?.detail;
  const fast = ["Answer: A", "Answer: B", "Answer: C"];
  assert.equal(
    await detail(fast, [dead], { level: "medium", kind: "closed" }),
    "a fast model answers, because the drafts do not decide",
  );
  assert.equal(await detail(["A text."], [dead], { level: "high" }), "a fast model wrote from the drafts");
  const undrafted = await detail(fast.slice(0, 2), [dead], { level: "high", kind: "closed" });
  assert.equal(undrafted, "a fast model answers, because no draft came");
});
