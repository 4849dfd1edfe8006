import assert from "node:assert/strict";
import { test } from "vitest";
import { choosePlan, type PlanCriteria } from "../../../src/engine/plan/plan.ts";
import { Steps } from "../../../src/engine/plan/step.ts";
import { extractObject } from "../../../src/engine/structured/repair.ts";
import type { Catalogue } from "../../../src/models/catalogue.ts";
import { UpstreamError } from "../../../src/models/failover.ts";
import { complete, type ModelCall } from "../../../src/models/port/model.ts";
import { call, collect, textOf } from "../../models/fake-model.ts";
import { catalogueOf, completion, dead, type Fake, held, type Says, saying, silent, stepsOf } from "./members.ts";

const CRITERIA: PlanCriteria = {
  level: "low",
  kind: "prose",
  shape: "text",
  streamed: true,
  continues: false,
  hasImages: false,
  deadlineMs: 60_000,
  generation: "gen_1",
  read: (text) => extractObject(text).structured ?? undefined,
};

type Models = Pick<Catalogue, "members" | "offline">;

async function run(models: Models, asked: Partial<PlanCriteria>, options = call()) {
  const all = await collect(choosePlan(models, { ...CRITERIA, ...asked }, new Steps()).ask(options));
  return { text: textOf(all), steps: stepsOf(all), kinds: stepsOf(all).filter((step) => !step.endsWith("…")) };
}

/** Three vendors with a fast and a strong model each. */
function three(fast: [Says, Says, Says], strong: [Says, Says, Says]) {
  const models = [...fast, ...strong].map((says) => saying(says));
  const [fa, fb, fc, sa, sb, sc] = models as [Fake, Fake, Fake, Fake, Fake, Fake];
  const catalogue = catalogueOf(
    { tier: "fast", vendor: "a", model: fa },
    { tier: "strong", vendor: "a", model: sa },
    { tier: "fast", vendor: "b", model: fb },
    { tier: "strong", vendor: "b", model: sb },
    { tier: "fast", vendor: "c", model: fc },
    { tier: "strong", vendor: "c", model: sc },
  );
  return { catalogue, calls: () => models.map(({ calls }) => calls.length), models };
}

const lastText = ({ prompt }: ModelCall): string => prompt.messages.at(-1)?.text ?? "";

/** A strong model whose answer depends on what the call is for. */
const phased =
  (says: Partial<Record<"draft" | "analysis" | "write" | "judge", Says>>): Says =>
  (asked) => {
    const text = lastText(asked);
    const phase = !text.includes("drafts of an answer")
      ? "draft"
      : text.includes("Do not answer it")
        ? "analysis"
        : text.includes("Write the best")
          ? "write"
          : "judge";
    const step = says[phase] ?? phase;
    return Promise.resolve(typeof step === "string" ? completion(step) : step(asked));
  };

test("low: asks one fast model for every kind, streamed or not, and the next one after a failure", async () => {
  for (const streamed of [true, false]) {
    const { catalogue, calls } = three(["one", "x", "x"], ["x", "x", "x"]);
    for (const kind of ["prose", "closed", "code"] as const) {
      const { text, steps } = await run(catalogue, { kind, streamed });
      assert.equal(text, "one");
      assert.deepEqual(steps, ["answer fast …", "answer fast ok"]);
    }
    assert.deepEqual(calls(), [3, 0, 0, 0, 0, 0]);
    assert.equal((await run(three([dead, "two", "x"], ["x", "x", "x"]).catalogue, { streamed })).text, "two");
  }
});

test("medium, closed: asks two fast models of different vendors, and a strong one if they disagree", async () => {
  for (const kind of ["closed", "maths", "extraction"] as const) {
    const agree = three(["Answer: A", "(A)", "x"], ["Answer: S", "x", "x"]);
    const { text, kinds } = await run(agree.catalogue, { level: "medium", kind });
    assert.equal(text, "Answer: A");
    assert.deepEqual(kinds, ["draft fast ok", "draft fast ok", "vote service ok"]);
    assert.deepEqual(agree.calls(), [1, 1, 0, 0, 0, 0]);
    const differ = three(["Answer: A", "Answer: B", "x"], ["Answer: S", "x", "x"]);
    const escalated = await run(differ.catalogue, { level: "medium", kind });
    assert.equal(escalated.text, "Answer: S");
    assert.deepEqual(escalated.kinds.slice(-2), ["vote service failed", "escalate strong ok"]);
    // It gets the question without the drafts.
    assert.equal(lastText(differ.models[3]?.calls[0] ?? call()), "Hi");
  }
});

test("medium, JSON: compares objects by their values", async () => {
  const asked = { level: "medium", shape: "extract" } as const;
  const agree = three(['{"a":1,"b":"X"}', '```json\n{"b":"x","a":1.0}\n```', "x"], ["{}", "x", "x"]);
  assert.equal((await run(agree.catalogue, asked)).text, '{"a":1,"b":"X"}');
  assert.deepEqual(agree.calls(), [1, 1, 0, 0, 0, 0]);
  const differ = three(['{"a":1}', '{"a":2}', "x"], ['{"a":3}', "x", "x"]);
  assert.equal((await run(differ.catalogue, asked)).text, '{"a":3}');
  const malformed = three(['{"a":1}', "no object", "x"], ['{"a":3}', "x", "x"]);
  assert.equal((await run(malformed.catalogue, asked)).text, '{"a":3}');
});

test("medium, prose: chooses one model by difficulty", async () => {
  const { catalogue, calls } = three(["fast", "x", "x"], ["strong", "x", "x"]);
  assert.equal((await run(catalogue, { level: "medium", difficulty: 0.3 })).text, "fast");
  assert.equal((await run(catalogue, { level: "medium", difficulty: 0.4 })).text, "strong");
  assert.equal((await run(catalogue, { level: "medium" })).text, "strong");
  assert.deepEqual(calls(), [1, 0, 0, 2, 0, 0]);
});

test("medium, closed: asks a strong model when there is only one vendor", async () => {
  const [fast, strong] = [saying("f"), saying("s")];
  const models = catalogueOf(
    { tier: "fast", vendor: "a", model: fast },
    { tier: "strong", vendor: "a", model: strong },
  );
  assert.equal((await run(models, { level: "medium", kind: "closed", difficulty: 0 })).text, "s");
  assert.equal(fast.calls.length, 0);
});

test("high, closed: similar models vote, and without a majority the strongest judges the drafts", async () => {
  const majority = three(["x", "x", "x"], ["Answer: A", "Answer: B", "Answer: B"]);
  const voted = await run(majority.catalogue, { level: "high", kind: "closed" });
  assert.equal(voted.text, "Answer: B");
  assert.deepEqual(majority.calls(), [0, 0, 0, 1, 1, 1]);

  const split = three(["x", "x", "x"], [phased({ draft: "Answer: A", judge: "Answer: Z" }), "Answer: B", "Answer: C"]);
  const judged = await run(split.catalogue, { level: "high", kind: "closed" }, call({ stops: ["x"], maxTokens: 50 }));
  assert.equal(judged.text, "Answer: Z");
  assert.deepEqual(judged.kinds.slice(-2), ["vote service failed", "judge strong ok"]);
  const last = split.models[3]?.calls.at(-1);
  assert.deepEqual([last?.stops, last?.maxTokens], [["x"], 50]);
  const seen = lastText(last ?? call());
  for (const draft of ["Answer: A", "Answer: B", "Answer: C"]) assert.ok(seen.includes(draft));
  assert.ok(seen.startsWith("Hi\n\n"));
});

test("high, JSON: keeps the fields with a majority, and the judge decides the others", async () => {
  const asked = { level: "high", shape: "extract" } as const;
  const split = (judge: string) =>
    three(["x", "x", "x"], [phased({ draft: '{"a":1,"b":2}', judge }), '{"a":1,"b":3}', 'Here: {"a":1,"b":4}']);
  for (const streamed of [true, false]) {
    const joined = await run(split('So: {"a":9,"b":5}').catalogue, { ...asked, streamed });
    assert.equal(joined.text, '{"a":1,"b":5}');
    assert.deepEqual(joined.kinds.slice(-2), ["vote service failed", "judge strong ok"]);
    const mute = await run(split("I cannot say.").catalogue, { ...asked, streamed });
    assert.equal(mute.text, '{"a":1,"b":2}');
    assert.equal(mute.kinds.at(-1), "fallback service ok");
  }
  const alone = three(["x", "x", "x"], [phased({ draft: '{"a":1}', judge: '{"a":2}' }), "no object", dead]);
  assert.equal((await run(alone.catalogue, asked)).text, '{"a":2}');
  const none = three(["x", "x", "x"], [phased({ draft: "none", judge: "none either" }), "no object", dead]);
  assert.equal((await run(none.catalogue, asked)).text, "none either");
});

test("high, prose: drafts, analyses and writes, and replaces each part that fails", async () => {
  const analysis = '{"consensus":["It is blue."],"contradictions":[],"gaps":["The year."]}';
  const all = (says: Parameters<typeof phased>[0]) =>
    three(["x", "x", "x"], [phased(says), "draft two", "draft three"]);
  const asked = { level: "high", kind: "prose" } as const;
  const good = all({ draft: "draft one", analysis, write: "The whole text" });
  const written = await run(good.catalogue, asked);
  assert.equal(written.text, "The whole text");
  assert.deepEqual(written.kinds, [
    "draft strong ok",
    "draft strong ok",
    "draft strong ok",
    "analysis strong ok",
    "write strong ok",
  ]);
  const calls = good.models[3]?.calls ?? [];
  assert.deepEqual(calls.length, 3);
  assert.ok(lastText(calls[2] ?? call()).includes("The year."));
  assert.deepEqual(calls[1]?.format, { type: "json" });

  const unreadable = await run(all({ analysis: "hm", write: "Written" }).catalogue, asked);
  assert.equal(unreadable.text, "Written");
  assert.ok(unreadable.kinds.includes("analysis strong failed"));

  // Every other model would write too, so all of them have to fail.
  const noFuser = (says: Parameters<typeof phased>[0]) => {
    const draft = (text: string) => phased({ draft: text, analysis, write: dead, judge: dead, ...says });
    return three([draft("x"), draft("x"), draft("x")], [draft("draft one"), draft("draft one, more"), draft("other")]);
  };
  for (const says of [{ write: dead }, { analysis: dead }]) {
    const fallen = await run(noFuser(says).catalogue, asked);
    assert.equal(fallen.text, "draft one");
    assert.deepEqual(fallen.kinds.at(-1), "fallback service ok");
  }
});

test("high, prose: skips the analysis of one draft, and asks the strongest model without drafts", async () => {
  const one = three(["x", "x", "x"], [dead, phased({ draft: "a draft", write: "Written" }), dead]);
  const written = await run(one.catalogue, { level: "high" });
  assert.equal(written.text, "Written");
  assert.deepEqual(written.kinds.toSorted(), [
    "draft strong failed",
    "draft strong failed",
    "draft strong ok",
    "write strong ok",
  ]);
  const none = three(["saved", "x", "x"], [dead, dead, dead]);
  const saved = await run(none.catalogue, { level: "high" });
  assert.equal(saved.text, "saved");
  assert.equal(saved.kinds.at(-1), "escalate strong ok");
});

test("throws an UpstreamError at every level when all models fail", async () => {
  const { catalogue } = three([dead, dead, dead], [dead, dead, dead]);
  for (const level of ["low", "medium", "high"] as const)
    for (const kind of ["closed", "prose"] as const)
      for (const streamed of [true, false])
        await assert.rejects(run(catalogue, { level, kind, streamed }), UpstreamError);
});

test("samples the strongest model three times when there is only one vendor", async () => {
  const strong = saying("Answer: A");
  const models = catalogueOf(
    { tier: "fast", vendor: "a", model: saying("x") },
    { tier: "strong", vendor: "a", model: strong },
  );
  assert.equal(
    (await run(models, { level: "high", kind: "closed" }, call({ defaultTemperature: 0 }))).text,
    "Answer: A",
  );
  await run(models, { level: "high", kind: "closed" }, call({ temperature: 0.2 }));
  assert.deepEqual(
    strong.calls.map(({ temperature, defaultTemperature }) => temperature ?? defaultTemperature),
    [0.7, 0.7, 0.7, 0.2, 0.2, 0.2],
  );
});

test("does not let weaker models outvote a dominant one", async () => {
  const [best, ...others] = [saying("Answer: R"), saying("Answer: W"), saying("Answer: W"), saying("Answer: W")];
  const models = catalogueOf(
    ...others.map((model, i) => ({ tier: "strong" as const, vendor: `v${i}`, model, accuracy: 0.55 })),
    { tier: "strong", vendor: "best", model: best, accuracy: 0.85 },
  );
  assert.equal((await run(models, { level: "high", kind: "closed" })).text, "Answer: R");
  assert.ok(others.every(({ calls }) => calls.length === 0));
});

test("lets at most five models vote, of different vendors first", async () => {
  const models = Array.from({ length: 7 }, () => saying("Answer: A"));
  const asCatalogue = (vendors: string[]) =>
    catalogueOf(
      ...vendors.map((vendor, i) => ({ tier: "strong" as const, vendor, model: models[i] ?? assert.fail() })),
    );
  const votes = async (vendors: string[]) => {
    for (const model of models) model.calls.length = 0;
    await run(asCatalogue(vendors), { level: "high", kind: "closed" });
    return models.map(({ calls }) => calls.length);
  };
  assert.deepEqual(await votes(["a", "b", "c", "d", "e", "f", "g"]), [1, 1, 1, 1, 1, 0, 0]);
  assert.deepEqual(await votes(["a", "a", "a", "b"]), [1, 1, 1, 1, 0, 0, 0]);
});

test("makes no panel of offline models or for a continued text", async () => {
  const offline = catalogueOf(
    { tier: "fast", vendor: "offline", model: saying("f") },
    { tier: "strong", vendor: "offline", model: saying("s") },
  );
  for (const kind of ["closed", "prose"] as const) {
    const { text, steps } = await run(offline, { level: "high", kind });
    assert.deepEqual([text, steps], ["s", ["answer strong …", "answer strong ok"]]);
  }
  const { catalogue, calls } = three(["x", "x", "x"], ["goes on", "x", "x"]);
  assert.equal((await run(catalogue, { level: "high", kind: "closed", continues: true })).text, "goes on");
  assert.deepEqual(calls(), [0, 0, 0, 1, 0, 0]);
  const stand = saying("offline");
  const mixed = catalogueOf(
    { tier: "strong", vendor: "a", model: saying("Answer: A") },
    { tier: "strong", vendor: "b", model: saying("Answer: A") },
    { tier: "strong", vendor: "offline", model: stand },
  );
  await run(mixed, { level: "high", kind: "closed" });
  assert.equal(stand.calls.length, 0);
  const real = saying("Answer: A");
  const above = catalogueOf(
    { tier: "fast", vendor: "a", model: real },
    { tier: "strong", vendor: "offline", model: stand },
  );
  assert.equal((await run(above, { level: "high", kind: "closed" })).text, "Answer: A");
  assert.deepEqual([real.calls.length, stand.calls.length], [3, 0]);
});

test("leaves out models that cannot read images or are too small, while another can", async () => {
  const [blind, small, able] = [saying("blind"), saying("small"), saying("able")];
  const models = catalogueOf(
    { tier: "fast", vendor: "a", model: blind },
    { tier: "fast", vendor: "b", model: small, images: true, contextTokens: 1_000 },
    { tier: "strong", vendor: "c", model: able, images: true },
  );
  assert.equal((await run(models, { hasImages: true, inputTokens: 900 })).text, "able");
  assert.equal((await run(models, { hasImages: true, inputTokens: 700 })).text, "small");
  assert.equal((await run(models, { inputTokens: 700 })).text, "blind");
  const none = catalogueOf({ tier: "fast", vendor: "a", model: blind });
  assert.equal((await run(none, { hasImages: true })).text, "blind");
});

test("ends the running calls in every phase when the caller aborts", async () => {
  const drafts = ["Answer: A", "Answer: B", "Answer: C"];
  for (const [kind, phase] of [
    ["prose", "draft"],
    ["prose", "analysis"],
    ["prose", "write"],
    ["closed", "judge"],
  ] as const) {
    for (const streamed of [true, false]) {
      const caller = new AbortController();
      const abortReason = new Error(`gone in ${phase}`);
      const late = held("late");
      const says = phased({
        analysis: "{}",
        draft: "Answer: A",
        [phase]: (asked: ModelCall) => collect(late.model.ask(asked)),
      });
      const { catalogue } = three(
        ["x", "x", "x"],
        [says, drafts[1] ?? "", phase === "draft" ? silent : (drafts[2] ?? "")],
      );
      const pending = run(catalogue, { level: "high", kind, streamed }, call({ signal: caller.signal }));
      const rejected = assert.rejects(pending, abortReason);
      while (late.model.calls.length === 0) await new Promise(setImmediate);
      caller.abort(abortReason);
      await rejected;
      assert.ok(late.isCancelled(), phase);
    }
  }
});

test("hedges a late stream with a model of another vendor", async () => {
  const late = held("late");
  const other = saying("in time");
  let spent = 0;
  const latency = { hedgeAfterMs: () => 5, maySpend: () => ++spent > 0 };
  const models = catalogueOf(
    { tier: "fast", vendor: "a", model: late.model, latency },
    { tier: "fast", vendor: "a", model: saying("same vendor") },
    { tier: "strong", vendor: "b", model: other },
  );
  const { text, steps } = await run(models, {});
  assert.equal(text, "in time");
  assert.deepEqual(steps, ["answer fast …", "hedge strong …", "hedge strong ok", "answer fast ok"]);
  assert.ok(late.isCancelled() && spent === 1);
});

test("numbers each step and names no model or vendor", async () => {
  const { catalogue } = three(["x", "x", "x"], [phased({ analysis: '{"gaps":["g"]}' }), "two", "three"]);
  const plan = choosePlan(catalogue, { ...CRITERIA, level: "high" }, new Steps());
  const { steps } = await complete(plan, call());
  const ids = steps.filter(({ outcome }) => !outcome).map(({ id }) => id);
  assert.deepEqual(
    ids,
    ids.map((_, i) => i + 1),
  );
  assert.deepEqual(new Set(steps.filter(({ outcome }) => outcome).map(({ id }) => id)), new Set(ids));
  assert.ok(steps.every(({ role }) => ["fast", "strong", "service"].includes(role)));
});
