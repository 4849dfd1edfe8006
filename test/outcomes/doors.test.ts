import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { test } from "vitest";
import { GenerationService } from "../../gen/chorus/v1/generation_pb.js";
import { startPanel } from "../helpers/panel.ts";
import { transports } from "../helpers/rpc.ts";
import { createWorkspace } from "../helpers/workspaces.ts";

const QUESTION = "What is the capital of France? (a) Lyon (b) Paris (c) Rome";

interface Body {
  generation_id?: string;
  score?: number;
  recorded_at?: string;
  field?: string;
}

const bodyOf = async (response: Response) => (await response.json()) as Body;

type Panel = Awaited<ReturnType<typeof startPanel>>;

async function sums({ pool }: Panel): Promise<string[]> {
  const rows = await pool.query<{ line: string }>(
    `select concat_ws(' ', model, ability, n, trim_scale(score), wins, losses) as line from model_outcomes order by 1`,
  );
  return rows.map(({ line }) => line);
}

test("records the outcome of an answer over every door, and counts for the models that drafted it", async (t) => {
  const panel = await startPanel(t);
  const { service, ask } = panel;
  panel.script({
    openai: { draft: { text: "Answer: (b) Paris" } },
    anthropic: { draft: { text: "The answer is (c)." } },
    google: { draft: { text: "Answer: b" } },
  });
  const { id } = await ask({ prompt: QUESTION, effort: "high" });
  const path = `/v1/generations/${id}/outcome`;
  const response = await service.post(path, { expected: "(b) Paris" });
  assert.equal(response.status, 200);
  assert.match(response.headers.get("x-request-id") ?? "", /^req_/);
  const body = await bodyOf(response);
  assert.deepEqual(Object.keys(body), ["generation_id", "score", "recorded_at"]);
  assert.deepEqual([body.generation_id, body.score], [id, 1]);
  assert.ok(Math.abs(Date.parse(body.recorded_at ?? "") - Date.now()) < 60_000);
  const counted = await sums(panel);
  const by = (model: string) => counted.filter((line) => line.startsWith(`member-${model}`)).join();
  assert.match(by("anthropic"), /knowledge \d 0 0 \d/);
  assert.match(by("openai"), /knowledge \d \d \d 0/);
  assert.equal(by("anthropic").includes(" 1 0 0 1"), true, counted.join("\n"));

  const misspelt = await service.post(path, { expected: "b", corect: true });
  assert.deepEqual(await bodyOf(misspelt), body);
  const notice = "unknown_field: corect is not a field of this request. It was ignored.";
  assert.deepEqual(
    [response, misspelt].map(({ headers }) => headers.get("x-chorus-notice")),
    [null, notice],
  );

  // Another replica, and each protocol.
  const other = await panel.start();
  assert.deepEqual(await bodyOf(await other.post(path, { expected: "b" })), body);
  for (const [name, transport] of Object.entries(transports(other.rpcUrl))) {
    const client = createClient(GenerationService, transport);
    const headers = { "x-api-key": service.apiKey };
    const recorded = await client.recordOutcome({ id, expected: "b" }, { headers });
    assert.deepEqual([recorded.generationId, recorded.score], [id, 1], name);
  }
  assert.deepEqual(await sums(panel), counted);

  // The drafts are one small record, without text.
  const [row] = await panel.pool.query<{ drafts: string }>(
    "select drafts::text as drafts from outcomes where id = $1",
    [id],
  );
  assert.ok(row && Buffer.byteLength(row.drafts) <= 300, row?.drafts);
  assert.doesNotMatch(row.drafts, /paris/i);
  assert.doesNotMatch(service.output() + other.output(), /paris/i);
});

test("knows the answers of one model, of a stream, of a judge and of a synthesis", async (t) => {
  const panel = await startPanel(t);
  const { service, ask, stream } = panel;
  const record = async (id: string, outcome: object) => {
    const response = await service.post(`/v1/generations/${id}/outcome`, outcome);
    return [response.status, await bodyOf(response)] as const;
  };
  panel.script({ openai: { draft: { text: "Once upon a time." } } });
  const story = await ask({ prompt: "Tell me a story.", effort: "low" });
  assert.equal((await record(story.id, { score: 0.25 }))[1].score, 0.25);
  assert.deepEqual(await sums(panel), ["member-openai-fast prose 1 0.25 0 0"]);
  assert.equal((await record(story.id, { expected: "A story" }))[0], 422);
  const events = await stream({ prompt: "Tell me a story.", effort: "low" });
  assert.equal((await record(String(events.at(-1)?.data.id), { correct: true }))[0], 200);
  assert.deepEqual(await sums(panel), ["member-openai-fast prose 2 1.25 0 0"]);
  assert.equal((await panel.pool.query("select from outcomes where drafts is not null")).length, 0);

  // Two fast models disagree, so a strong one answers.
  await panel.pool.query("truncate model_outcomes");
  panel.script({
    openai: { draft: { text: "Answer: a" } },
    anthropic: { draft: { text: "Answer: b" } },
    google: { draft: { text: "Answer: c" } },
  });
  const judged = await ask({ prompt: QUESTION, effort: "medium" });
  const right = /[abc]$/.exec(judged.answer)?.[0] ?? "";
  assert.deepEqual((await record(judged.id, { expected: right }))[1].score, 1);
  const counted = await sums(panel);
  assert.equal(counted.length, 3, counted.join("\n"));
  assert.equal(counted.filter((line) => /strong knowledge 1 1 1 0$/.test(line)).length, 1, counted.join("\n"));

  await panel.pool.query("truncate model_outcomes");
  panel.script({
    openai: { draft: { text: "One story." }, write: { text: "A story." } },
    anthropic: { draft: { text: "Another story." }, write: { text: "A story." } },
    google: { draft: { text: "A third story." }, write: { text: "A story." } },
  });
  const written = await ask({ prompt: "Tell me a story.", effort: "high" });
  assert.equal((await record(written.id, { correct: true }))[0], 200);
  const writers = await sums(panel);
  assert.equal(writers.length, 1, writers.join("\n"));
  assert.match(writers.join(), /strong prose 1 1 0 0$/);
});

test("compares objects, and refuses other workspaces, keys without the scope, and bad requests", async (t) => {
  const panel = await startPanel(t);
  const { service, ask } = panel;
  const text = '{"total": 1234.50, "city": "Paris"}';
  panel.script({ openai: { draft: { text } }, anthropic: { draft: { text } }, google: { draft: { text } } });
  const { id } = await ask({ prompt: "Extract the total and the city.", output_shape: "extract" });
  const path = `/v1/generations/${id}/outcome`;
  const score = async (expected: string) => (await bodyOf(await service.post(path, { expected }))).score;
  assert.equal(await score('{"city":"paris","total":1234.5}'), 1);
  assert.equal(await score('{"city":"paris","total":1234.51}'), 0);

  const failures: [path: string, body: unknown, headers: Record<string, string>, status: number, field?: string][] = [
    [path, { score: 1 }, { "x-api-key": await createWorkspace(service, "other") }, 404, "id"],
    ["/v1/generations/gen_0/outcome", { score: 1 }, {}, 404, "id"],
    [path, { score: 2 }, {}, 422, "score"],
    [path, { score: "1" }, {}, 422, "score"],
    [path, { correct: "yes" }, {}, 422, "correct"],
    [path, { id: "gen_0" }, {}, 422, "score"],
    [path, { expected: "Paris" }, {}, 422, "expected"],
    [path, "{", {}, 400],
    [path, { expected: "x".repeat(20_001) }, {}, 422, "expected"],
    [path, { expected: "x".repeat(300_000) }, {}, 413],
    [path, { score: 1 }, { "content-type": "text/plain" }, 415],
    [path, { score: 1 }, { "x-api-key": "ck_no" }, 401],
    [`${path}/more`, { score: 1 }, {}, 404],
  ];
  for (const [to, body, headers, status, field] of failures) {
    const response = await service.post(to, body, headers);
    const failure = await bodyOf(response);
    assert.deepEqual([response.status, failure.field], [status, field], JSON.stringify([to, body, failure]));
  }
  // Some programs escape each character of another alphabet.
  const escaped = "\\ud83d\\ude00".repeat(20_000);
  assert.equal((await service.post(path, `{"score":1,"expected":"${escaped}"}`)).status, 200);
  const read = await service.get(path);
  assert.deepEqual([read.status, read.headers.get("allow")], [405, "POST"]);
  // The path names the answer, whatever the body says.
  assert.equal((await bodyOf(await service.post(path, { id: "gen_0", score: 0.5 }))).generation_id, id);
  await panel.pool.query(
    "update api_keys set scopes = '{metrics}' where workspace_id <> (select id from workspaces where name = 'other')",
  );
  const forbidden = await (await panel.start()).post(path, { score: 1 });
  assert.equal(forbidden.status, 403);
});
