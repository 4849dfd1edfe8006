import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { makeFolder } from "../helpers/books.ts";
import { test } from "../helpers/fixtures.ts";
import { holdOf, losePower, powerLossEnv, syncsOf } from "../helpers/power-loss.ts";
import { type DatabaseServer, startServer } from "../helpers/server.ts";
import { startService, type TestService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";

const ASK = { prompt: "What is 2 + 2?" };

/** The ways in which a settlement reaches the database: appended, in an exchange (for its key), and of a stream. */
const WAYS: Record<string, (service: TestService, n: number) => Promise<Response>> = {
  appended: (service) => service.post("/v1/generate", ASK),
  "in an exchange": (service, n) => service.post("/v1/generate", ASK, { "idempotency-key": `key-${n}` }),
  "of a stream": (service) => service.post("/v1/generate", { ...ASK, stream: true }),
};

/** An answer that a test waits for. */
class Awaited {
  text: string | undefined;
  /** What a stream has sent so far. */
  sent = "";
  error: unknown;
  readonly #end: Promise<void>;

  constructor(response: Promise<Response>) {
    this.#end = this.#read(response);
    this.#end.catch((error) => {
      this.error = error;
    });
  }

  /** Whether the end, or a failure, has left the service. */
  get hasEnded(): boolean {
    return this.text !== undefined || this.error !== undefined || this.sent.includes("event: done");
  }

  /** @returns the whole answer */
  async end(): Promise<string> {
    await this.#end;
    return this.text ?? "";
  }

  async #read(response: Promise<Response>): Promise<void> {
    const { body, status } = await response;
    for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) this.sent += piece;
    assert.equal(status, 200, this.sent);
    this.text = this.sent;
  }
}

/** Fails if an answer has left, or leaves while the service answers other requests. */
async function assertHeld(service: TestService, answer: Awaited, what: string): Promise<void> {
  for (let i = 0; i < 10; i++) {
    assert.ok(!answer.hasEnded, `an answer left ${what}`);
    await (await fetch(`${service.rpcUrl}/metrics`)).text();
  }
}

const PROBE = "select 'probe', set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'x', '')";

/** Commits that must be durable wait, as they do for a disk that does not answer, until `thaw`. */
async function holdCommits(t: Parameters<typeof startServer>[0], { pool }: DatabaseServer) {
  const waiting = (statement: string) =>
    pool.query("select from pg_stat_activity where wait_event = 'SyncRep' and query like $1", [`%${statement}%`]);
  const set = async (standby: string) => {
    await pool.query(`alter system set synchronous_standby_names = '${standby}'`);
    await pool.query("select pg_reload_conf()");
  };
  // A standby that never comes. Postgres heeds it some time later.
  await set("nobody");
  let probe: Promise<unknown> | undefined;
  await until(async () => {
    probe ??= pool.query(PROBE).finally(() => {
      probe = undefined;
    });
    return (await waiting("probe")).length > 0;
  });
  const thaw = async () => {
    await set("");
    await probe;
  };
  t.onTestFinished(() => thaw().catch(() => undefined));
  return { waiting, thaw };
}

test("the end of an answer waits until its settlement is durable in the database", async ({ t }) => {
  const server = await startServer(t);
  const service = await startService(t, { databaseUrl: server.url, env: { OPENAI_API_KEY: "" } });
  // Headroom for the next requests, so that only their ends need the database.
  for (let i = 0; i < 3; i++) assert.equal((await service.post("/v1/generate", ASK)).status, 200);
  let n = 0;
  for (const [way, send] of Object.entries(WAYS)) {
    const { waiting, thaw } = await holdCommits(t, server);
    const answer = new Awaited(send(service, n++));
    const statements = way === "in an exchange" ? "exchange(" : "append_settlement(";
    await until(async () => answer.hasEnded || (await waiting(statements)).length > 0);
    await assertHeld(service, answer, `before its settlement ${way} was durable`);
    await thaw();
    await answer.end();
  }
});

test("a crash of the database that loses what was not flushed loses no delivered answer", async ({ t }) => {
  const server = await startServer(t);
  const service = await startService(t, { databaseUrl: server.url, env: { OPENAI_API_KEY: "" } });
  for (let n = 0; n < 3; n++) {
    await until(async () => (await service.post("/v1/generate", ASK)).status === 200);
    await server.holdWriter();
    const answers = await Promise.all(
      Object.values(WAYS).map(async (send) => {
        let answer: Awaited;
        // A busy service may see a refused connection of the restart late, and refuse requests until its next attempt.
        do {
          answer = new Awaited(send(service, n));
          await until(() => answer.hasEnded, 0);
        } while (`${answer.error}`.includes('"overloaded"'));
        assert.ifError(answer.error);
        return answer;
      }),
    );
    await server.loseBuffers();
    await server.start();
    const found = await server.pool.query<{ id: string }>(
      `select request_id as id from generations union all
       select post ->> 'request_id' from settlement_log, json_array_elements(posts) post`,
    );
    for (const answer of answers) {
      const [, id] = /"request_id":\s*"(req_\w+)"/.exec(await answer.end()) ?? [];
      assert.ok(id && found.some((row) => row.id === id), `the settlement of ${id} is lost`);
    }
  }
});

test("an answer that the journal covers waits for its sync, and survives the loss of power", async ({ t, vendor }) => {
  const server = await startServer(t);
  const dataDir = await makeFolder(t);
  const env = { ...vendor.env, ...powerLossEnv(dataDir) };
  const service = await startService(t, { databaseUrl: server.url, dataDir, env });
  const released = Promise.withResolvers<void>();
  vendor.always(async () => {
    await released.promise;
    return {};
  });
  const answers = [1, 2].map(() => new Awaited(service.post("/v1/generate", ASK)));
  await until(() => vendor.calls.length === 2);
  await server.stop();
  const before = (await syncsOf(dataDir)).length;
  const begun = async (part: "folder" | "file") =>
    (await syncsOf(dataDir)).slice(before).some(({ names }) => (names === undefined) === (part === "file"));
  await writeFile(holdOf(dataDir, "folder"), "");
  released.resolve();
  // A new file is on the disk when its folder is, too.
  for (const part of ["folder", "file"] as const) {
    await until(async () => answers.some(({ hasEnded }) => hasEnded) || (await begun(part)));
    for (const answer of answers) await assertHeld(service, answer, `before the ${part} of the journal was synced`);
    if (part === "folder") await writeFile(holdOf(dataDir, "file"), "");
    await rm(holdOf(dataDir, part));
  }
  const ids: (string | undefined)[] = [];
  for (const answer of answers) ids.push(/"request_id":"(req_\w+)"/.exec(await answer.end())?.[1]);
  await service.stop("SIGKILL");
  await losePower(dataDir);

  await server.start();
  await startService(t, { databaseUrl: server.url, dataDir, env: vendor.env });
  const charged = () =>
    server.pool.query("select from ledger where kind = 'settlement' and reference = any ($1)", [ids]);
  await until(async () => (await charged()).length === 2);
});
