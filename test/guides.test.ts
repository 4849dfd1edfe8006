import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe } from "vitest";
import { pdf } from "./engine/attachments/files.ts";
import { testDatabase } from "./helpers/database.ts";
import { CHILD_ENV } from "./helpers/environment.ts";
import { test as base, OFFLINE } from "./helpers/fixtures.ts";
import { blocks, pages, ROOT, WITHOUT_NPM } from "./helpers/guides.ts";
import type { Lifetime } from "./helpers/lifetime.ts";
import { startPanel } from "./helpers/panel.ts";
import { freePort } from "./helpers/server.ts";
import { startService, type TestService } from "./helpers/service.ts";
import { until } from "./helpers/until.ts";
import { startVendor } from "./helpers/vendors.ts";

const execute = promisify(execFile);

/** Pages whose blocks are run by readme.test.ts, operators-day.test.ts, alerts/alerts.test.ts and packages.test.ts. */
const TESTED_ELSEWHERE = [
  ...["README.md", "docs/alerts.md", "docs/command-line.md", "docs/operators-day.md", "docs/typescript.md"],
];
/** Pages whose blocks are run by this file. */
const TESTED_HERE = [
  "docs/getting-started.md",
  "docs/calling.md",
  "docs/structured-output.md",
  "docs/streaming.md",
  "docs/effort.md",
  "docs/limits.md",
  "docs/budgets.md",
  "docs/attachments.md",
  "docs/web-search.md",
  "docs/rpc.md",
  "docs/internal-service.md",
  "docs/openai.md",
  "docs/responses.md",
  "docs/messages.md",
  "docs/tools.md",
  "docs/console.md",
  "docs/operating.md",
  "docs/monitoring.md",
  "docs/security.md",
];
const RUN = new Set(["sh", "js", "ts", "python", "sql", "nginx", "caddyfile"]);

async function project(t: Lifetime): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-guide-"));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs a command or a program of a guide against a service. */
function runner(service: TestService, cwd = ROOT) {
  const here = (text: string) =>
    text
      .replaceAll("http://127.0.0.1:8080", service.url)
      .replaceAll("http://127.0.0.1:8081", service.rpcUrl)
      .replaceAll("127.0.0.1:8081", new URL(service.rpcUrl).host);
  const env = {
    ...CHILD_ENV,
    npm_config_update_notifier: "false",
    // buf reads its configuration there.
    XDG_CONFIG_HOME: service.dataDir,
    DATA_DIR: service.dataDir,
    CHORUS_API_KEY: service.apiKey,
  };
  return {
    here,
    async sh(text: string, more: Record<string, string> = {}): Promise<string> {
      const { stdout } = await execute("sh", ["-ec", WITHOUT_NPM + here(text)], { cwd, env: { ...env, ...more } });
      return stdout;
    },
  };
}

const hasProgram = (file: string, ...args: string[]): Promise<boolean> =>
  execute(file, args).then(
    () => true,
    () => false,
  );

/** A project with the client that a template of docs/internal-service.md generates from this folder. */
async function generated(t: Lifetime, index: number): Promise<string> {
  const folder = await project(t);
  const template = (await blocks("docs/internal-service.md", "yaml"))[index];
  const text = (template?.text ?? "")
    .replace(/- git_repo: .*\n *branch: .*/, `- directory: ${ROOT}`)
    .replace(/(?<=[[ ])(?=proto\/|third_party\/)/g, `${ROOT}/`);
  await writeFile(join(folder, "buf.gen.yaml"), text);
  const bin = join(ROOT, "node_modules/.bin");
  await execute(join(bin, "buf"), ["generate"], {
    cwd: folder,
    env: { ...CHILD_ENV, PATH: `${bin}:${CHILD_ENV.PATH}`, HOME: folder, XDG_CONFIG_HOME: folder },
  });
  return folder;
}

const test = base.extend("env", { scope: "file" }, OFFLINE);

test("every page with runnable blocks has a test that runs them", async () => {
  for (const page of await pages()) {
    const runnable = (await blocks(page)).filter(({ language }) => RUN.has(language));
    if (page.startsWith("docs/decisions/") || runnable.length === 0) continue;
    assert.ok([...TESTED_HERE, ...TESTED_ELSEWHERE].includes(page), page);
  }
});

describe("the guides work as written against a running service", () => {
  test.for(["calling", "streaming", "effort", "limits", "web-search", "console"])(
    "docs/%s.md",
    async (page, { service }) => {
      for (const { text } of await blocks(`docs/${page}.md`, "sh")) {
        // npm test runs this command before the tests.
        if (text === "npm run build:console") continue;
        const printed = await runner(service).sh(text);
        assert.doesNotMatch(printed, /"message":"[^"]*","request_id"|event: error/, text);
        assert.ok(printed.trim() !== "", text);
        if (text.includes(":stream")) assert.match(printed, /^event: done$/m);
        if (text.includes("intelligence_trace")) assert.match(printed, /"intelligence_level":/);
      }
    },
  );

  test("docs/budgets.md caps users, and exports their use", async ({ service, t }) => {
    const folder = await project(t);
    for (const { text } of await blocks("docs/budgets.md", "sh")) {
      const files = /> (\S+\.csv)/g;
      const printed = await runner(service).sh(text.replaceAll(files, `> ${folder}/$1`));
      for (const [, file = ""] of text.matchAll(files))
        assert.match(await readFile(join(folder, file), "utf8"), /^(day,workspace,team,|BilledCost,).*\n.+/);
      assert.doesNotMatch(printed, /"message":"[^"]*","request_id"/, text);
      assert.ok(printed.trim() !== "" || text.includes(".csv"), text);
    }
    // The template of the page leaves room for the request of the page, also for a user without a raise.
    const [{ text: ask } = { text: "" }] = await blocks("docs/budgets.md", "sh");
    const printed = await runner(service).sh(ask.replace("u-4711", "u-4712"));
    assert.match(printed, /"answer":"17 \* 23 \+ 4 = 395"/);
  });

  test("docs/getting-started.md yields a program that streams and gets strict JSON", async ({ service, t }) => {
    const folder = await project(t);
    const [start, key, link, given, ask, stream, make, runIt, ...more] = await blocks("docs/getting-started.md", "sh");
    assert.deepEqual(more, []);
    assert.equal(start?.text, "npm start");
    assert.match(await runner(service).sh(link?.text ?? ""), /^http\S+\/console#sign-in=li_\w{33}$/m);
    assert.match(await runner(service).sh(key?.text ?? ""), /ck_\w{33}/);
    assert.equal(given?.text, "export CHORUS_API_KEY=ck_…");
    const clone = runner(service);
    assert.equal(JSON.parse(await clone.sh(ask?.text ?? "")).answer, "17 * 23 + 4 = 395");
    assert.match(await clone.sh(stream?.text ?? ""), /^event: done$/m);
    // Links to the existing build instead of building again, because other tests read its files.
    await mkdir(join(folder, "chorus"));
    await cp(join(ROOT, "package.json"), join(folder, "chorus/package.json"));
    for (const name of ["dist", "gen"]) await symlink(join(ROOT, name), join(folder, "chorus", name), "junction");
    const npm = { npm_config_ignore_scripts: "true", npm_config_offline: "true", npm_config_audit: "false" };
    await runner(service, join(folder, "chorus")).sh(make?.text ?? "", npm);
    const own = runner(service, join(folder, "hello-chorus"));
    const [program] = await blocks("docs/getting-started.md", "js");
    await writeFile(join(folder, "hello-chorus/hello.mjs"), own.here(program?.text ?? ""));
    const printed = (await blocks("docs/getting-started.md", "text")).find(({ text }) => text.includes("INV-2041"));
    assert.equal((await own.sh(runIt?.text ?? "")).trim(), printed?.text);
  });

  test("docs/structured-output.md shows the answer and the error that the service returns", async ({ service }) => {
    const { sh } = runner(service);
    const [extract, strict] = await blocks("docs/structured-output.md", "sh");
    const [shown, refused] = (await blocks("docs/structured-output.md", "json")).map(({ text }) => JSON.parse(text));
    const { structured } = JSON.parse(await sh(extract?.text ?? ""));
    assert.deepEqual(structured, { number: "INV-2041", total: 1234.5, email: "billing@example.com" });
    const answer = JSON.parse(await sh(strict?.text ?? ""));
    assert.deepEqual(
      [answer.answer, answer.structured, answer.usage, Object.keys(answer)],
      [shown.answer, shown.structured, shown.usage, Object.keys(shown)],
    );
    const schema = { type: "object", properties: { date: { type: "string", format: "date" } } };
    const response = await service.post("/v1/generate", {
      prompt: "a",
      response_format: { type: "json_schema", schema },
    });
    assert.deepEqual({ ...((await response.json()) as object), request_id: "req_…" }, refused);
  });

  test("docs/attachments.md", async ({ service, t }) => {
    const folder = await project(t);
    await writeFile(join(folder, "invoice.pdf"), pdf(["Invoice INV-2041. Total: EUR 1,234.50."]));
    for (const { text } of await blocks("docs/attachments.md", "sh"))
      assert.match(JSON.parse(await runner(service, folder).sh(text)).answer, /INV-2041/);
  });

  test("docs/rpc.md", async ({ service, t }) => {
    const folder = await project(t);
    const [curl, connect, exported, _, ...more] = await blocks("docs/rpc.md", "sh");
    assert.deepEqual(more, []);
    assert.match(await runner(service).sh(curl?.text ?? ""), /StreamGenerate[\s\S]*42[\s\S]*"done"/);
    assert.match(await runner(service).sh(connect?.text ?? ""), /"answer":"6 \* 7 = 42"/);
    await runner(service).sh((exported?.text ?? "").replace("--output protos", `--output ${join(folder, "protos")}`));

    await mkdir(join(folder, "node_modules"));
    await cp(join(ROOT, "dist/packages/client"), join(folder, "node_modules/chorus-client"), { recursive: true });
    for (const name of ["@bufbuild", "@connectrpc"])
      await symlink(join(ROOT, "node_modules", name), join(folder, "node_modules", name), "junction");
    await writeFile(join(folder, "package.json"), '{"type":"module"}');
    const own = runner(service, folder);
    const [ts] = await blocks("docs/rpc.md", "ts");
    await writeFile(join(folder, "ask.ts"), own.here(ts?.text ?? ""));
    assert.equal(await own.sh(`"${process.execPath}" ask.ts`), "6 * 7 = 42\ninvalid_request temperature\n");
  });

  test("docs/rpc.md in Python", async ({ service, t, skip }) => {
    // Older ones refuse `optional` in proto3.
    const check =
      "from importlib.metadata import version as v; assert [*map(int, v('grpcio-tools').split('.'))] >= [1, 36]";
    skip(!(await hasProgram("python3", "-c", check)), "python3 has no grpcio-tools of version 1.36 or newer");
    const folder = await project(t);
    const own = runner(service, folder);
    const [, , exported, compile] = await blocks("docs/rpc.md", "sh");
    await runner(service).sh((exported?.text ?? "").replace("--output protos", `--output ${join(folder, "protos")}`));
    await own.sh(compile?.text ?? "");
    const [python] = await blocks("docs/rpc.md", "python");
    await writeFile(join(folder, "ask.py"), own.here(python?.text ?? ""));
    assert.equal(await own.sh("python3 ask.py"), "6 * 7 = 42\n");
  });

  test("docs/openai.md", async ({ service, t }) => {
    const folder = await project(t);
    const clients = join(ROOT, "test/foreign-clients/node_modules");
    await symlink(clients, join(folder, "node_modules"), "junction");
    await writeFile(join(folder, "package.json"), '{"type":"module"}');
    const own = runner(service, folder);
    const [curl] = await blocks("docs/openai.md", "sh");
    const answer = JSON.parse(await own.sh(curl?.text ?? ""));
    assert.equal(answer.choices[0].message.content, "17 * 23 + 4 = 395");
    const [ts] = await blocks("docs/openai.md", "ts");
    await writeFile(join(folder, "ask.ts"), own.here(ts?.text ?? ""));
    assert.equal(await own.sh(`"${process.execPath}" ask.ts`), "17 * 23 + 4 = 395");
  });

  test.for(["responses", "messages"])("docs/%s.md", async (page, { service, t }) => {
    const folder = await project(t);
    const clients = join(ROOT, "test/foreign-clients/node_modules");
    await symlink(clients, join(folder, "node_modules"), "junction");
    await writeFile(join(folder, "package.json"), '{"type":"module"}');
    const own = runner(service, folder);
    for (const { text } of await blocks(`docs/${page}.md`, "sh")) assert.match(await own.sh(text), /395/);
    for (const { text } of await blocks(`docs/${page}.md`, "ts")) {
      await writeFile(join(folder, "agent.ts"), own.here(text));
      assert.match(await own.sh(`"${process.execPath}" agent.ts`), /\w/);
    }
  });

  test.for(["calling", "tools"])("docs/%s.md in TypeScript", async (page, { service, t }) => {
    const folder = await project(t);
    await mkdir(join(folder, "node_modules"));
    await cp(join(ROOT, "dist/packages/client"), join(folder, "node_modules/chorus-client"), { recursive: true });
    await writeFile(join(folder, "package.json"), '{"type":"module"}');
    const own = runner(service, folder);
    const [ts] = await blocks(`docs/${page}.md`, "ts");
    await writeFile(join(folder, "agent.ts"), own.here(ts?.text ?? ""));
    assert.match(await own.sh(`"${process.execPath}" agent.ts`), /\w/);
  });

  test("docs/calling.md in Python", async ({ service, t, skip }) => {
    skip(!(await hasProgram("python3", "--version")), "there is no python3");
    const folder = await project(t);
    const own = runner(service, folder);
    const [python] = await blocks("docs/calling.md", "python");
    await writeFile(join(folder, "ask.py"), own.here(python?.text ?? ""));
    assert.match(await own.sh("python3 ask.py"), /room 4/i);
  });

  test("docs/internal-service.md in TypeScript", async ({ service, t }) => {
    const folder = await generated(t, 0);
    await mkdir(join(folder, "node_modules"));
    for (const name of ["@bufbuild", "@connectrpc"])
      await symlink(join(ROOT, "node_modules", name), join(folder, "node_modules", name), "junction");
    await writeFile(join(folder, "package.json"), '{"type":"module"}');
    const own = runner(service, folder);
    const [ts] = await blocks("docs/internal-service.md", "ts");
    await writeFile(join(folder, "ask.ts"), own.here(ts?.text ?? ""));
    assert.equal(await own.sh(`"${process.execPath}" ask.ts`), "6 * 7 = 42\n");
  });

  test("docs/internal-service.md in Python", async ({ service, t, skip }) => {
    const hasTools = await hasProgram("sh", "-c", "protoc --version && which grpc_python_plugin");
    // A Python of the developer may shadow the one that has the package.
    const candidates = ["python3", "/usr/bin/python3"];
    const found = await Promise.all(candidates.map((python) => hasProgram(python, "-c", "import grpc")));
    const interpreter = candidates[found.indexOf(true)];
    skip(!hasTools || interpreter === undefined, "there is no grpcio or no plugin of protoc");
    const folder = await generated(t, 2);
    const own = runner(service, folder);
    const [python] = await blocks("docs/internal-service.md", "python");
    await writeFile(join(folder, "ask.py"), own.here(python?.text ?? ""));
    assert.equal(await own.sh(`${interpreter} ask.py`), "6 * 7 = 42\n");
  });

  test("docs/operating.md and docs/monitoring.md: commands and SQL statements run", async ({ service, t }) => {
    for (const { text } of [
      ...(await blocks("docs/operating.md", "sh")),
      ...(await blocks("docs/monitoring.md", "sh")),
    ]) {
      if (/pg_dump|pg_restore|tar /.test(text)) continue;
      assert.ok((await runner(service).sh(text)).trim() !== "", text);
    }
    const { pool } = await testDatabase(t);
    for (const { text } of await blocks("docs/monitoring.md", "sql")) await pool.query(text);
  });

  test("docs/security.md: the command replaces a lost operator token", async ({ t }) => {
    const [command, ...more] = await blocks("docs/security.md", "sh");
    assert.deepEqual(more, []);
    const { url: databaseUrl } = await testDatabase(t);
    const service = await startService(t, { databaseUrl });
    const printed = await runner(service).sh(command?.text ?? "", { DATABASE_URL: databaseUrl });
    assert.match(printed, /^Operator token \(shown only once\): op_\w{33}$/m);
  });

  test("docs/operating.md: restores a dump", async ({ service, skip, t }) => {
    const { url } = await testDatabase(t);
    const dumps = (await blocks("docs/operating.md", "sh")).filter(({ text }) => /^pg_(dump|restore)/.test(text));
    assert.equal(dumps.length, 2);
    const version = await execute("pg_dump", ["--version"]).then(
      ({ stdout }) => Number(/\d+/.exec(stdout)?.[0]),
      () => 0,
    );
    skip(version < 18, `pg_dump is version ${version}, and Postgres here is 18`);
    const folder = await project(t);
    const { sh } = runner(service, folder);
    // The restored database must be empty.
    const { url: restored, pool } = await testDatabase(t);
    const { length } = await pool.query("select from chorus_migrations");
    await pool.query("drop schema public cascade");
    await pool.query("create schema public");
    for (const { text } of dumps) await sh(text, { DATABASE_URL: url, RESTORED_URL: restored });
    assert.equal((await pool.query("select from chorus_migrations")).length, length);
  });

  test("docs/operating.md: nginx and Caddy accept the configuration", async ({ skip, t }) => {
    const folder = await project(t);
    const [nginx] = await blocks("docs/operating.md", "nginx");
    const [caddy] = await blocks("docs/operating.md", "caddyfile");
    assert.ok(nginx && caddy);
    const missing: string[] = [];
    if (await hasProgram("nginx", "-v")) {
      const configuration = await nginxConfiguration(folder, nginx.text);
      await execute("nginx", ["-t", "-e", `${folder}/log`, "-c", configuration]);
    } else missing.push("nginx");
    if (await hasProgram("caddy", "version")) {
      await writeFile(join(folder, "Caddyfile"), caddy.text);
      const env = { ...CHILD_ENV, HOME: folder };
      await execute("caddy", ["validate", "--config", join(folder, "Caddyfile"), "--adapter", "caddyfile"], { env });
    } else missing.push("caddy");
    skip(missing.length > 0, `not installed: ${missing.join(", ")}`);
  });
});

test("docs/operating.md: nginx answers while replicas are replaced one after the other", async ({ skip, t }) => {
  skip(!(await hasProgram("nginx", "-v")), "nginx is not installed");
  const folder = await project(t);
  const [nginx] = await blocks("docs/operating.md", "nginx");
  const [port, ...ports] = [await freePort(), await freePort(), await freePort()];
  const site = nginx?.text
    .replace("listen 443", `listen 127.0.0.1:${port}`)
    .replace(/^ *server 127\.0\.0\.1:8080.*$/m, (line) => ports.map((to) => line.replace("8080", `${to}`)).join("\n"));
  const configuration = await nginxConfiguration(folder, site ?? "");
  const proxy = spawn("nginx", ["-e", `${folder}/log`, "-c", configuration, "-g", "daemon off;"], { stdio: "ignore" });
  t.onTestFinished(async () => {
    proxy.kill("SIGTERM");
    await once(proxy, "close");
  });
  const url = `https://127.0.0.1:${port}/`;
  const status = () =>
    execute("curl", ["-sk", "-o", `${folder}/body`, "-w", "%{http_code}", url]).then(
      ({ stdout }) => stdout,
      () => "none",
    );
  const [first, second] = ports.map((to) => startReplica(t, to));
  await first?.start();
  await until(async () => (await status()) === "200");
  // One of both reaches the replica that does not run yet.
  assert.deepEqual([await status(), await status()], ["200", "200"]);
  await second?.start();
  await first?.stop();
  assert.deepEqual([await status(), await status()], ["200", "200"]);
});

/** Writes a configuration of nginx with the site of the guide. @returns its path */
async function nginxConfiguration(folder: string, text: string): Promise<string> {
  const pem = ["-keyout", `${folder}/key.pem`, "-out", `${folder}/cert.pem`];
  await execute("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", ...pem, "-subj", "/CN=localhost"]);
  const site = text
    .replace(/\/etc\/ssl\/chorus\.pem/, `${folder}/cert.pem`)
    .replace(/\/etc\/ssl\/chorus\.key/, `${folder}/key.pem`);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join("\n");
  const path = join(folder, "nginx.conf");
  await writeFile(path, `pid ${folder}/pid;\nevents {}\nhttp {\naccess_log off;\n${temporary}\n${site}\n}\n`);
  return path;
}

/** A replica that answers every request, and can be started and stopped. */
function startReplica(t: Lifetime, port: number): { start(): Promise<void>; stop(): Promise<void> } {
  const server = createServer((_, response) => void response.end());
  const stop = async () => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  t.onTestFinished(stop);
  return {
    async start() {
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
    },
    stop,
  };
}

test("docs/operating.md: the catalogue of self-hosted models returns answers", async ({ t }) => {
  const [ollama, vllm] = [
    await startVendor("openai", { text: "quick" }),
    await startVendor("openai", { text: "hard" }),
  ];
  t.onTestFinished(async () => {
    await Promise.all([ollama.close(), vllm.close()]);
  });
  const folder = await project(t);
  const path = join(folder, "chorus.models.json");
  const catalogue = (await blocks("docs/operating.md", "json")).find(({ text }) => text.includes("VLLM_API_KEY"));
  const here = catalogue?.text.replace("http://127.0.0.1:11434", ollama.url).replace("http://10.0.0.5:8000", vllm.url);
  await writeFile(path, here ?? "");
  const service = await startService(t, { env: { CHORUS_MODELS: path, VLLM_API_KEY: "vllm-secret" } });
  const ask = async () => ((await (await service.post("/v1/generate", { prompt: "Hello" })).json()) as Answer).answer;
  assert.equal(await ask(), "quick");
  ollama.always({ status: 500, error: { message: "out of memory" } });
  assert.equal(await ask(), "hard");
  assert.equal(vllm.calls[0]?.headers.authorization, "Bearer vllm-secret");
});

test("docs/effort.md shows the traces that three scripted vendors produce", async ({ t }) => {
  const { script, ask } = await startPanel(t);
  const say = (text: string, headersMs: number) => ({ draft: { text, headersMs } });
  const guide = await readFile(join(ROOT, "docs/effort.md"), "utf8");
  const [, prompt] = /question was: "([^"]+)"/.exec(guide) ?? assert.fail("no question");
  const timeless = ({ started_ms, duration_ms, ...step }: Record<string, unknown>) => step;
  const facts = ({ internal_input_tokens, internal_output_tokens, steps, ...trace }: Trace) => ({
    ...trace,
    steps: steps
      .map(timeless)
      .map(({ id, ...step }) => JSON.stringify(step))
      .sort(),
  });
  const shown = (await blocks("docs/effort.md", "json")).map(({ text }) => JSON.parse(text));
  assert.equal(shown.length, 2);
  for (const trace of shown) {
    // Two of three drafts agree and arrive early, so the service does not wait for the third.
    const anthropic = say("35", trace.intelligence_level === "high" ? 30_000 : 0);
    script({ openai: say("20", 0), google: say("20", 0), anthropic });
    const { intelligence_trace } = await ask({ prompt, effort: trace.intelligence_level, intelligence_trace: true });
    assert.deepEqual(facts(intelligence_trace), facts(trace));
  }
});

interface Answer {
  answer: string;
}

interface Trace {
  internal_input_tokens: number;
  internal_output_tokens: number;
  steps: Record<string, unknown>[];
}
