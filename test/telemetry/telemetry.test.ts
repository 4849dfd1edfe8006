import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "vitest";
import { ChatService } from "../../gen/chorus/v1/chat_pb.js";
import { GenerationService } from "../../gen/chorus/v1/generation_pb.js";
import { MessagesService } from "../../gen/chorus/v1/messages_pb.js";
import { ResponsesService } from "../../gen/chorus/v1/responses_pb.js";
import { FAILURES } from "../../src/contract/failure.ts";
import { createTelemetry } from "../../src/telemetry/create.ts";
import { PLACES } from "../../src/telemetry/internal-errors.ts";
import { METHODS, type Telemetry, TRANSPORTS } from "../../src/telemetry/telemetry.ts";
import { methodsOf } from "../../src/transport/call/methods.ts";

/** Value of one line, such as `name{label="value"}`. */
async function figure(telemetry: Telemetry, line: string): Promise<number | undefined> {
  const found = (await telemetry.text()).split("\n").find((text) => text.startsWith(`${line} `));
  return found === undefined ? undefined : Number(found.slice(line.length + 1));
}

test("docs/monitoring.md lists the metrics of the code with their types and labels", async () => {
  const telemetry = createTelemetry();
  telemetry.watchReferee(() => ({ graded: 1 }));
  telemetry.watchRuns(() => ({ kept: 1 }));
  telemetry.request({
    transport: "rest",
    method: "generate",
    outcome: "ok",
    seconds: 1,
    inputTokens: 1,
    outputTokens: 1,
    cachedTokens: 1,
    credits: 1,
  });
  telemetry.modelCall({
    model: "m",
    tier: "fast",
    outcome: "ok",
    source: "reported",
    inputTokens: 1,
    cachedTokens: 1,
    outputTokens: 1,
    thinkingTokens: 0,
    usd: 1,
  });
  telemetry.batch("admission", [1]);
  telemetry.leaseTaken();
  telemetry.leaseRefused("requests_per_minute");
  telemetry.watchBodies("rest", () => 1);
  telemetry.watchJournal(
    () => 1,
    () => ({ damaged: 1, refused: 1 }),
  );
  telemetry.requestShed("journal");
  telemetry.modelCallRefused("m", "full");
  const firstTextMs = { p50: 200, p95: 900 };
  const state = { model: "m", tier: "fast", vendor: "openai", isOpen: true, isDisabled: false } as const;
  telemetry.watchModels(() => [
    {
      ...{
        ...state,
        failedShare: 0.5,
        firstTextMs,
        limit: 5,
        running: 1,
        waiting: 0,
        served: { version: "m-1", isExpected: true },
      },
      failure: { count: 1, at: 0, status: 401, needsOperator: true },
    },
  ]);
  const coded = new Map<string, string>();
  for (const line of (await telemetry.text()).split("\n")) {
    const [, name, type] = /^# TYPE (\S+) (\w+)$/.exec(line) ?? [];
    if (name) coded.set(name, `${type} `);
    const [, figure = "", labels = ""] = /^(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? /.exec(line) ?? [];
    const names = [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label).filter((label) => label !== "le");
    const before = coded.get(figure);
    if (before?.endsWith(" ")) coded.set(figure, before + names.sort().join(","));
  }
  const doc = readFileSync(resolve(import.meta.dirname, "../../docs/monitoring.md"), "utf8");
  const documented = [...doc.matchAll(/^\| `(chorus_\w+)` \| (\w+) \| (.*?) \|/gm)].map(
    ([, name, type, labels = ""]) => {
      const names = [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label);
      return `${name} ${type} ${names.sort().join(",")}`;
    },
  );
  assert.deepEqual(documented.sort(), [...coded].map(([name, rest]) => `${name} ${rest}`).sort());
});

test("docs/monitoring.md lists the outcomes that no code of a failure names, and the places of internal errors", () => {
  const doc = readFileSync(resolve(import.meta.dirname, "../../docs/monitoring.md"), "utf8");
  const namesOf = (start: string) => {
    const [, item = ""] = doc.split(`\n- ${start}`);
    return [...(item.split("\n- ")[0] ?? "").matchAll(/`(\w+)`/g)].map(([, name = ""]) => name);
  };
  const named = namesOf("The `outcome` of a request");
  const finer = Object.entries(FAILURES).filter(([kind, row]) => kind !== ("code" in row ? row.code : undefined));
  for (const [kind] of finer) assert.ok(named.includes(kind), kind);
  assert.deepEqual(namesOf("`where` is").sort(), [...PLACES].sort());
});

test("adds up requests by outcome, and tokens and credits of settled requests", async () => {
  const telemetry = createTelemetry();
  const rest = { transport: "rest", method: "stream_generate" } as const;
  for (const outputTokens of [5, 7]) {
    telemetry.request({
      ...rest,
      outcome: "ok",
      seconds: 0.3,
      inputTokens: 10,
      outputTokens,
      cachedTokens: 4,
      credits: 0.25,
    });
  }
  telemetry.request({ ...rest, outcome: "rate_limited", seconds: 0.001 });
  assert.equal(
    await figure(telemetry, 'chorus_requests_total{transport="rest",method="stream_generate",outcome="ok"}'),
    2,
  );
  assert.equal(
    await figure(telemetry, 'chorus_requests_total{transport="rest",method="stream_generate",outcome="rate_limited"}'),
    1,
  );
  assert.equal(
    await figure(telemetry, 'chorus_request_seconds_bucket{le="0.25",transport="rest",method="stream_generate"}'),
    1,
  );
  assert.equal(await figure(telemetry, 'chorus_request_seconds_count{transport="rest",method="stream_generate"}'), 3);
  assert.deepEqual(
    await Promise.all(
      ["input", "output", "cached"].map((kind) => figure(telemetry, `chorus_tokens_total{kind="${kind}"}`)),
    ),
    [20, 12, 8],
  );
  assert.equal(await figure(telemetry, "chorus_credits_total"), 0.5);
});

test("shows leases, batches, the journal and bodies", async () => {
  const telemetry = createTelemetry();
  telemetry.leaseTaken();
  telemetry.leaseTaken();
  telemetry.leaseEnded();
  telemetry.leaseRefused("held_credit");
  telemetry.batch("settlement", [0.2, 3, 40]);
  let waiting = 3;
  telemetry.watchJournal(
    () => waiting,
    () => ({ damaged: 1, refused: 2 }),
  );
  telemetry.journalFailed(4);
  telemetry.requestShed("journal");
  telemetry.watchBodies("rest", () => 100);
  telemetry.watchBodies("rpc", () => 7);
  assert.equal(await figure(telemetry, "chorus_leases_taken_total"), 2);
  assert.equal(await figure(telemetry, "chorus_leases_running"), 1);
  assert.equal(await figure(telemetry, 'chorus_leases_refused_total{limit="held_credit"}'), 1);
  assert.equal(await figure(telemetry, 'chorus_batch_size_bucket{le="2",stage="settlement"}'), 0);
  assert.equal(await figure(telemetry, 'chorus_batch_size_bucket{le="4",stage="settlement"}'), 1);
  assert.equal(await figure(telemetry, 'chorus_queue_seconds_bucket{le="0.0005",stage="settlement"}'), 1);
  assert.equal(await figure(telemetry, 'chorus_queue_seconds_bucket{le="0.05",stage="settlement"}'), 3);
  assert.equal(await figure(telemetry, "chorus_journal_entries"), 3);
  assert.equal(await figure(telemetry, 'chorus_journal_set_aside{reason="refused"}'), 2);
  assert.equal(await figure(telemetry, "chorus_journal_failures_total"), 4);
  assert.equal(await figure(telemetry, 'chorus_requests_shed_total{cause="journal"}'), 1);
  waiting = 0;
  assert.equal(await figure(telemetry, "chorus_journal_entries"), 0);
  assert.equal(await figure(telemetry, 'chorus_body_bytes{transport="rpc"}'), 7);
  assert.equal(await figure(telemetry, 'chorus_body_bytes{transport="rest"}'), 100);
});

test("shows tokens and cost of calls of vendors, and no cost without a price", async () => {
  const telemetry = createTelemetry();
  const call = {
    model: "m",
    tier: "strong",
    outcome: "ok",
    source: "reported",
    inputTokens: 10,
    cachedTokens: 2,
    outputTokens: 3,
    thinkingTokens: 1,
  } as const;
  telemetry.modelCall({ ...call, usd: 0.002 });
  telemetry.modelCall({ ...call, outcome: "left", source: "estimated", usd: 0.001 });
  telemetry.modelCall({ ...call, model: "free", usd: undefined });
  assert.equal(await figure(telemetry, 'chorus_model_calls_total{model="m",tier="strong",outcome="left"}'), 1);
  assert.equal(
    await figure(telemetry, 'chorus_model_tokens_total{model="m",tier="strong",source="reported",kind="input"}'),
    10,
  );
  assert.equal(
    await figure(telemetry, 'chorus_model_cost_usd_total{model="m",tier="strong",source="reported"}'),
    0.002,
  );
  assert.equal(
    await figure(telemetry, 'chorus_model_cost_usd_total{model="m",tier="strong",source="estimated"}'),
    0.001,
  );
  assert.doesNotMatch(await telemetry.text(), /cost_usd_total\{model="free"/);
});

test("shows the process and its event loop once they are watched", async () => {
  const telemetry = createTelemetry();
  assert.doesNotMatch(await telemetry.text(), /nodejs_/);
  telemetry.watchProcess();
  const text = await telemetry.text();
  const doc = readFileSync(resolve(import.meta.dirname, "../../docs/monitoring.md"), "utf8");
  const named = [...doc.matchAll(/`((?:process|nodejs)_\w+)/g)].map(([, name = ""]) => name);
  assert.ok(named.length >= 5);
  for (const name of named) assert.match(text, new RegExp(`^# TYPE ${name} `, "m"), name);
});

test("dashboard and alerts use only metrics, labels and outcomes that exist", async () => {
  const telemetry = createTelemetry();
  telemetry.watchProcess();
  telemetry.watchBodies("rest", () => 1);
  const text = await telemetry.text();
  const known = new Set<string>();
  for (const [, name = "", type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    if (type === "histogram") for (const part of ["bucket", "sum", "count"]) known.add(`${name}_${part}`);
    else known.add(name);
  }
  const outcomes = new Set(["ok", "cut_short", "caller_gone", "failed", "left", ...Object.keys(FAILURES)]);

  const read = (file: string) => readFileSync(resolve(import.meta.dirname, "../../docs/operating", file), "utf8");
  const dashboard = JSON.parse(read("dashboard.json"));
  const asked: string[] = dashboard.panels.flatMap((panel: { targets?: Array<{ expr: string }> }) =>
    (panel.targets ?? []).map(({ expr }) => expr),
  );
  assert.ok(asked.length >= 18);
  for (const expr of [...asked, read("alerts.yml")]) {
    for (const [name] of expr.matchAll(/\b(?:chorus|nodejs|process)_\w+/g)) assert.ok(known.has(name), name);
    for (const [, list = ""] of expr.matchAll(/outcome=~?"([^"]+)"/g))
      for (const outcome of list.split("|")) assert.ok(outcomes.has(outcome), outcome);
  }
  // Each figure of the service itself is to be seen somewhere.
  const own = [...text.matchAll(/^# TYPE (chorus_\S+) /gm)].map(([, name = ""]) => name);
  const unseen = own.filter((name) => !asked.some((expr) => expr.includes(name)));
  assert.deepEqual(unseen, ["chorus_leases_taken_total"]);
});

test("what an alert waits for to grow is 0 from the start, or Prometheus sees no growth", async () => {
  const telemetry = createTelemetry();
  telemetry.watchJournal(
    () => 0,
    () => ({ damaged: 0, refused: 0 }),
  );
  const lines = (await telemetry.text()).split("\n");
  const alerts = readFileSync(resolve(import.meta.dirname, "../../docs/operating/alerts.yml"), "utf8");
  const grown = [...alerts.matchAll(/increase\((chorus_\w+)(?:\{([^}]*)\})?\[/g)];
  assert.equal(grown.length, 3);
  for (const [, name = "", labels = ""] of grown) {
    assert.ok(
      lines.some((line) => line.startsWith(name) && line.includes(labels) && line.endsWith(" 0")),
      name,
    );
    // A gauge can be above 0 at the first scrape, and Prometheus takes its fall for a counter that begins again.
    assert.ok(lines.includes(`# TYPE ${name} counter`), name);
  }
  for (const transport of TRANSPORTS)
    for (const method of METHODS)
      assert.equal(
        await figure(
          telemetry,
          `chorus_requests_total{transport="${transport}",method="${method}",outcome="internal"}`,
        ),
        0,
      );
});

test("the dashboard times the answers of every door, and the page about monitoring names all methods", () => {
  const methods = methodsOf([GenerationService, ChatService, ResponsesService, MessagesService]);
  const answering = new Set(methods.filter(({ isCharged }) => isCharged).map(({ label }) => label));
  const read = (file: string) => readFileSync(resolve(import.meta.dirname, "../../docs", file), "utf8");
  const timed = [...read("operating/dashboard.json").matchAll(/request_seconds_bucket\{.*?,method=~\\"(.*?)\\"/g)];
  assert.equal(timed.length, 3);
  for (const [, list = ""] of timed) assert.deepEqual(new Set(list.split("|")), answering);
  const [, named = ""] = /`method` is ([^.]*) for an unknown\s+path/.exec(read("monitoring.md")) ?? [];
  const all = new Set([...methods.map(({ label }) => label), "admin", "none"]);
  assert.deepEqual(new Set([...named.matchAll(/`(\w+)`/g)].map(([, label]) => label)), all);
});

test("a metric that fails is counted, does not throw and leaves the others as they are", async () => {
  const telemetry = createTelemetry();
  const end = { transport: "rest", method: "generate", outcome: "ok" } as const;
  telemetry.request({ ...end, seconds: 1, cachedTokens: -1 });
  telemetry.request({ ...end, seconds: "x" as unknown as number });
  const call = { model: "m", tier: "fast", outcome: "ok", source: "reported", usd: -1 } as const;
  telemetry.modelCall({ ...call, inputTokens: 1, cachedTokens: 0, outputTokens: 1, thinkingTokens: 0 });
  telemetry.batch("admission", undefined as unknown as number[]);
  telemetry.request({ ...end, seconds: 1, credits: 2 });
  assert.equal(await figure(telemetry, 'chorus_internal_errors_total{where="metric"}'), 4);
  assert.equal(await figure(telemetry, 'chorus_requests_total{transport="rest",method="generate",outcome="ok"}'), 3);
  assert.equal(await figure(telemetry, "chorus_credits_total"), 2);
});

test("a figure that cannot be read is counted, and the others are shown", async () => {
  const telemetry = createTelemetry();
  const fail = (): never => {
    throw new Error("x");
  };
  telemetry.watchJournal(fail, () => ({ damaged: 0, refused: 0 }));
  telemetry.watchBodies("rest", fail);
  telemetry.watchBodies("rpc", () => 7);
  telemetry.watchLog(fail);
  telemetry.watchModels(fail);
  assert.equal(await figure(telemetry, 'chorus_body_bytes{transport="rpc"}'), 7);
  telemetry.watchLog(() => 5);
  assert.equal(await figure(telemetry, "chorus_log_lines_dropped_total"), 5);
  assert.equal(telemetry.errors.counts.metric, 21);
});
