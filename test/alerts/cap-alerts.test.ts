import assert from "node:assert/strict";
import { CapAction, CapFigure, CapPeriod } from "../../gen/chorus/v1/generation_pb.js";
import type { Pool } from "../../src/store/pool.ts";
import { adminOf } from "../helpers/admin.ts";
import { runCli } from "../helpers/cli.ts";
import { testDatabase } from "../helpers/database.ts";
import { postOf, recordIn } from "../helpers/exchange.ts";
import { OFFLINE, test } from "../helpers/fixtures.ts";
import { startService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { startReceiver } from "./receiver.ts";

const NOW = new Date("2026-11-25T10:00:00Z"); // a Wednesday
const MINUTE = 60_000;
const DAY = 86_400_000;
const after = (ms: number) => new Date(NOW.getTime() + ms);

interface Raised {
  type: string;
  data: Record<string, string | number>;
}

/** A workspace `w` with alerts on caps, under a clock. */
function openAlerts(pool: Pool) {
  let clock = NOW;
  const admin = adminOf(pool, { clock: () => clock.getTime() });
  const { alerts, caps } = admin;
  return {
    ...admin,
    set: (capShare: number, more: { capLimits?: string[]; workspace?: string } = {}) =>
      alerts.setAlerts({ workspace: "w", ...more, alerts: { webhookUrl: "https://example.com/", capShare, ...more } }),
    cap: (subject: string, figure: CapFigure, period: CapPeriod, amount: number, more: object = {}) =>
      caps.setCap({ workspace: "w", cap: { subject, figure, period, amount: String(amount), ...more } }),
    /** Writes what a subject has used in every period, as settlements do. */
    use: (subject: string, requests: number, credits: number, at = clock) =>
      pool.query(
        `insert into subject_periods values ('w', $1, $2, $3, array[0,0,0,0,0], array[0,0,0,0,0], $4)
         on conflict (workspace_id, subject) do update
           set at = excluded.at, requests = excluded.requests, spent_micro = excluded.spent_micro`,
        [subject, at, Array(5).fill(requests), Array(5).fill(credits * 1e6)],
      ),
    /** Compares as often as every 15 seconds, and takes the new events. */
    async compare(at: Date, rule = "w"): Promise<Raised[]> {
      const since = new Date(clock.getTime() - MINUTE);
      clock = at;
      await pool.query("select raise_cap_alerts($1, $2)", [since, at]);
      const rows = await pool.query<{ event: string }>(
        "delete from alert_deliveries where workspace_id = $1 returning event",
        [rule],
      );
      return rows.map(({ event }) => JSON.parse(event)).sort((a, b) => (a.data.subject < b.data.subject ? -1 : 1));
    },
  };
}

const subjects = (events: Raised[]) => events.map(({ data }) => `${data.subject} ${data.limit} ${data.value}`);

async function openWorkspace(pool: Pool, id = "w") {
  await pool.query("insert into workspaces (id, name) values ($1, $1)", [id]);
  await pool.query("insert into accounts (workspace_id, granted_micro) values ($1, 1000000000)", [id]);
  return openAlerts(pool);
}

test("raises an alert once for each subject, period and amount of a cap, with its figures", async ({ t }) => {
  const { pool } = await testDatabase(t);
  const { set, cap, use, compare } = await openWorkspace(pool);
  await set(0.8);
  await cap("user:*", CapFigure.CREDITS, CapPeriod.DAY, 5);
  await cap("user:vip", CapFigure.CREDITS, CapPeriod.DAY, 50);
  await cap("tag:team=*", CapFigure.REQUESTS, CapPeriod.TOTAL, 10, { action: CapAction.LOW });
  await cap("user:*", CapFigure.REQUESTS, CapPeriod.MINUTE, 1);
  await cap("user:*", CapFigure.CONCURRENT_REQUESTS, CapPeriod.UNSPECIFIED, 1);
  await use("user:a", 100, 3.999_999);
  await use("user:b", 100, 4);
  await use("user:vip", 100, 39);
  await use("tag:team=x", 8, 100);
  const [team, b, ...others] = await compare(after(15_000));
  assert.deepEqual(others, []);
  assert.deepEqual(b, {
    type: "alert.raised",
    timestamp: "2026-11-25T10:00:15Z",
    data: {
      ...{ alert: "cap_share", workspace_id: "w", workspace: "w", value: 0.8, threshold: 0.8, subject: "user:b" },
      ...{ limit: "user:credits_per_day", figure: "credits", period: "day", used: 4, amount: 5, action: "refuse" },
      resets_at: "2026-11-26T00:00:00Z",
    },
  });
  assert.deepEqual(
    [team?.data.subject, team?.data.limit, team?.data.action, team?.data.resets_at],
    ["tag:team=x", "tag.team:requests_total", "low", undefined],
  );
  await use("user:b", 110, 4.9, after(20_000));
  assert.deepEqual(await compare(after(30_000)), []);
  // Another amount is another threshold; the old one does not raise a second alert.
  await cap("user:*", CapFigure.CREDITS, CapPeriod.DAY, 6);
  assert.deepEqual(subjects(await compare(after(45_000))), ["user:b user:credits_per_day 0.816667"]);
  await cap("user:*", CapFigure.CREDITS, CapPeriod.DAY, 5);
  await use("user:vip", 100, 40, after(50_000));
  assert.deepEqual(subjects(await compare(after(MINUTE))), ["user:vip user:credits_per_day 0.8"]);
  // The next day is another period; all time is not.
  await use("user:b", 9, 4.5, after(DAY));
  await use("tag:team=x", 10, 1, after(DAY));
  assert.deepEqual(subjects(await compare(after(DAY + 15_000))), ["user:b user:credits_per_day 0.9"]);
  const kept = await pool.query("select distinct period from cap_alerts where start < $1 and period = 'day'", [
    after(DAY),
  ]);
  assert.equal(kept.length, 1);
  assert.deepEqual(await compare(after(4 * DAY)), []);
  await compare(after(4 * DAY));
  assert.deepEqual(await pool.query("select subject from cap_alerts"), [{ subject: "tag:team=x" }]);
});

test("raises alerts on caps again at a new address, and not when another threshold is set", async ({ t }) => {
  const { pool } = await testDatabase(t);
  const { alerts, set, cap, use, compare } = await openWorkspace(pool);
  await set(0.8);
  await cap("user:*", CapFigure.CREDITS, CapPeriod.DAY, 5);
  await use("user:b", 100, 4);
  const raised = ["user:b user:credits_per_day 0.8"];
  assert.deepEqual(subjects(await compare(after(15_000))), raised);
  const change = (webhookUrl: string) =>
    alerts.setAlerts({ workspace: "w", alerts: { webhookUrl, capShare: 0.8, failureShare: 0.5 } });
  await change("https://example.com/");
  assert.deepEqual(await compare(after(30_000)), []);
  await change("https://example.com/other");
  assert.deepEqual(subjects(await compare(after(45_000))), raised);
});

test("compares a cap that is set, or comes back into force, without a request", async ({ t }) => {
  const { pool } = await testDatabase(t);
  const { set, cap, caps, compare } = await openWorkspace(pool);
  const posts = (
    [
      ["a", "2026-11-25", 3],
      ["b", "2026-11-25", 1],
      ["c", "2026-11-24", 9],
      ["a:b", "2026-11-25", 9],
    ] as const
  ).map(([end_user, day, credits], i) =>
    postOf(`req_${i}`, {
      ...{ charge: credits * 1e6, created_at: new Date(`${day}T05:00:00Z`), end_user, outcome: "ok" },
      ...{ key_id: "key_1", tags: { team: end_user } },
    }),
  );
  await recordIn(pool, "w", posts);
  assert.deepEqual(await pool.query("select * from subject_periods"), []);
  await pool.query("update periods set at = $1, clock = $1", [NOW]);
  await set(1);
  assert.deepEqual(await compare(after(MINUTE)), []);
  await cap("user:*", CapFigure.CREDITS, CapPeriod.DAY, 3);
  assert.deepEqual(subjects(await compare(after(2 * MINUTE))), [
    "user:a user:credits_per_day 1",
    "user:a:b user:credits_per_day 3",
  ]);
  await cap("key:*", CapFigure.REQUESTS, CapPeriod.WEEK, 4);
  assert.deepEqual(subjects(await compare(after(2.5 * MINUTE))), ["key:key_1 key:requests_per_week 1"]);
  await cap("tag:team=c", CapFigure.CREDITS, CapPeriod.WEEK, 9);
  assert.deepEqual(subjects(await compare(after(3 * MINUTE))), ["tag:team=c tag.team:credits_per_week 1"]);
  // A lower cap for an hour, then one for good that a raise hides for an hour.
  const until = (ms: number) => ({ endsAt: { seconds: BigInt(after(ms).getTime() / 1_000) } });
  await cap("user:b", CapFigure.CREDITS, CapPeriod.DAY, 1, until(60 * MINUTE));
  assert.deepEqual(subjects(await compare(after(4 * MINUTE))), ["user:b user:credits_per_day 1"]);
  await cap("user:c", CapFigure.CREDITS, CapPeriod.MONTH, 100, until(60 * MINUTE));
  await cap("user:c", CapFigure.CREDITS, CapPeriod.MONTH, 9);
  assert.deepEqual(await compare(after(5 * MINUTE)), []);
  assert.deepEqual(subjects(await compare(after(61 * MINUTE))), ["user:c user:credits_per_month 1"]);
  // Without the cap of one user, the template is in force again.
  await cap("user:d", CapFigure.CREDITS, CapPeriod.TOTAL, 100);
  await pool.query(
    `insert into usage_subjects select workspace_id, unit, start, 'user:d', 1, 0, 0, 0, 0, 5000000
     from usage_subjects where subject = 'user:a' and unit = 'day'`,
  );
  await cap("user:*", CapFigure.CREDITS, CapPeriod.TOTAL, 5);
  await compare(after(62 * MINUTE));
  const { caps: listed } = await caps.listCaps({ workspace: "w", search: "user:d" });
  await caps.clearCap({ workspace: "w", id: listed[0]?.id ?? "" });
  assert.deepEqual(subjects(await compare(after(63 * MINUTE))), ["user:d user:credits_total 1"]);
  assert.deepEqual(await pool.query("select * from cap_changes"), []);
});

test("raises alerts on the chosen caps only, for operators on those of every workspace, and in turn", async ({ t }) => {
  const { pool } = await testDatabase(t);
  const { set, cap, use, compare, alerts } = await openWorkspace(pool);
  await set(0.5, { capLimits: ["user:requests_per_day"] });
  await cap("user:*", CapFigure.REQUESTS, CapPeriod.DAY, 2);
  await cap("user:*", CapFigure.CREDITS, CapPeriod.DAY, 2);
  await use("user:a", 1, 1);
  assert.deepEqual(subjects(await compare(after(15_000))), ["user:a user:requests_per_day 0.5"]);
  // The same thresholds with a new secret raise nothing again.
  await set(0.5, { capLimits: ["user:requests_per_day"] });
  assert.deepEqual(await compare(after(30_000)), []);

  await alerts.setAlerts({ alerts: { webhookUrl: "https://example.com/", capShare: 0.5 } });
  // With one event that waits for each, there is room for 199 more.
  await pool.query(
    `insert into alert_deliveries (workspace_id, id, event) values ('', 'evt_1', '{"data":{}}'), ('w', 'evt_2', '{}')`,
  );
  await pool.query("delete from subject_periods");
  await pool.query(
    `insert into subject_periods select 'w', 'user:' || i, $1, array[0,1,1,1,1], array[0,0,0,0,0], array[0,0,0,0,0],
       array[0,0,0,0,0] from generate_series(1, 250) i`,
    [after(40_000)],
  );
  const seen = new Set<string>();
  for (const [i, events] of [
    await compare(after(45_000), ""),
    await compare(after(46_000), ""),
    await compare(after(47_000), ""),
  ].entries()) {
    for (const { data } of events) if (data.subject) seen.add(`${data.subject}`);
    assert.equal(events.length, [200, 51, 0][i]);
  }
  assert.equal(seen.size, 250);
});

const ENV = { ...OFFLINE, CHORUS_ALERTS_MS: '{"compareMs":100,"retryMs":50}', CHORUS_WEBHOOK_HOSTS: "127.0.0.1" };

test("two replicas send one event for a user who reaches the share, and the command line sets it", async ({ t }) => {
  const { url: databaseUrl, pool } = await testDatabase(t);
  const receiver = await startReceiver(t);
  const service = await startService(t, { databaseUrl, env: ENV });
  await startService(t, { databaseUrl, env: ENV });
  const chorus = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCli(args, { DATA_DIR: service.dataDir });
    assert.deepEqual([code, stderr], [0, ""]);
    return stdout;
  };
  const shown = await chorus(
    ...["alerts", "set", "default", "--url", receiver.url, "--cap-share", "0.6"],
    ...["--cap", "user:requests_per_day", "--cap", "user:credits_total"],
  );
  assert.match(shown, /^share of a cap +0\.6 of user:requests_per_day, user:credits_total$/m);
  await adminOf(pool).caps.setCap({
    workspace: "default",
    cap: { subject: "user:*", figure: CapFigure.REQUESTS, period: CapPeriod.DAY, amount: "5" },
  });
  const ask = (user: string) => service.post("/v1/generate", { prompt: "What is 6 * 7?", user });
  await Promise.all([...Array(4).fill("a"), "b", "b"].map(ask));
  await until(() => receiver.received.length > 0);
  await ask("a");
  assert.equal((await ask("a")).status, 429);
  const compared = async () => (await pool.query("select compared_at::text as at from alert_clock"))[0]?.at;
  for (let i = 0; i < 4; i++) {
    const before = await compared();
    await until(async () => (await compared()) !== before);
  }
  const [first, ...others] = receiver.received;
  assert.equal(others.length, 0);
  const { subject, limit, amount } = (first?.event.data ?? {}) as Record<string, unknown>;
  assert.deepEqual([subject, limit, amount], ["user:a", "user:requests_per_day", 5]);
});

test("refuses malformed thresholds of caps with the field", async ({ database: { pool } }) => {
  const { alerts } = adminOf(pool);
  await pool.query("insert into workspaces (id, name) values ('malformed', 'malformed') on conflict do nothing");
  const limits = ["user", "user:credits", "user:credits_per_minute", "tag:credits_total", "tag.T:credits_total", "\0"];
  const cases: [alerts: object, field: string][] = [
    [{}, "alerts"],
    [{ capShare: 0 }, "alerts.cap_share"],
    [{ capShare: 1.01 }, "alerts.cap_share"],
    [{ capShare: Number.NaN }, "alerts.cap_share"],
    [{ capLimits: ["user:credits_per_day"], creditBelow: "1" }, "alerts.cap_limits"],
    [{ capShare: 1, capLimits: Array(33).fill("user:credits_per_day") }, "alerts.cap_limits"],
    ...limits.map((limit): [object, string] => [{ capShare: 1, capLimits: [limit] }, "alerts.cap_limits"]),
  ];
  for (const [given, field] of cases) {
    const request = { workspace: "malformed", alerts: { webhookUrl: "https://example.com/", ...given } };
    await assert.rejects(alerts.setAlerts(request), { kind: "invalid_request", field }, JSON.stringify(given));
  }
});
