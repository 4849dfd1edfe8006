import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { test as base } from "vitest";
import { envToConfig } from "../src/config/config.ts";
import { blocks, pages, ROOT, WITHOUT_NPM } from "./helpers/guides.ts";
import { fixture, type Lifetime } from "./helpers/lifetime.ts";
import { startService } from "./helpers/service.ts";

const execute = promisify(execFile);

/** Names and types of all members. A list is represented by its first item. */
function shape(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shape);
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shape(member)]));
}

/** Runs `npm start` on an empty folder, as README describes, and commands of the docs against it. */
async function startNpm(t: Lifetime) {
  const dataDir = await mkdtemp(join(tmpdir(), "chorus-readme-"));
  await chmod(dataDir, 0o711);
  t.onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    npm_config_update_notifier: "false",
    DATA_DIR: dataDir,
    XDG_CONFIG_HOME: dataDir,
    // The default ports may be in use.
    PORT: "0",
    RPC_PORT: "0",
  };

  // Otherwise npm start would reinstall node_modules while other tests use it.
  const [lock, installed] = ["package-lock.json", "node_modules/.installed-lock.json"].map((name) => join(ROOT, name));
  const texts = await Promise.all([lock, installed].map((file = "") => readFile(file, "utf8").catch(() => "")));
  assert.ok(texts[0] === texts[1], "node_modules does not match package-lock.json. Run npm run setup first.");

  const npm = spawn("npm start", { shell: true, cwd: ROOT, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const closed = once(npm, "close");
  // Stops npm, its shells and the service, which form one process group. The service stops its Postgres before it ends.
  t.onTestFinished(async () => {
    if (npm.pid && npm.stdout.readable) process.kill(-npm.pid, "SIGTERM");
    await closed;
  });
  let output = "";
  await new Promise<void>((done, reject) => {
    const read = (chunk: Buffer) => {
      output += chunk;
      if (/curl .+\n/.test(output)) done();
    };
    npm.stdout.on("data", read);
    npm.stderr.on("data", read);
    closed.then(() => reject(new Error(`npm start ended:\n${output}`)), reject);
  });
  const [, url = ""] = /REST and SSE +(\S+)/.exec(output) ?? [];
  const [, rpcUrl = ""] = /gRPC-Web +(\S+)/.exec(output) ?? [];
  const [key = ""] = /ck_\w+/.exec(output) ?? [];

  const run = async (command: string, before = ""): Promise<string> => {
    const here = command.replaceAll("http://127.0.0.1:8080", url).replaceAll("http://127.0.0.1:8081", rpcUrl);
    assert.ok(here !== command || !/127\.0\.0\.1/.test(command));
    const { stdout } = await execute("sh", ["-ec", before + here], { cwd: ROOT, env: { ...env, CHORUS_API_KEY: key } });
    return stdout;
  };
  return {
    env,
    dataDir,
    key,
    url,
    run,
    output: () => output,
    async stop() {
      process.kill(await childOf(npm.pid ?? 0), "SIGTERM");
      await closed;
    },
  };
}

const test = base.extend("npm", { scope: "file" }, fixture(startNpm));

test("README names npm start and npm test", async () => {
  const commands = (await blocks("README.md", "sh")).map(({ text }) => text);
  assert.deepEqual(commands.slice(0, 2), ["npm start", "npm test"]);
  const { scripts } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  assert.ok(scripts.start && scripts.test);
});

test("README shows the shape of the answer", async ({ npm: { output, url, key, run } }) => {
  const [, , , curl, answer] = await blocks("README.md");
  const command = (curl?.text ?? "").replace("http://127.0.0.1:8080", url).replace("$CHORUS_API_KEY", key);
  assert.match(output(), new RegExp(`^ {2}${RegExp.escape(command)}$`, "m"));
  assert.deepEqual(shape(JSON.parse(await run(curl?.text ?? ""))), shape(JSON.parse(answer?.text ?? "")));
});

test("docs/command-line.md: the commands for keys work as written", async ({ npm: { run } }) => {
  let id = "";
  for (const { language, text } of await blocks("docs/command-line.md")) {
    if (language !== "sh") continue;
    for (const line of text.split("\n")) {
      // The first command with npm, as it is written.
      const printed = await run(line.replace("key_…", id), id === "" ? "" : WITHOUT_NPM);
      id = /key_[0-9a-f]{24}/.exec(printed)?.[0] ?? id;
      if (line.includes("--json")) assert.ok(Array.isArray(JSON.parse(printed).keys));
      else assert.match(printed, /key_[0-9a-f]{24}/);
    }
  }
  assert.notEqual(id, "");
});

test("docs/operating.md: restores a copy of the stopped embedded Postgres", async ({ onTestFinished }) => {
  const t = { onTestFinished };
  const { dataDir, env, key, run, stop } = await startNpm(t);
  const before = await run('curl -s http://127.0.0.1:8080/v1/quotas -H "X-API-Key: $CHORUS_API_KEY"');
  await stop();
  await assert.rejects(stat(join(dataDir, "postgres/data/postmaster.pid")), { code: "ENOENT" });
  const restored = `${dataDir}-restored`;
  const copy = `${dataDir}.tar`;
  t.onTestFinished(async () => {
    await Promise.all([restored, copy].map((path) => rm(path, { recursive: true, force: true })));
  });
  const commands = (await blocks("docs/operating.md", "sh")).filter(({ text }) => text.includes("chorus-backup.tar"));
  assert.equal(commands.length, 2);
  for (const { text } of commands) {
    const command = text.replaceAll("chorus-backup.tar", copy);
    await execute("sh", ["-ec", command], { env: { ...env, RESTORED_DIR: restored } });
  }
  const service = await startService(t, { databaseUrl: "", dataDir: restored, env: { CHORUS_TIERS: "" } });
  const after = await service.get("/v1/quotas", { "x-api-key": key });
  assert.deepEqual(((await after.json()) as { credit: unknown }).credit, JSON.parse(before).credit);
  await service.stop();
});

test("every JSON block of the docs parses, and the model catalogues load", async ({ onTestFinished }) => {
  const t = { onTestFinished };
  const folder = await mkdtemp(join(tmpdir(), "chorus-readme-"));
  t.onTestFinished(() => rm(folder, { recursive: true }));
  let catalogues = 0;
  for (const page of await pages()) {
    for (const { language, text } of await blocks(page)) {
      if (language !== "json") continue;
      const value = JSON.parse(text);
      if (!Array.isArray(value.models)) continue;
      const path = join(folder, "models.json");
      await writeFile(path, text);
      const { models } = envToConfig({
        CHORUS_MODELS: path,
        ANTHROPIC_API_KEY: "a",
        OPENAI_API_KEY: "a",
        GEMINI_API_KEY: "a",
        VLLM_API_KEY: "a",
      });
      assert.equal(models.length, value.models.length);
      catalogues++;
    }
  }
  assert.equal(catalogues, 2);
});

test("every environment variable is documented with its default", async () => {
  const sources = [
    "config.ts",
    "data-dir.ts",
    "learning.ts",
    "mail.ts",
    "models.ts",
    "oidc.ts",
    "runs.ts",
    "settings.ts",
    "tracing.ts",
  ].map((name) => readFile(join(ROOT, "src/config", name), "utf8"));
  const source = (await Promise.all(sources)).join();
  const read = [...source.matchAll(/\benv\.([A-Z_]+)|"([A-Z]+_[A-Z_]*[A-Z])"/g)].map(
    ([, member, text]) => member ?? text,
  );
  const docs = await readFile(join(ROOT, "docs/configuration.md"), "utf8");
  const rows = new Map(
    [...docs.matchAll(/^\| (`[A-Z`_, ]+`) \| (.*?) \| /gm)].flatMap(([, names = "", defaults = ""]) => {
      const values = [...defaults.matchAll(/`([^`]*)`/g)].map(([, value]) => value);
      return [...names.matchAll(/`([A-Z_]+)`/g)].map(([, name = ""], i) => [name, values[i]] as const);
    }),
  );
  assert.deepEqual([...rows.keys()].toSorted(), [...new Set(["PORT", "RPC_PORT", ...read])].toSorted());
  const { public: rest, rpc, ...config } = envToConfig({}, { openFiles: 65_536, memoryBytes: 2 ** 34 });
  assert.deepEqual([rows.get("HOST"), rows.get("PORT")], [rest.host, `${rest.port}`]);
  assert.deepEqual([rows.get("RPC_HOST"), rows.get("RPC_PORT")], [rpc.host, `${rpc.port}`]);
  for (const [name, value] of [
    ["CHORUS_RATES", config.rates],
    ["CHORUS_LEVELS", config.levels],
    ["CHORUS_DEADLINES_MS", config.deadlines],
    ["CHORUS_MODEL_TIMEOUTS_MS", config.timeouts],
    ["CHORUS_STREAM_MS", config.stream],
    ["CHORUS_BODY_MS", config.body],
    ["CHORUS_DRAIN_MS", config.drainMs],
    ["CHORUS_ALERTS_MS", config.alerts],
    ["CHORUS_BODY_BUDGET_BYTES", config.bodyBudgetBytes],
  ] as const) {
    assert.equal(rows.get(name), JSON.stringify(value), name);
  }
  assert.equal(rows.get("LOG_LEVEL"), config.logLevel);
});

test("every link of the docs points to an existing file and heading", async () => {
  for (const page of await pages()) {
    const text = await readFile(join(ROOT, page), "utf8");
    for (const [, path = "", anchor] of text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)) {
      const target = path === "" ? join(ROOT, page) : resolve(ROOT, dirname(page), path);
      await assert.doesNotReject(stat(target), `${page}: ${path}`);
      if (anchor === undefined) continue;
      const headings = [...(await readFile(target, "utf8")).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
        heading
          .toLowerCase()
          .replace(/[^\w\s-]/g, "")
          .replace(/\s/g, "-"),
      );
      assert.ok(headings.includes(anchor), `${page}: ${path}#${anchor}`);
    }
  }
});

/** The process of npm, which may run below a shell. */
async function childOf(pid: number): Promise<number> {
  const { stdout } = await execute("ps", ["-o", "pid=,ppid=,args=", "-ax"]);
  for (const line of stdout.split("\n")) {
    const [, child, parent, args = ""] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    if (Number(parent) === pid && args.startsWith("npm start")) return Number(child);
  }
  return pid;
}
