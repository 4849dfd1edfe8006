import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { CapFigure, CapPeriod, MetricsGroupBy } from "../../../gen/chorus/v1/generation_pb.js";
import { openPool } from "../../../src/store/pool.ts";
import { adminOf } from "../../helpers/admin.ts";
import { CHILD_ENV } from "../../helpers/environment.ts";
import { test as base, OFFLINE } from "../../helpers/fixtures.ts";
import { OWN_PROCESS } from "../../helpers/program.ts";
import type { TestService } from "../../helpers/service.ts";
import { fillYear, YEAR_MS } from "./year.ts";

const REQUESTS = Number(process.env.REQUESTS ?? 1_000_000);
const CLI = resolve(import.meta.dirname, "../../../src/cli/main.ts");

/** Most memory that an export may add to the service, and to the command line, in MB. */
const MOST_MB = 100;

const test = base
  .extend("env", { scope: "file" }, { ...OFFLINE, ...OWN_PROCESS })
  /** Statements over a million requests may take minutes. */
  .extend("pool", { scope: "file" }, ({ database: { url } }, { onCleanup }) => {
    const pool = openPool(url, { max: 2, timeoutMs: 600_000 });
    onCleanup(() => pool.end());
    return pool;
  })
  .extend("workspaceId", { scope: "file" }, async ({ pool, serviceOfFile: _ }) => {
    const [row] = await pool.query<{ id: string }>("select id from workspaces where name = 'default'");
    assert.ok(row);
    await fillYear(pool, row.id, REQUESTS);
    return row.id;
  });

test("exports a year of a million requests in bounded memory; its rows agree with the ledger", async ({
  annotate,
  pool,
  service,
  workspaceId,
}) => {
  // V8 lets the space of new objects grow to 96 MB under any load. That is no memory of the export.
  await exported(service, "--by", "user");
  const [ledger] = await pool.query<{ micro: bigint; charges: bigint }>(
    `select -sum(granted_micro + purchased_micro)::bigint as micro, count(*) as charges
     from ledger where workspace_id = $1 and kind = 'settlement'`,
    [workspaceId],
  );
  const [{ failed } = { failed: 0n }] = await pool.query<{ failed: bigint }>(
    "select count(*) as failed from generations where workspace_id = $1 and outcome <> 'ok'",
    [workspaceId],
  );
  assert.ok(ledger);
  for (const [by, format] of [
    ["user", "csv"],
    ["user", "focus"],
    ["tag:team", "jsonl"],
    ["key", "csv"],
  ] as const) {
    const { rows, micro, requests, seconds, more } = await exported(service, "--by", by, "--format", format);
    const memory = `${more.service} MB more in the service, ${more.cli} in the command`;
    await annotate(`${by} as ${format}: ${rows} rows in ${seconds.toFixed(1)} s; ${memory}`);
    assert.equal(micro, ledger.micro, "credits of the rows and of the ledger, in millionths");
    if (format !== "focus") assert.equal(requests, BigInt(REQUESTS));
    assert.ok(Math.max(more.service, more.cli) <= MOST_MB, JSON.stringify(more));
  }
  assert.equal(ledger.charges + failed, BigInt(REQUESTS));
});

test("lists the top of a million users, and compares them with a cap", async ({ annotate, pool, workspaceId }) => {
  const { usage, caps, alerts } = adminOf(pool);
  const to = Date.now();
  const list = (days: number, pageToken = "", search = "") =>
    usage.listTopSubjects({
      workspace: "default",
      groupBy: MetricsGroupBy.USER,
      startTime: timestampFromMs(to - days * 86_400_000),
      pageSize: 100,
      pageToken,
      search,
    });
  const timed = async <T>(name: string, run: () => Promise<T>): Promise<T> => {
    const start = performance.now();
    const result = await run();
    await annotate(`${name}: ${Math.round(performance.now() - start)} ms`);
    return result;
  };
  await timed("top of 7 days", () => list(7));
  await timed("top of 30 days", () => list(30));
  const first = await timed("top of a year", () => list(YEAR_MS / 86_400_000));
  await timed("its second page", () => list(YEAR_MS / 86_400_000, first.nextPageToken));
  await timed("users of a year that start with u-99", () => list(YEAR_MS / 86_400_000, "", "u-99"));
  assert.equal(first.subjects.length, 100);

  await alerts.setAlerts({ workspace: "default", alerts: { webhookUrl: "https://example.com/", capShare: 0.8 } });
  const compare = () => pool.query("select raise_cap_alerts(now() - interval '1 minute', now())");
  const cap = { subject: "user:*", figure: CapFigure.REQUESTS, period: CapPeriod.TOTAL, amount: "1000" };
  await caps.setCap({ workspace: "default", cap });
  await timed("first comparison of a new cap with all users", compare);
  await pool.query(
    `insert into subject_periods select * from used_subjects($1, 'user:*', now() - interval '1 hour')
     on conflict do nothing`,
    [workspaceId],
  );
  await pool.query("vacuum analyze subject_periods");
  await timed("comparison while no user is active", compare);
  await pool.query(
    `update subject_periods set at = now() where workspace_id = $1 and subject in (
       select 'user:u-' || i * 100 from generate_series(1, 10000) i)`,
    [workspaceId],
  );
  await timed("comparison while 10,000 users are active", compare);
});

/** What an export wrote, and how much memory it took. */
interface Exported {
  rows: number;
  micro: bigint;
  requests: bigint;
  seconds: number;
  /** Memory at most, in MB: of the service more than before, of the command more than at its first row. */
  more: { service: number; cli: number };
}

/** Runs `chorus usage export` for a year, or another period, and adds up its rows as they come. */
async function exported(service: TestService, ...options: string[]): Promise<Exported> {
  const period = options.includes("--from") ? [] : ["--from", "366d"];
  const child = spawn(
    process.execPath,
    ["--max-semi-space-size=4", CLI, "usage", "export", "default", ...period, ...options],
    {
      env: { ...CHILD_ENV, CHORUS_RPC_URL: service.rpcUrl, OPERATOR_TOKEN: service.operatorToken },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const start = performance.now();
  const before = memory(service.process);
  const sum = { rows: 0, micro: 0n, requests: 0n };
  const more = { service: 0, cli: 0 };
  let first: number | undefined;
  const sampling = setInterval(() => {
    more.service = Math.max(more.service, memory(service.process) - before);
    if (first !== undefined && child.exitCode === null) more.cli = Math.max(more.cli, memory(child) - first);
  }, 20);
  let read: ((line: string) => [credits: string, requests: string]) | undefined;
  const ended = once(child, "exit");
  for await (const line of createInterface({ input: child.stdout })) {
    first ??= memory(child);
    const isHead = read === undefined && !line.startsWith("{");
    read ??= readerOf(line);
    if (isHead) continue;
    const [credits, requests] = read(line);
    sum.rows += 1;
    sum.micro += microOf(credits);
    sum.requests += BigInt(requests);
  }
  clearInterval(sampling);
  assert.deepEqual(await ended, [0, null]);
  return { ...sum, more, seconds: (performance.now() - start) / 1_000 };
}

/** Reads credits and requests from a row. @param line the first one: JSON, or the names of the columns */
function readerOf(line: string): (line: string) => [credits: string, requests: string] {
  if (line.startsWith("{")) {
    return (row) => {
      const { credits, requests, failed_requests } = JSON.parse(row);
      return [credits, String(requests + failed_requests)];
    };
  }
  const names = line.split(",");
  const at = (name: string) => names.indexOf(name);
  if (at("BilledCost") >= 0) return (row) => [row.split(",")[at("BilledCost")] ?? "", "0"];
  return (row) => {
    const cells = row.split(",");
    const of = (name: string) => cells[at(name)] ?? "";
    return [of("credits"), String(Number(of("requests")) + Number(of("failed_requests")))];
  };
}

/** An exact decimal amount of credits in millionths. */
function microOf(credits: string): bigint {
  const [, whole = "", fraction = ""] = /^(\d+)(?:\.(\d{1,6}))?$/.exec(credits) ?? assert.fail(`"${credits}"`);
  return BigInt(whole + fraction.padEnd(6, "0"));
}

/** Resident memory of a process, in MB; 0 after its end. */
function memory({ pid }: ChildProcess): number {
  try {
    return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024);
  } catch {
    return 0;
  }
}
