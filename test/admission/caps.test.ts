import assert from "node:assert/strict";
import { CapAction, CapFigure, CapPeriod } from "../../gen/chorus/v1/generation_pb.js";
import { adminOf } from "../helpers/admin.ts";
import { testDatabase } from "../helpers/database.ts";
import { admitIn, settleIn } from "../helpers/exchange.ts";
import { test as base, OFFLINE } from "../helpers/fixtures.ts";
import { setLimits } from "../helpers/limits.ts";
import { startService, type TestService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";

const test = base.extend("env", { scope: "file" }, OFFLINE);

interface Answer {
  status: number;
  limit?: string;
  code?: string;
  retry_after_ms?: number;
  usage?: { credits: number };
  notices?: { code: string }[];
}

async function ask(service: TestService, body: object, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await service.post("/v1/generate", { prompt: "What is 6 * 7?", ...body }, headers);
  return { ...((await response.json()) as Answer), status: response.status };
}

/**
 * Sends a request, and again when it is refused for a second only: another replica has headroom, and has not returned
 * it within 100 ms, which takes longer on a busy machine.
 */
async function askPatiently(...of: Parameters<typeof ask>): Promise<Answer> {
  let answer: Answer = { status: 0 };
  await until(async () => {
    answer = await ask(...of);
    return answer.status === 200 || Number(answer.retry_after_ms) > 1_000;
  });
  return answer;
}

/** Sends requests of several callers at once to several replicas. @returns the answers */
function race(
  services: readonly TestService[],
  count: number,
  body: object,
  headers?: Record<string, string>,
  send = ask,
) {
  return Promise.all(
    Array.from({ length: count }, (_, i) => send(services[i % services.length] as TestService, body, headers)),
  );
}

const passed = (answers: readonly Answer[]) => answers.filter(({ status }) => status === 200);

/** The limits that refused the other answers. */
const limits = (answers: readonly Answer[]) => [
  ...new Set(answers.filter(({ status }) => status !== 200).map(({ status, limit }) => `${status} ${limit}`)),
];

test("exactly the tightest of nested caps passes over two replicas, and each refusal names it", async ({ t }) => {
  const { pool, url: databaseUrl } = await testDatabase(t);
  const services = [
    await startService(t, { databaseUrl, env: OFFLINE }),
    await startService(t, { databaseUrl, env: OFFLINE }),
  ];
  const [first] = services as [TestService];
  const { caps, keys } = adminOf(pool);
  const other = await keys.createKey({ workspace: "default" });
  const [key] = await pool.query<{ id: string }>("select id from api_keys where name = 'bootstrap'");
  const set = (subject: string, amount: number) =>
    caps.setCap({
      workspace: "default",
      cap: { subject, figure: CapFigure.REQUESTS, period: CapPeriod.DAY, amount: String(amount) },
    });
  await setLimits(pool, "default", [{ name: "requests_per_day", to: 40n }]);
  await set(`key:${key?.id}`, 30);
  await set("user:u", 20);
  await set("tag:team=a", 10);
  for (const service of services)
    await until(async () => (await ask(service, { prompt: "", user: "x", tags: { team: "a" } })).status === 422);

  // 64 callers on each step, of which exactly those pass that the tightest cap leaves.
  const steps: [body: object, headers: Record<string, string>, count: number, limit: string][] = [
    [{ user: "u", tags: { team: "a" } }, {}, 10, "429 tag.team:requests_per_day"],
    [{ user: "u", tags: { team: "b" } }, {}, 10, "429 user:requests_per_day"],
    [{ user: "v" }, {}, 10, "429 key:requests_per_day"],
    [{}, { "x-api-key": other.secret }, 10, "429 requests_per_day"],
  ];
  for (const [body, headers, count, limit] of steps) {
    const answers = await race(services, 64, body, headers, askPatiently);
    assert.equal(passed(answers).length, count, JSON.stringify(body));
    assert.deepEqual(limits(answers), [limit]);
    for (const { status, retry_after_ms } of answers) assert.ok(status === 200 || Number(retry_after_ms) > 0);
  }
  assert.equal((await ask(first, { user: "w" })).limit, "requests_per_day");
  await until(async () => (await pool.query("select * from subject_holds")).length === 0);
  assert.deepEqual(await pool.query("select * from check_books()"), []);
});

test("a budget of credits is never exceeded when requests race", async ({ service, database: { pool } }) => {
  const { caps } = adminOf(pool);
  const price = (await ask(service, {})).usage?.credits ?? 0;
  assert.ok(price > 0);
  // A hold is far above the price: requests that run leave no room for others, and are refused until they end.
  const budget = 0.2;
  await caps.setCap({
    workspace: "default",
    cap: { subject: "user:*", figure: CapFigure.CREDITS, period: CapPeriod.DAY, amount: String(budget) },
  });
  await until(async () => (await ask(service, { user: "probe", max_tokens: 32_000 })).status === 429);
  let spent = 0;
  let refusals: string[] = [];
  for (let round = 0; round < 40; round++) {
    const answers = await race([service], 32, { user: "racer", max_tokens: 100 });
    for (const { usage } of passed(answers)) spent += usage?.credits ?? 0;
    refusals = [...refusals, ...limits(answers)];
    assert.ok(spent <= budget + 1e-9, `${spent} of ${budget}`);
  }
  assert.ok(spent > 0);
  assert.deepEqual([...new Set(refusals)], ["429 user:credits_per_day"]);
  const [use] = await pool.query<{ spent: bigint }>(
    "select spent_micro[2] as spent from subject_periods where subject = 'user:racer'",
  );
  await until(async () => Math.abs(Number(use?.spent ?? 0n) / 1e6 - spent) < 1e-6 || (await posted(pool, spent)));
  assert.equal((await ask(service, { user: "another", max_tokens: 100 })).status, 200);
  await clearAll(pool);
});

async function posted(pool: Parameters<typeof adminOf>[0], spent: number): Promise<boolean> {
  const [use] = await pool.query<{ spent: bigint }>(
    "select spent_micro[2] as spent from subject_periods where subject = 'user:racer'",
  );
  return Math.abs(Number(use?.spent ?? 0n) / 1e6 - spent) < 1e-6;
}

// As in the issue 40095 of LiteLLM, where all of them pass: the requests are sent together, and nobody knows the user.
test("the first requests of an unknown user do not pass its default budget when they race", async ({ t }) => {
  const { pool, url: databaseUrl } = await testDatabase(t);
  const services = [
    await startService(t, { databaseUrl, env: OFFLINE }),
    await startService(t, { databaseUrl, env: OFFLINE }),
  ];
  const { caps } = adminOf(pool);
  const set = (figure: CapFigure, period: CapPeriod, amount: string) =>
    caps.setCap({ workspace: "default", cap: { subject: "user:*", figure, period, amount } });
  await set(CapFigure.CREDITS, CapPeriod.DAY, "0.000001");
  for (const service of services) await until(async () => (await ask(service, { user: "x" })).status === 429);
  const count = async (user: string) => passed(await race(services, 16, { user, max_tokens: 100 }));
  for (let round = 0; round < 20; round++) assert.deepEqual(await count(`poor_${round}`), []);

  // One request at a time, and then one request for all time.
  const price = (await ask(services[0] as TestService, { max_tokens: 100 })).usage?.credits ?? 0;
  await set(CapFigure.CREDITS, CapPeriod.DAY, String(price));
  for (let round = 0; round < 10; round++) assert.ok((await count(`rich_${round}`)).length <= 1, "beyond the budget");
  await set(CapFigure.CREDITS, CapPeriod.DAY, "1000");
  await set(CapFigure.REQUESTS, CapPeriod.TOTAL, "1");
  await until(async () => (await ask(services[0] as TestService, { user: "poor_0" })).status === 200);
  for (let round = 0; round < 20; round++) assert.equal((await count(`new_${round}`)).length, 1);
  assert.deepEqual(await pool.query("select * from check_books()"), []);
});

async function clearAll(pool: Parameters<typeof adminOf>[0]): Promise<void> {
  const { caps } = adminOf(pool);
  for (const { id } of (await caps.listCaps({ workspace: "default" })).caps)
    await caps.clearCap({ workspace: "default", id });
}

test("an exception comes before a template, and a cap that ends before one for good", async ({
  service,
  database: { pool },
}) => {
  const { caps } = adminOf(pool);
  const set = (subject: string, amount: number, more: object = {}) =>
    caps.setCap({
      workspace: "default",
      cap: { subject, figure: CapFigure.REQUESTS, period: CapPeriod.TOTAL, amount: String(amount), ...more },
    });
  await set("user:*", 1);
  const exception = await set("user:big", 3);
  await until(async () => (await ask(service, { user: "probe" })).status === 429);
  const count = async (user: string) => passed(await race([service], 8, { user })).length;
  assert.deepEqual([await count("one"), await count("big")], [1, 3]);

  // A raise for an hour, and its end.
  const soon = new Date(Date.now() + 3_600_000);
  await set("user:big", 5, { endsAt: { seconds: BigInt(Math.floor(soon.getTime() / 1_000)), nanos: 0 } });
  assert.equal(await count("big"), 2);
  await pool.query("update caps set ends_at = now() where ends_at is not null");
  const refused = await ask(service, { user: "big" });
  assert.deepEqual([refused.status, refused.limit, refused.retry_after_ms], [429, "user:requests_total", undefined]);

  // Setting it again changes it; without the exception, the template holds.
  assert.equal((await set("user:big", 6)).cap?.id, exception.cap?.id);
  assert.equal(await count("big"), 1);
  await caps.clearCap({ workspace: "default", id: exception.cap?.id ?? "" });
  assert.equal(await count("big"), 0);
  await clearAll(pool);
  await until(async () => (await ask(service, { user: "big" })).status === 200);
});

test("caps of credits for all time, of tokens and of concurrent requests", async ({ service, database: { pool } }) => {
  const { caps } = adminOf(pool);
  const set = (subject: string, figure: CapFigure, period: CapPeriod, amount: string) =>
    caps.setCap({ workspace: "default", cap: { subject, figure, period, amount } });
  await set("user:poor", CapFigure.CREDITS, CapPeriod.TOTAL, "0.001");
  await set("user:reader", CapFigure.INPUT_TOKENS, CapPeriod.MONTH, "5");
  await set("user:writer", CapFigure.OUTPUT_TOKENS, CapPeriod.WEEK, "1");
  await set("user:none", CapFigure.CONCURRENT_REQUESTS, CapPeriod.UNSPECIFIED, "0");
  await until(async () => (await ask(service, { user: "none" })).status === 429);
  const poor = await ask(service, { user: "poor", max_tokens: 100 });
  assert.deepEqual([poor.status, poor.code, poor.limit], [402, "insufficient_credit", "user:credits_total"]);
  const reader = await ask(service, { user: "reader" });
  assert.deepEqual(
    [reader.status, reader.limit, reader.retry_after_ms],
    [429, "user:input_tokens_per_month", undefined],
  );
  assert.equal((await ask(service, { user: "writer" })).status, 200);
  await until(async () => (await ask(service, { user: "writer" })).limit === "user:output_tokens_per_week");
  const none = await ask(service, { user: "none" });
  assert.deepEqual([none.limit, none.retry_after_ms], ["user:concurrent_requests", undefined]);

  const quotas = (await (await service.get("/v1/quotas?user=writer")).json()) as { caps: Record<string, unknown>[] };
  assert.deepEqual(
    quotas.caps.map(({ resets_at, used, remaining, ...cap }) => [cap, typeof resets_at, Number(used) > 0, remaining]),
    [
      [
        { subject: "user:writer", figure: "output_tokens", period: "week", limit: 1, action: "refuse" },
        ...["string", true, 0],
      ],
    ],
  );
  await clearAll(pool);
});

test("lists and quotas show what a running request uses that its replica has admitted by itself", async ({
  vendor,
  t,
}) => {
  const { pool, url: databaseUrl } = await testDatabase(t);
  const service = await startService(t, { databaseUrl, env: vendor.env });
  const { caps } = adminOf(pool);
  for (const [figure, period] of [
    [CapFigure.CONCURRENT_REQUESTS, CapPeriod.UNSPECIFIED],
    [CapFigure.CREDITS, CapPeriod.DAY],
  ] as const)
    await caps.setCap({ workspace: "default", cap: { subject: "user:u", figure, period, amount: "1000" } });
  const used = async () => {
    const quotas = (await (await service.get("/v1/quotas?user=u")).json()) as { caps: { used: number }[] };
    const listed = await caps.listCaps({ workspace: "default", withUse: true });
    const shown = quotas.caps.map(({ used }) => used);
    assert.deepEqual(
      listed.caps.map(({ used }) => Number(used)),
      shown,
    );
    return shown;
  };
  const reserved = () => pool.query("select from subject_grants where subject = 'user:u' and running > 0");
  await until(async () => {
    assert.equal((await ask(service, { user: "u" })).status, 200);
    return (await reserved()).length > 0;
  });
  await until(async () => (await used())[0] === 0);
  const [, spent = 0] = await used();

  const gate = Promise.withResolvers<void>();
  vendor.always(async () => {
    await gate.promise;
    return {};
  });
  const answer = ask(service, { user: "u" });
  await until(async () => (await used())[0] === 1);
  assert.ok(((await used())[1] ?? 0) > spent, "the hold of the request");
  // No statement has admitted it.
  assert.deepEqual(await pool.query("select * from subject_holds"), []);
  gate.resolve();
  assert.equal((await answer).status, 200);
  await until(async () => (await used())[0] === 0);
});

test("a used-up budget can lower the effort instead of refusing", async ({ service, database: { pool } }) => {
  const { caps } = adminOf(pool);
  const cap = { subject: "tag:team=x", figure: CapFigure.REQUESTS, period: CapPeriod.DAY };
  await caps.setCap({ workspace: "default", cap: { ...cap, amount: "1", action: CapAction.LOW } });
  await caps.setCap({ workspace: "default", cap: { ...cap, amount: "2" } });
  const body = { effort: "high", tags: { team: "x" } };
  let answers: Answer[] = [];
  await until(async () => {
    answers = [...answers, await ask(service, body)];
    return answers.at(-1)?.status === 429;
  });
  const [lowered, refused] = answers.slice(-2);
  assert.equal(refused?.limit, "tag.team:requests_per_day");
  assert.ok(lowered?.notices?.some(({ code }) => code === "effort_lowered"));
  const rows = await pool.query<{ level: string; effort: string }>(
    'select level, effort from generations where tags @> \'{"team": "x"}\' order by created_at desc limit 1',
  );
  assert.deepEqual(rows, [{ level: "low", effort: "high" }]);
  await clearAll(pool);
});

test("check_books reports what exceeds a cap, and a charge that a subject does not have", async ({ t }) => {
  const { pool } = await testDatabase(t);
  await pool.query("insert into workspaces (id, name) values ('ws_1', 'one')");
  await pool.query(
    `with a as (insert into accounts (workspace_id, granted_micro) values ('ws_1', 1000)),
       b as (insert into bookings (workspace_id, reference, kind, amount_micro, at)
         values ('ws_1', 'g', 'grant', 1000, now())),
       c as (insert into caps values ('ws_1', 'cap_1', 'user:u', 'credits', 'day', 100, 'refuse', null, now()))
     insert into ledger (workspace_id, at, kind, reference, granted_micro, purchased_micro)
     values ('ws_1', now(), 'grant', 'g', 1000, 0)`,
  );
  const subjects = ["user:u"];
  assert.equal(await admitIn(pool, "ws_1", "req_1", { hold: 60, subjects }), undefined);
  // The hold of the first one is in the way.
  const refusal = await admitIn(pool, "ws_1", "req_2", { hold: 60, subjects });
  assert.deepEqual(refusal, { refusal: "rate_limited", limit: "user:credits_per_day", retry_ms: 1_000 });
  await settleIn(pool, "ws_1", "req_1", { charge: 50, end_user: "u" });
  assert.equal(await admitIn(pool, "ws_1", "req_3", { hold: 50, subjects }), undefined);
  await settleIn(pool, "ws_1", "req_3", { charge: 50, end_user: "u" });
  const reached = await admitIn(pool, "ws_1", "req_4", { hold: 1, subjects });
  assert.equal(reached?.limit, "user:credits_per_day");
  assert.ok(Number(reached?.retry_ms) > 1_000 || new Date().getUTCHours() === 23);
  assert.deepEqual(await pool.query("select * from check_books()"), []);

  const found = async () => {
    const rows = await pool.query<{ check_name: string; subject: string }>("select * from check_books()");
    return rows.map(({ check_name, subject }) => `${check_name}: ${subject}`);
  };
  // Counters that were dropped are found again in the tables of usage.
  await pool.query("delete from subject_periods");
  assert.equal((await admitIn(pool, "ws_1", "req_5", { hold: 1, subjects }))?.limit, "user:credits_per_day");
  assert.equal(await admitIn(pool, "ws_1", "req_6", { hold: 0, subjects }), undefined);

  await pool.query("update caps set amount = 99");
  assert.deepEqual(await found(), ["cap: user:u credits day"]);
  await pool.query("update caps set amount = 100");
  await pool.query("update subject_periods set spent_micro = '{1,2,3,4,5}'");
  assert.deepEqual(await found(), ["spent by subject = usage: user:u"]);
});

test("a budget lowers the effort only when it is used up", async ({ service, database: { pool } }) => {
  const { caps } = adminOf(pool);
  const cap = { subject: "user:frugal", figure: CapFigure.CREDITS, period: CapPeriod.DAY, action: CapAction.LOW };
  const body = { effort: "high", user: "frugal", max_tokens: undefined };
  const lowers = async () => (await ask(service, body)).notices?.some(({ code }) => code === "effort_lowered");
  // Less than the highest possible cost of a request, which is 12.8 credits and its input.
  await caps.setCap({ workspace: "default", cap: { ...cap, amount: "5" } });
  for (let i = 0; i < 3; i++) assert.equal(await lowers(), false);
  await caps.setCap({ workspace: "default", cap: { ...cap, amount: "0.001" } });
  await until(lowers);
  await clearAll(pool);
});

test("check_books expects what a raise has allowed in the period in which it ends", async ({ t }) => {
  const { pool } = await testDatabase(t);
  const day = (n: number, hours: number) => new Date(Date.UTC(2026, 10, n, hours));
  await pool.query("insert into accounts (workspace_id, granted_micro) values ('ws_1', 1000)");
  await pool.query(
    `insert into caps values ('ws_1', 'cap_1', 'user:*', 'credits', 'day', 100, 'refuse', null, $1),
       ('ws_1', 'cap_2', 'user:*', 'credits', 'day', 200, 'refuse', $2, $1)`,
    [day(9, 0), day(11, 12)],
  );
  const spend = async (request: string, charge: number, from: Date, to: Date) => {
    assert.equal(await admitIn(pool, "ws_1", request, { hold: charge, subjects: ["user:u"] }, from), undefined);
    assert.equal(await settleIn(pool, "ws_1", request, { charge, end_user: "u", created_at: from }, to), charge);
  };
  const found = async () => (await pool.query("select * from check_books() where check_name = 'cap'")).length;
  // On the day before, and until it ends.
  await spend("req_1", 150, day(10, 1), day(10, 2));
  await spend("req_2", 150, day(11, 1), day(11, 2));
  await pool.query("update periods set at = $1", [day(11, 13)]);
  assert.equal(await found(), 0);

  // A request that was admitted under it, and has ended on the next day.
  await pool.query("update caps set ends_at = $1 where ends_at is not null", [day(12, 0)]);
  await spend("req_3", 45, day(11, 23), day(12, 1));
  await pool.query("update caps set amount = 40 where ends_at is null");
  assert.equal(await found(), 0);

  // A raise that ended before does not excuse anything.
  await pool.query("update caps set ends_at = $1 where ends_at is not null", [day(11, 1)]);
  assert.equal(await found(), 1);
});

test("refuses a malformed cap, naming the field", async ({ database: { pool } }) => {
  const { caps } = adminOf(pool);
  const good = { subject: "user:u", figure: CapFigure.REQUESTS, period: CapPeriod.DAY, amount: "1" };
  const cases: [cap: object, field: string][] = [
    [{ ...good, subject: "" }, "cap.subject"],
    [{ ...good, subject: "user:" }, "cap.subject"],
    [{ ...good, subject: "team:a" }, "cap.subject"],
    [{ ...good, subject: "tag:Team=a" }, "cap.subject"],
    [{ ...good, subject: "tag:team" }, "cap.subject"],
    [{ ...good, subject: "key:key_unknown" }, "cap.subject"],
    [{ ...good, subject: `user:${"u".repeat(129)}` }, "cap.subject"],
    [{ ...good, figure: 0 }, "cap.figure"],
    [{ ...good, figure: 99 }, "cap.figure"],
    [{ ...good, period: 0 }, "cap.period"],
    [{ ...good, figure: CapFigure.CONCURRENT_REQUESTS }, "cap.period"],
    [{ ...good, amount: "1.5" }, "cap.amount"],
    [{ ...good, amount: "-1" }, "cap.amount"],
    [{ ...good, amount: "" }, "cap.amount"],
    [{ ...good, figure: CapFigure.CREDITS, amount: "1.0000001" }, "cap.amount"],
    [{ ...good, action: 9 }, "cap.action"],
    [{ ...good, endsAt: { seconds: 1n, nanos: 0 } }, "cap.until"],
  ];
  for (const [cap, field] of cases)
    await assert.rejects(async () => caps.setCap({ workspace: "default", cap }), { field }, JSON.stringify(cap, text));
  await assert.rejects(async () => caps.clearCap({ workspace: "default", id: "cap_none" }), { field: "id" });
  assert.deepEqual((await caps.listCaps({ workspace: "default" })).caps, []);
});

const text = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
