import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { CapFigure, CapPeriod } from "../../gen/chorus/v1/generation_pb.js";
import { adminOf } from "../helpers/admin.ts";
import { checkBooks, makeAccount, makeFolder } from "../helpers/books.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { startOwnService, type TestService } from "../helpers/service.ts";
import { startVendor } from "../helpers/vendors.ts";

/** Requests for which a cap suffices, and ten times as many that come. */
const FIT = 60;
const CALLERS = 12;

/** A subject with a cap on all credits it may ever use, and the body of its requests. */
const SUBJECTS = [
  { workspace: "ws_user", subject: "user:*", of: { user: "u-1" }, name: "user", found: "user:u-1" },
  { workspace: "ws_tag", subject: "tag:team=a", of: { tags: { team: "a" } }, name: "tag.team", found: "tag:team=a" },
] as const;

interface Answer {
  code?: string;
  limit?: string;
  usage?: { credits: number };
}

test(`answers exactly ${FIT} of ${10 * FIT} requests at a user's and a tag's cap while replicas die`, async (t) => {
  const { pool, url } = await testDatabase(t);
  // Longer than max_tokens, so each answer costs its whole hold.
  const vendor = await startVendor("openai", { text: "again and again ".repeat(40), headersMs: 300 });
  t.onTestFinished(() => vendor.close());
  const replicas = new Replicas(t, url, vendor.env);
  await replicas.start();
  const { caps } = adminOf(pool);
  const prices: number[] = [];
  for (const { workspace, subject } of SUBJECTS) {
    await makeAccount(pool, workspace, { secret: workspace, granted: 10n ** 9n });
    const first = await send(replicas.any(), workspace, "first", {});
    prices.push(Math.round((first.body.usage?.credits ?? 0) * 1e6));
    const amount = (((prices.at(-1) ?? 0) * (FIT + 1) - 1) / 1e6).toFixed(6);
    const cap = { subject, figure: CapFigure.CREDITS, period: CapPeriod.TOTAL, amount };
    await caps.setCap({ workspace, cap });
  }
  await sleep(1_000);

  const faults = replicas.disturb();
  const seen = await Promise.all(
    SUBJECTS.map(({ workspace, of }) =>
      inTurns(CALLERS, 10 * FIT, (i) => retry(() => replicas.any(), workspace, `key-${i}`, of)),
    ),
  );
  await faults;
  for (const [i, { workspace, name, found }] of SUBJECTS.entries()) {
    const counts = Object.fromEntries(Map.groupBy(seen[i] ?? [], (one) => one));
    const count = (what: string) => counts[what]?.length ?? 0;
    assert.deepEqual([count("200"), count(`402 ${name}:credits_total`)], [FIT, 9 * FIT], JSON.stringify(counts));
    const rows = await pool.query<{ charged: bigint; spent: bigint }>(
      `select (select sum(credits_micro)::bigint from generations where workspace_id = $1
         and (end_user is not null or tags is not null)) as charged, spent_micro[5] as spent
       from subject_periods where workspace_id = $1 and subject = $2`,
      [workspace, found],
    );
    const all = BigInt(FIT * (prices[i] ?? 0));
    assert.deepEqual(rows, [{ charged: all, spent: all }]);
  }
  await t.annotate(`faults: ${JSON.stringify(replicas.faults)}`);
  assert.deepEqual(await pool.query("select * from subject_holds"), []);
  await checkBooks(pool);
});

/** Three replicas, of which one dies and starts again, one pauses shortly, and one until it is declared dead. */
class Replicas {
  readonly faults: Record<string, number> = {};
  readonly #t: Lifetime;
  readonly #url: string;
  readonly #env: Record<string, string>;
  readonly #slots: { dataDir: string; service: TestService; isOpen: boolean }[] = [];

  constructor(t: Lifetime, url: string, env: Record<string, string>) {
    this.#t = t;
    this.#url = url;
    this.#env = env;
  }

  async start(): Promise<void> {
    for (let i = 0; i < 3; i++) {
      const dataDir = await makeFolder(this.#t);
      this.#slots.push({ dataDir, service: await this.#startIn(dataDir), isOpen: true });
    }
  }

  /** One to which a load balancer would send a request: any, if it has no other. */
  any(): TestService {
    const open = this.#slots.filter(({ isOpen }) => isOpen);
    const slots = open.length > 0 ? open : this.#slots;
    const slot = slots[Math.floor(Math.random() * slots.length)];
    assert.ok(slot);
    return slot.service;
  }

  async disturb(): Promise<void> {
    const [dying, pausing, sleeping] = this.#slots as [Slot, Slot, Slot];
    const pause = async (slot: Slot, ms: number, what: string) => {
      this.#note(what);
      slot.service.process.kill("SIGSTOP");
      // The load balancer notices it later.
      await sleep(300);
      slot.isOpen = false;
      await sleep(ms);
      slot.service.process.kill("SIGCONT");
      slot.isOpen = true;
    };
    const die = async () => {
      for (let i = 0; i < 3; i++) {
        await sleep(700);
        this.#note("SIGKILL");
        await dying.service.stop("SIGKILL");
        dying.isOpen = false;
        dying.service = await this.#startIn(dying.dataDir);
        dying.isOpen = true;
      }
    };
    await Promise.all([
      die(),
      sleep(500).then(() => pause(pausing, 2_000, "pause")),
      sleep(900).then(() => pause(sleeping, 19_000, "long pause")),
    ]);
  }

  #note(what: string): void {
    this.faults[what] = (this.faults[what] ?? 0) + 1;
  }

  #startIn(dataDir: string): Promise<TestService> {
    const env = { ...this.#env, LOG_LEVEL: "error" };
    return startOwnService(this.#t, { databaseUrl: this.#url, dataDir, env });
  }
}

interface Slot {
  dataDir: string;
  service: TestService;
  isOpen: boolean;
}

/** Calls `run` with 0 to `count` - 1, `callers` at a time. */
async function inTurns<T>(callers: number, count: number, run: (i: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const caller = async () => {
    while (next < count) results.push(await run(next++));
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return results;
}

/** Sends a request again until it is answered, or refused for good. @returns status, and limit if it is refused */
async function retry(service: () => TestService, secret: string, key: string, of: object): Promise<string> {
  for (const until = Date.now() + 120_000; ; await sleep(150)) {
    const answer = await send(service(), secret, key, of).catch(() => undefined);
    if (answer?.status === 200) return "200";
    if (answer && ![409, 429, 503].includes(answer.status))
      return `${answer.status} ${answer.body.limit ?? answer.body.code}`;
    if (Date.now() > until) return `timed out: ${answer?.status} ${answer?.body.limit ?? answer?.body.code}`;
  }
}

async function send(service: TestService, secret: string, key: string, of: object) {
  const response = await fetch(`${service.url}/v1/generate`, {
    method: "POST",
    headers: { "x-api-key": secret, "idempotency-key": key, "content-type": "application/json" },
    body: JSON.stringify({ prompt: "Say it.", max_tokens: 20, ...of }),
    signal: AbortSignal.timeout(5_000),
  });
  return { status: response.status, body: (await response.json()) as Answer };
}
