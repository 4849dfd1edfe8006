import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type Client, createClient } from "@connectrpc/connect";
import { test } from "vitest";
import { ActivityService, RunTextState } from "../../gen/chorus/admin/v1/activity_pb.js";
import { KeyService } from "../../gen/chorus/admin/v1/keys_pb.js";
import { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { Role } from "../../gen/chorus/v1/generation_pb.js";
import { newGenerationId, timeOfGeneration } from "../../src/contract/generation-id.ts";
import { writeText } from "../../src/runs/text.ts";
import { TextKeys } from "../../src/runs/text-keys.ts";
import { createTextStore } from "../../src/runs/text-store.ts";
import { arrangePartitions } from "../../src/store/partitions.ts";
import type { Pool } from "../../src/store/pool.ts";
import { adminOf } from "../helpers/admin.ts";
import { testDatabase } from "../helpers/database.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { startPanel } from "../helpers/panel.ts";
import { rpcFailure, transportWith } from "../helpers/rpc.ts";
import type { TestService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { createWorkspace } from "../helpers/workspaces.ts";

const DAY = 86_400_000;
const KEY = randomBytes(32).toString("base64");
const NEXT = randomBytes(32).toString("base64");
const QUESTION = "Zanzibar: what is the capital of France? (a) Lyon (b) Paris (c) Rome";
const NOTHING = {
  conversation: { system: [], messages: [], continues: false },
  ...{ files: [], drafts: [], answer: "", calls: [] },
};
/** What must be nowhere in the clear. */
const WORDS = /Zanzibar|Quagga/;

/** A panel whose drafts and answers have a word of their own. */
async function start(t: Lifetime, env: Record<string, string> = { CHORUS_RUN_TEXT_KEY: KEY }) {
  const panel = await startPanel(t, { LOG_LEVEL: "trace", ...env });
  panel.script({
    openai: { draft: { text: "Quagga one. Answer: (b) Paris" } },
    anthropic: { draft: { text: "Quagga two. The answer is (c)." } },
    google: { draft: { text: "Quagga three. Answer: b" } },
  });
  return { panel, ...(await doors(panel.service)) };
}

async function doors({ rpcUrl, operatorToken }: TestService) {
  const byOperator = transportWith(rpcUrl, operatorToken);
  const { token } = await createClient(WorkspaceService, byOperator).createOwnerToken({ workspace: "default" });
  const of = (transport: typeof byOperator) => ({
    activity: createClient(ActivityService, transport),
    workspaces: createClient(WorkspaceService, transport),
    keys: createClient(KeyService, transport),
  });
  return { operator: of(byOperator), owner: of(transportWith(rpcUrl, token)) };
}

/** Asks until the text of a request is in this state, because replicas learn of a change within a second. */
async function asked(
  ask: () => Promise<{ id: string }>,
  activity: Client<typeof ActivityService>,
  state: RunTextState,
) {
  let id = "";
  await until(async () => {
    ({ id } = await ask());
    return (await activity.getRun({ id })).text === state;
  });
  return id;
}

/** All rows of all tables as text, with the bytes of binary columns in two ways. */
async function everything(pool: Pool): Promise<string> {
  const tables = await pool.query<{ name: string }>(
    `select quote_ident(relname) as name from pg_class
     where relkind in ('r', 'm') and relnamespace = 'public'::regnamespace`,
  );
  const dumps: string[] = [];
  for (const { name } of tables) {
    const rows = await pool.query<{ row: string }>(`select t::text as row from ${name} t`);
    for (const { row } of rows) {
      dumps.push(
        row,
        row.replace(/\\x([0-9a-f]+)/g, (_, hex: string) => Buffer.from(hex, "hex").toString("latin1")),
      );
    }
  }
  return dumps.join("\n");
}

const audit = async (activity: Client<typeof ActivityService>) =>
  (await activity.listAudit({})).entries
    .filter(({ action }) => action.startsWith("run_text"))
    .map(({ action, details, actorKind }) => ({ action, actorKind, ...JSON.parse(details) }));

test("keeps no text unless an owner asks for it, and then keeps it encrypted", async (t) => {
  const { panel, operator, owner } = await start(t);
  const { service, pool } = panel;
  const ask = () => panel.ask({ prompt: QUESTION, effort: "high" });
  const before = await ask();
  assert.equal((await owner.activity.getRun({ id: before.id })).text, RunTextState.OFF);
  const off = await rpcFailure(owner.activity.getRunText({ id: before.id }));
  assert.deepEqual([off.detail?.field, /keeps no text/.test(off.message)], ["id", true]);
  assert.doesNotMatch(await everything(pool), WORDS);
  assert.deepEqual(await pool.query("select from run_texts"), []);

  const refused = await rpcFailure(operator.workspaces.setRunText({ workspace: "default", days: 7 }));
  assert.match(refused.message, /Operators cannot begin/);
  for (const days of [-1, 31]) {
    assert.equal((await rpcFailure(owner.workspaces.setRunText({ days }))).detail?.field, "days");
  }
  const { workspace } = await owner.workspaces.setRunText({ days: 7 });
  assert.equal(workspace?.runTextDays, 7);
  const id = await asked(ask, owner.activity, RunTextState.KEPT);
  assert.equal((await owner.activity.getRun({ id: before.id })).text, RunTextState.ABSENT);

  const text = await owner.activity.getRunText({ id });
  assert.deepEqual(
    text.messages.map(({ role, text }) => [role, text]),
    [[Role.USER, QUESTION]],
  );
  const { intelligenceTrace } = await owner.activity.getRun({ id });
  const drafted = intelligenceTrace?.steps.flatMap((step) => (text.drafts.some((d) => d.step === step.id) ? step : []));
  assert.deepEqual(drafted?.length, text.drafts.length);
  assert.ok(text.drafts.length >= 2 && text.drafts.every((draft) => /^Quagga (one|two|three)/.test(draft.text)));
  assert.match(text.answer, /Quagga/);
  assert.deepEqual([text.isCut, text.files, text.calls], [false, [], []]);
  const days = (Number(text.keptUntil?.seconds) * 1000 - Date.now()) / DAY;
  assert.ok(days > 6.9 && days <= 7, `${days}`);

  assert.doesNotMatch(await everything(pool), WORDS);
  assert.doesNotMatch(service.output(), WORDS);
  const metrics = await (await fetch(`${service.rpcUrl}/metrics`)).text();
  assert.doesNotMatch(metrics, WORDS);
  assert.match(metrics, /chorus_runs_total\{outcome="text_kept"\} [1-9]/);

  // Who read it is recorded, and that an operator could not.
  const operatorRead = await rpcFailure(operator.activity.getRunText({ workspace: "default", id }));
  assert.match(operatorRead.message, /Operators cannot read/);
  assert.deepEqual(
    (await audit(owner.activity)).map(({ action, actorKind, id }) => [action, actorKind, id]),
    [
      ["run_text.read", 2, id],
      ["run_text.set", 2, undefined],
    ],
  );
});

test("another replica shows and deletes at once what has just been answered", async (t) => {
  const { panel, owner, operator } = await start(t);
  const other = await panel.start();
  await owner.workspaces.setRunText({ days: 7 });
  const ask = () => panel.ask({ prompt: QUESTION, effort: "high", bogus: 1 });
  await asked(ask, owner.activity, RunTextState.KEPT);
  // Each replica asks others when it knows of them.
  await until(async () => (await panel.pool.query("select from replica_reports")).length === 2);
  const answer = await ask();
  const shown = await other.get(`/v1/generations/${answer.id}`);
  const run = JSON.parse(await shown.text());
  assert.ok(run.intelligence_trace?.steps.length > 0);
  assert.deepEqual(
    run.notices.map(({ code }: { code: string }) => code),
    answer.notices.map(({ code }: { code: string }) => code),
  );
  assert.match(run.text.answer, /Paris/);
  const { token } = await operator.workspaces.createOwnerToken({ workspace: "default" });
  const activity = createClient(ActivityService, transportWith(other.rpcUrl, token));
  const { id } = await ask();
  const { calls, text } = await activity.getRun({ id });
  assert.ok(calls.length > 0);
  assert.equal(text, RunTextState.KEPT);
  const read = await ask();
  assert.match((await activity.getRunText({ id: read.id })).answer, /Paris/);
  const last = await ask();
  assert.equal((await activity.deleteRunText({ texts: { case: "id", value: last.id } })).deleted, 1n);
  assert.equal((await activity.getRun({ id: last.id })).text, RunTextState.ABSENT);
});

test("deletions that wait for other replicas leave the connections to others", async (t) => {
  const { pool } = await testDatabase(t);
  await pool.query("insert into workspaces (id, name) select 'ws_' || i, 'n' || i from generate_series(1, 5) i");
  const running = { list: async () => [], find: async () => undefined };
  const runs = { flush: async () => {}, hasOthers: async () => true, running, textKeys: new TextKeys([]) };
  const { activity } = adminOf(pool, { runs });
  const owner = (i: number) => ({ kind: "owner", id: `tok_${i}`, workspaceId: `ws_${i}` }) as const;
  let ended = 0;
  const deletions = [1, 1, 2, 2, 3, 3, 4, 4].map(async (i) => {
    await activity.deleteRunText({ texts: { case: "all", value: true } }, owner(i));
    ended += 1;
  });
  await activity.listAudit({}, owner(5));
  assert.equal(ended, 0);
  await Promise.all(deletions);
});

test("keeps no text of a key that forbids it, and of no other workspace", async (t) => {
  const { panel, owner } = await start(t);
  const { service, pool } = panel;
  await owner.workspaces.setRunText({ days: 1 });
  const { key, secret } = await owner.keys.createKey({ name: "secret work", forbidsText: true });
  assert.equal(key?.forbidsText, true);
  const askWith = async (apiKey: string) => {
    const response = await service.post("/v1/generate", { prompt: QUESTION, effort: "low" }, { "x-api-key": apiKey });
    return JSON.parse(await response.text()) as { id: string };
  };
  const open = await asked(() => askWith(service.apiKey), owner.activity, RunTextState.KEPT);
  const { id } = await askWith(secret);
  assert.equal((await owner.activity.getRun({ id })).text, RunTextState.FORBIDDEN);
  assert.match((await rpcFailure(owner.activity.getRunText({ id }))).message, /its key forbids it/);
  const other = await createWorkspace(service, "other");
  const foreign = await askWith(other);
  assert.equal((await rpcFailure(owner.activity.getRunText({ id: foreign.id }))).detail?.code, "not_found");
  const texts = await pool.query<{ id: string }>("select id from run_texts where id = any ($1)", [[id, foreign.id]]);
  assert.deepEqual(texts, []);

  // A key gets the text of its own requests with the rest of their run, and no other key does.
  const lookedAt = async (apiKey: string) => {
    const response = await service.get(`/v1/generations/${open}`, { "x-api-key": apiKey });
    return (await response.json()) as { status: string; text?: { answer: string; messages: { text: string }[] } };
  };
  const own = await lookedAt(service.apiKey);
  assert.deepEqual(
    own.text?.messages.map(({ text }) => text),
    [QUESTION],
  );
  assert.match(own.text?.answer ?? "", /Quagga/);
  const { status, text } = await lookedAt(secret);
  assert.deepEqual([status, text], ["ok", undefined]);

  // It can change its mind; what is kept stays.
  const { key: changed } = await owner.keys.updateKey({ id: key?.id ?? "", forbidsText: false });
  assert.equal(changed?.forbidsText, false);
  await asked(() => askWith(secret), owner.activity, RunTextState.KEPT);
  assert.equal((await owner.activity.getRunText({ id: open })).messages.length, 1);
});

test("shows developers the text of own keys only", async (t) => {
  const { pool } = await testDatabase(t);
  const texts = new TextKeys([Buffer.from(KEY, "base64")]);
  const { activity, keys } = adminOf(pool, {
    runs: {
      flush: async () => {},
      hasOthers: async () => false,
      running: { list: async () => [], find: async () => undefined },
      textKeys: texts,
    },
  });
  await pool.query("insert into workspaces (id, name, run_text_days) values ('ws_1', 'one', 30)");
  await pool.query("insert into people values ('per_1', 'i', 's', 'Ann', 'a@example.com', now())");
  await pool.query("insert into members values ('ws_1', 'per_1', 'developer', false, now())");
  await pool.query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, person_id)
     values ('ws_1', 'key_own', 'a', 'ck_a', 'mine', '{}', 'per_1'),
       ('ws_1', 'key_other', 'b', 'ck_b', '', '{}', null)`,
  );
  const store = createTextStore(pool, texts, 1_000_000);
  const ids = { own: newGenerationId(), other: newGenerationId() };
  for (const [key, id] of Object.entries(ids)) {
    await pool.query(
      `insert into generations
       values ('ws_1', $2, $1, $1, $3, false, 'text', 'auto', 'low', 1, 1, 0, 0, 'ok', 'stop', 1)`,
      [id, new Date(timeOfGeneration(id) ?? 0), `key_${key}`],
    );
    const text = writeText({ ...NOTHING, answer: `Answer to ${key}` });
    assert.equal(await store([{ workspaceId: "ws_1", id, keyId: `key_${key}`, text }]), 1);
  }
  const developer = { kind: "member", id: "per_1", workspaceId: "ws_1", role: "developer" } as const;
  assert.equal((await activity.getRunText({ id: ids.own }, developer)).answer, "Answer to own");
  await assert.rejects(activity.getRunText({ id: ids.other }, developer), { kind: "unknown_entity" });
  const owner = { ...developer, id: "per_2", role: "owner" } as const;
  assert.equal((await activity.getRunText({ id: ids.other }, owner)).answer, "Answer to other");
  // A developer may forbid the text of the own key, and cannot allow it again.
  await keys.updateKey({ id: "key_own", forbidsText: true }, developer);
  await assert.rejects(keys.updateKey({ id: "key_own", forbidsText: false }, developer), { kind: "missing_scope" });
});

test("refuses what was changed or moved in the database, and reads with earlier keys of the operator", async (t) => {
  const { panel, owner } = await start(t);
  const { pool } = panel;
  await owner.workspaces.setRunText({ days: 30 });
  const ask = () => panel.ask({ prompt: QUESTION, effort: "low" });
  const id = await asked(ask, owner.activity, RunTextState.KEPT);
  const other = await asked(ask, owner.activity, RunTextState.KEPT);

  const rotated = await doors(await panel.start({ CHORUS_RUN_TEXT_KEY: `${NEXT},${KEY}` }));
  assert.equal((await rotated.owner.activity.getRunText({ id })).messages[0]?.text, QUESTION);
  const only = await doors(await panel.start({ CHORUS_RUN_TEXT_KEY: NEXT }));
  const lost = await rpcFailure(only.owner.activity.getRunText({ id }));
  assert.match(lost.message, /encrypted with the key [0-9a-f]{8}, which CHORUS_RUN_TEXT_KEY no longer has/);

  await pool.query("update run_texts set sealed = (select sealed from run_texts where id = $1) where id = $2", [
    ...[other, id],
  ]);
  const last = await doors(await panel.start());
  const moved = await rpcFailure(last.owner.activity.getRunText({ id }));
  assert.match(moved.message, /cannot be decrypted: it was changed/);
  assert.equal((await audit(last.owner.activity)).filter(({ action }) => action === "run_text.read").length, 1);
});

test("deletes texts by request, all at once, with the setting, and after their retention", async (t) => {
  const { panel, operator, owner } = await start(t);
  const { pool } = panel;
  const ask = () => panel.ask({ prompt: QUESTION, effort: "low" });
  const rows = async () => (await pool.query("select from run_texts")).length;
  await owner.workspaces.setRunText({ days: 30 });
  const id = await asked(ask, owner.activity, RunTextState.KEPT);
  await asked(ask, owner.activity, RunTextState.KEPT);
  const n = await rows();
  assert.equal((await rpcFailure(owner.activity.deleteRunText({}))).detail?.field, "id");
  const one = { case: "id", value: id } as const;
  assert.equal((await owner.activity.deleteRunText({ texts: one })).deleted, 1n);
  assert.equal((await owner.activity.getRun({ id })).text, RunTextState.ABSENT);
  assert.equal(await rows(), n - 1);
  const all = { case: "all", value: true } as const;
  assert.equal((await operator.activity.deleteRunText({ workspace: "default", texts: all })).deleted, BigInt(n - 1));
  assert.equal(await rows(), 0);

  // After its days a text is not found any more, and the next round of maintenance deletes it.
  const late = await asked(ask, owner.activity, RunTextState.KEPT);
  await arrangePartitions(pool, Date.now() + 29 * DAY, 400, 30);
  assert.equal(await rows(), 1);
  await owner.workspaces.setRunText({ days: 1 });
  assert.equal(await rows(), 1);
  await arrangePartitions(pool, Date.now() + 1.01 * DAY, 400, 30);
  assert.equal(await rows(), 0);
  await asked(ask, owner.activity, RunTextState.KEPT);
  await arrangePartitions(pool, Date.now() + 31 * DAY, 400, 30);
  assert.equal(await rows(), 0, `${late} was in a partition that is dropped`);

  // The operator can end it, which deletes the texts at once.
  await asked(ask, owner.activity, RunTextState.KEPT);
  await operator.workspaces.setRunText({ workspace: "default", days: 0 });
  assert.equal(await rows(), 0);
  await asked(ask, owner.activity, RunTextState.OFF);
  assert.equal(await rows(), 0);
  const done = (await audit(owner.activity)).map(({ action, days, before, deleted }) => [
    action,
    days,
    before,
    deleted,
  ]);
  assert.deepEqual(done, [
    ["run_text.set", 0, 1, 1],
    ["run_text.set", 1, 30, 0],
    ["run_text.delete", undefined, undefined, n - 1],
    ["run_text.delete", undefined, undefined, 1],
    ["run_text.set", 30, 0, 0],
  ]);
});

test("keeps files by name, calls of tools with their arguments, and cuts what is too long", async (t) => {
  const { panel, owner } = await start(t);
  await owner.workspaces.setRunText({ days: 2 });
  const long = "word ".repeat(39_000);
  const file = { name: "notes.txt", media_type: "text/plain", data: Buffer.from("Quokka").toString("base64") };
  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: long },
    { role: "assistant", content: long },
    { role: "user", content: "And now?" },
  ];
  const called = { id: "call_1", name: "weather", arguments: { city: "Paris" } };
  const tools = [
    { role: "user", content: "Is it warm?" },
    { role: "assistant", content: "", tool_calls: [called] },
    { role: "tool", tool_call_id: "call_1", content: "21 degrees" },
  ];
  const calling = await asked(() => panel.ask({ messages: tools, effort: "low" }), owner.activity, RunTextState.KEPT);
  assert.deepEqual(
    (await owner.activity.getRunText({ id: calling })).messages.map(({ role, tool, text }) => [role, tool, text]),
    [
      [Role.USER, "", "Is it warm?"],
      [Role.ASSISTANT, "weather", '{"city":"Paris"}'],
      [Role.TOOL, "weather", "21 degrees"],
    ],
  );
  const ask = () => panel.ask({ messages, attachments: [file], effort: "low" });
  const id = await asked(ask, owner.activity, RunTextState.KEPT);
  const text = await owner.activity.getRunText({ id });
  assert.deepEqual(
    text.messages.map(({ role, text }) => [role, text.length]),
    [
      [Role.USER, 262_144 - text.answer.length - "notes.txttext/plainAnd now?".length - long.length],
      [Role.ASSISTANT, long.length],
      [Role.USER, "And now?".length],
    ],
  );
  assert.equal(text.isCut, true);
  assert.deepEqual(
    text.files.map(({ name, mediaType, size }) => [name, mediaType, size]),
    [["notes.txt", "text/plain", 6n]],
  );
});

test("cannot keep text without a key of the operator, and without runs", async (t) => {
  const { panel, owner } = await start(t, {});
  const refused = await rpcFailure(owner.workspaces.setRunText({ days: 1 }));
  assert.match(refused.message, /must set CHORUS_RUN_TEXT_KEY/);
  await panel.pool.query("update workspaces set run_text_days = 1");
  const { id } = await panel.ask({ prompt: QUESTION, effort: "low" });
  assert.equal((await owner.activity.getRun({ id })).text, RunTextState.ABSENT);
  assert.deepEqual(await panel.pool.query("select from run_texts"), []);
});
