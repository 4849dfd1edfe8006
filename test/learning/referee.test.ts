import assert from "node:assert/strict";
import { test } from "vitest";
import { DailyBudget } from "../../src/learning/budget.ts";
import { gradePrompt, verdictOf } from "../../src/learning/grade-prompt.ts";
import { GRADE_ENDS, refereeProblem } from "../../src/learning/referee.ts";
import type { Member } from "../../src/models/catalogue.ts";
import { openPool } from "../../src/store/pool.ts";
import { png } from "../engine/attachments/files.ts";
import { testDatabase } from "../helpers/database.ts";
import { PRICE, startPanel } from "../helpers/panel.ts";
import { until } from "../helpers/until.ts";
import type { Reply, VendorCall } from "../helpers/vendors.ts";
import { graded, type Panel } from "./grading.ts";

const QUESTION = "What is the capital of France? (a) Lyon (b) Paris (c) Rome";
const referee = (usdPerDay: number, share = 1) => ({
  CHORUS_LEARNING: "referee",
  CHORUS_REFEREE: JSON.stringify({ model: "member-google-strong", share, usdPerDay }),
});

const isGrading = ({ body }: VendorCall) => body.includes("You grade answers");

/** Each vendor has another answer. Google's grades as `grade` says. */
function script(panel: Panel, grade: (call: VendorCall) => Reply | Promise<Reply>): void {
  for (const [kind, text] of [
    ["openai", "Answer: (a)"],
    ["anthropic", "Answer: (b)"],
    ["google", "Answer: (c)"],
  ] as const) {
    panel.vendors[kind].always((call) => (isGrading(call) ? grade(call) : { text }));
  }
}

/** The verdict for the answer `b`, wherever it is. */
function right({ body }: VendorCall): Reply {
  const letter = /([A-H]): \\+"b\\+"/.exec(body)?.[1] ?? assert.fail(body);
  return { text: `Paris is the capital.\nVerdict: ${letter}` };
}

const ask = (panel: Panel, on = panel.service) => panel.ask({ prompt: QUESTION, effort: "medium" }, on);
const counts = async (panel: Panel, on = panel.service): Promise<Record<string, number>> =>
  Object.fromEntries(
    [
      ...(await (await fetch(`${on.rpcUrl}/metrics`)).text()).matchAll(/^chorus_referee\w+\{.*?"(\w+)".*\} (\d+)$/gm),
    ].map(([, name, n]) => [name, Number(n)]),
  );

const duels = async (panel: Panel) => {
  const rows = await panel.pool.query<{ line: string }>(
    `select concat_ws(' ', one, other, ability, wins, losses) as line from model_duels
     where wins + losses > 0 order by 1`,
  );
  return rows.map(({ line }) => line);
};

/** What callers were charged, what their answers cost, and what the referee has spent, in USD. */
async function books(panel: Panel) {
  const [row] = await panel.pool.query<{ charged: bigint; price: bigint; differences: bigint; usd: number }>(
    `select (select -sum(granted_micro + purchased_micro) from ledger where kind <> 'grant')::bigint as charged,
       (select sum(credits_micro) from generations)::bigint as price,
       (select count(*) from check_books(null)) as differences,
       (select coalesce(sum(nano_usd), 0)::float8 / 1e9 from referee_days) as usd`,
  );
  return row ?? assert.fail();
}

/** What a verdict of `right` costs: ten tokens in and five out, as the vendor reports. */
const VERDICT_USD = (10 * PRICE.input + 5 * PRICE.output) / 1e6;

async function tables(panel: Panel): Promise<string> {
  const names = await panel.pool.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public'",
  );
  const rows = await Promise.all(
    names.map(({ name }) => panel.pool.query<{ row: string }>(`select t::text as row from "${name}" t`)),
  );
  return rows
    .flat()
    .map(({ row }) => row)
    .join("\n");
}

test("grades drafts that disagree at no charge, stores no text, and gives way to an outcome", async (t) => {
  const panel = await startPanel(t, referee(10));
  script(panel, right);
  const { id, usage } = await ask(panel);
  const credits = Number(usage.credits);
  await until(async () => (await graded(panel)) > 0);
  assert.deepEqual(await duels(panel), [
    "member-anthropic-fast member-openai-fast knowledge 1 0",
    "member-anthropic-fast member-openai-strong knowledge 1 0",
  ]);
  // The caller pays for the request only, and the budget of the day has the price of one call.
  const { charged, price, differences, usd } = await books(panel);
  assert.equal(charged, price);
  assert.equal(price, BigInt(Math.round(credits * 1e6)));
  assert.equal(differences, 0n);
  assert.ok(Math.abs(usd - VERDICT_USD) < 1e-9, `${usd}`);
  assert.doesNotMatch(await tables(panel), /paris|lyon|verdict/i);
  assert.doesNotMatch(panel.service.output(), /paris|lyon|verdict/i);

  await panel.pool.query("select record_grades(workspace_id, id, created_at, '{}') from outcomes");
  assert.equal((await duels(panel)).length, 2, "graded once");
  assert.equal((await panel.service.post(`/v1/generations/${id}/outcome`, { expected: "c" })).status, 200);
  assert.deepEqual(await duels(panel), []);
});

test("shows the referee files, and grades no request of which it would not see a part", async (t) => {
  const sees = { images: true };
  const panel = await startPanel(t, referee(10), { openai: sees, anthropic: sees, google: sees });
  script(panel, right);
  const note = { name: "a.txt", media_type: "text/plain", data: Buffer.from("They live in Tarn.").toString("base64") };
  const image = { name: "a.png", media_type: "image/png", data: Buffer.from(png(9, 9)).toString("base64") };
  const call = { id: "call_1", name: "look", arguments: {} };
  const asked = { role: "user", content: QUESTION };
  for (const body of [
    { prompt: QUESTION, attachments: [image] },
    {
      messages: [
        asked,
        { role: "assistant", tool_calls: [call] },
        { role: "tool", tool_call_id: "call_1", content: "b" },
      ],
    },
    { prompt: QUESTION, attachments: [note] },
  ])
    await panel.ask({ ...body, effort: "medium" });
  await until(async () => (await counts(panel)).graded === 1);
  assert.equal((await counts(panel)).dropped, 2);
  const [grading, ...more] = panel.vendors.google.calls.filter(isGrading);
  assert.equal(more.length, 0);
  assert.match(grading?.body ?? "", /They live in Tarn\..*What is the capital/);
});

test("answers at once while the referee hangs, drops what does not fit, and stops cleanly", async (t) => {
  const panel = await startPanel(t, referee(1_000));
  script(panel, () => ({ end: "silent" }));
  await ask(panel);
  const hangs = () => panel.vendors.google.calls.filter(isGrading);
  await until(() => hangs().length === 1);
  // 32 wait.
  for (let n = 0; n < 35; n++) await ask(panel);
  assert.equal((await counts(panel)).dropped, 3);
  assert.equal(hangs().length, 1, "one call at a time");
  assert.equal(await panel.service.stop(), 0);
  assert.equal(await hangs()[0]?.ended, "aborted");
  assert.equal(await graded(panel), 0);
});

test("does not grade above the budget, below the share, and by an unclear verdict", async (t) => {
  const panel = await startPanel(t, referee(0.0001));
  script(panel, right);
  await ask(panel);
  await until(async () => (await counts(panel)).over_budget === 1);
  assert.equal(panel.vendors.google.calls.filter(isGrading).length, 0);
  const other = await panel.start(referee(10, 0));
  await panel.ask({ prompt: QUESTION, effort: "medium" }, other);
  assert.equal(await other.stop(), 0);
  assert.equal(panel.vendors.google.calls.filter(isGrading).length, 0);
});

test("spends nothing of the budget on calls that are not sent while the referee is down", async (t) => {
  const panel = await startPanel(t, referee(10));
  script(panel, () => ({ status: 401, error: { message: "no" } }));
  for (let n = 1; n <= 7; n++) {
    await ask(panel);
    await until(async () => (await counts(panel)).failed === n);
  }
  assert.equal(panel.vendors.google.calls.filter(isGrading).length, 5, "its circuit is open");
  assert.equal((await books(panel)).usd, 0);
});

test("keeps the budget of a day exactly over replicas", async (t) => {
  const { url, pool } = await testDatabase(t);
  const replicas = [openPool(url, { max: 4 }), openPool(url, { max: 4 })];
  t.onTestFinished(async () => {
    await Promise.all(replicas.map((replica) => replica.end()));
  });
  const budgets = replicas.map((replica) => new DailyBudget(replica, 1));
  const reserved = await Promise.all(
    Array.from({ length: 40 }, (_, n) => (budgets[n % 2] ?? assert.fail()).reserve(0.09)),
  );
  const days = reserved.filter((day) => day !== undefined);
  assert.equal(days.length, 11);
  const spent = async () => (await pool.query<{ n: bigint }>("select nano_usd as n from referee_days"))[0]?.n;
  assert.equal(await spent(), 990_000_000n);
  await Promise.all(days.map((day, n) => (budgets[n % 2] ?? assert.fail()).correct(day, 0.09, 0.01)));
  assert.equal(await spent(), 110_000_000n);
  assert.equal(await budgets[0]?.reserve(0.9), undefined);
  assert.ok(await budgets[1]?.reserve(0.89));
  assert.equal(await spent(), 1_000_000_000n);
});

test("grades on several services at once within one budget, and charges callers nothing", async (t) => {
  // The highest price of a call is $0.33, so there is room for two at a time.
  const panel = await startPanel(t, referee(0.7));
  const services = [panel.service, await panel.start(), await panel.start()];
  const gate = Promise.withResolvers<void>();
  script(panel, async (call) => {
    await gate.promise;
    return right(call);
  });
  const total = async (end: string) => {
    const all = await Promise.all(services.map((on) => counts(panel, on)));
    return all.reduce((sum, each) => sum + (each[end] ?? 0), 0);
  };
  const grading = () => panel.vendors.google.calls.filter(isGrading).length;
  await Promise.all(services.map((on) => ask(panel, on)));
  await until(async () => (await total("over_budget")) === 1 && grading() === 2);
  const reserved = (await books(panel)).usd;
  assert.ok(reserved > 0.6 && reserved < 0.7, `${reserved}`);
  gate.resolve();
  await until(async () => (await total("graded")) === 2);

  const asked = 6;
  await Promise.all(services.flatMap((on) => Array.from({ length: asked }, () => ask(panel, on))));
  const all = services.length * (1 + asked);
  const ends = async () => {
    const entries = GRADE_ENDS.map(async (end) => [end, await total(end)] as const);
    return Object.fromEntries(await Promise.all(entries)) as Record<(typeof GRADE_ENDS)[number], number>;
  };
  await until(async () => Object.values(await ends()).reduce((sum, n) => sum + n) === all);
  const { graded: _, over_budget: __, ...others } = await ends();
  assert.deepEqual(others, { unclear: 0, failed: 0, dropped: 0 });
  const verdicts = await total("graded");
  assert.ok(verdicts >= 4, `${verdicts}`);
  assert.equal(grading(), verdicts, "no call without a reservation");
  assert.deepEqual(await duels(panel), [
    `member-anthropic-fast member-openai-fast knowledge ${verdicts} 0`,
    `member-anthropic-fast member-openai-strong knowledge ${verdicts} 0`,
  ]);
  assert.deepEqual(await Promise.all(services.map((on) => on.stop())), [0, 0, 0]);
  const { charged, price, differences, usd } = await books(panel);
  assert.ok(Math.abs(usd - verdicts * VERDICT_USD) < 1e-9, `${usd}`);
  assert.deepEqual([charged, differences], [price, 0n]);
  const [{ n } = assert.fail()] = await panel.pool.query<{ n: bigint }>("select count(*) as n from generations");
  assert.equal(n, BigInt(all), "a verdict is no request");
});

test("puts answers in random order between marks, and reads the verdict", () => {
  const asked = { system: [], messages: [{ role: "user", text: QUESTION }] } as const;
  const made = (random: number) => {
    let n = 0;
    return gradePrompt(asked, ["a", "b", "a"], () => (n++ === 0 ? random : 0.5));
  };
  assert.deepEqual(made(0.1)?.answers, ["a", "b"]);
  assert.deepEqual(made(0.9)?.answers, ["b", "a"]);
  assert.equal(gradePrompt(asked, ["a", "a"], Math.random), undefined);
  const long = { system: ["x".repeat(12_000)], messages: asked.messages };
  assert.equal(gradePrompt(long, ["a", "b"], Math.random), undefined);
  assert.equal(verdictOf("I think A.\nVerdict: B", ["a", "b"]), "b");
  assert.equal(verdictOf("**Verdict:** none", ["a", "b"]), null);
  for (const text of ["", "B", "Verdict: ?", "Verdict: F"]) assert.equal(verdictOf(text, ["a", "b"]), undefined);
});

test("takes only a referee of a vendor with a price than which no model is known to be better", async (t) => {
  const member = (name: string, more: Partial<Member>): Member => ({
    ...{ name, vendor: name, tier: "fast", images: false, fingerprint: name, model: undefined as never },
    ...more,
  });
  const price = { input: 1, output: 2 };
  const problem = (...members: Member[]) => refereeProblem(members, "a");
  assert.match(problem(member("b", { price }))?.problem ?? "", /no model "a" of a vendor/);
  assert.match(problem(member("a", {}))?.problem ?? "", /no price/);
  const stated = [member("a", { price, accuracy: 0.7 }), member("b", { accuracy: { maths: 0.8, knowledge: 0.6 } })];
  assert.deepEqual(problem(...stated), {
    isCertain: true,
    problem: 'the model "b" is more accurate than "a" in maths',
  });
  assert.equal(problem(member("a", { price }), member("b", {}))?.isCertain, false);
  assert.equal(problem(member("a", { price, accuracy: 0.7 }), member("b", { accuracy: 0.7 })), undefined);

  const env = referee(1);
  const accurate = { openai: { accuracy: 0.9 }, anthropic: { accuracy: 0.9 }, google: { accuracy: 0.8 } };
  await assert.rejects(startPanel(t, env, accurate), /CHORUS_REFEREE: the model "member-\w+-\w+" is more accurate/);
});
