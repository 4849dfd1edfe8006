import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { cp, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { Ajv } from "ajv";
import { beforeAll } from "vitest";
import { testDatabase } from "./helpers/database.ts";
import { CHILD_ENV } from "./helpers/environment.ts";
import { test as base, OFFLINE } from "./helpers/fixtures.ts";
import { freePort } from "./helpers/server.ts";
import { until } from "./helpers/until.ts";

const ROOT = resolve(import.meta.dirname, "..");
const PACKAGES = join(ROOT, "dist/packages");
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");
const STRICT = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022"];
const run = promisify(execFile);
const tests = base.extend("env", { scope: "file" }, OFFLINE);

/** The PATH of a consumer: without the programs of this repository. On a developer's machine it has another Node. */
const PATH = (process.env.PATH ?? "")
  .split(delimiter)
  .filter((folder) => !folder.includes("node_modules") && folder !== dirname(process.execPath))
  .join(delimiter);
/** The offline cache of npm belongs to the home folder. */
const ENV = { PATH, HOME: process.env.HOME ?? "", npm_config_update_notifier: "false" };

let client: string;
let service: string;

/** Makes an empty project and installs packages into it. */
async function install(...packages: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-consumer-"));
  await writeFile(join(folder, "package.json"), '{"name":"consumer","version":"1.0.0","private":true,"type":"module"}');
  const options = ["--prefer-offline", "--no-audit", "--no-fund", "--silent"];
  await run("npm", ["install", ...options, ...packages], { cwd: folder, env: ENV });
  return folder;
}

async function sizeOf(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name))).size;
  }
  return bytes;
}

const nodeVersion = async (path: string) => (await run("node", ["-v"], { env: { PATH: path } })).stdout.trim();
const tsc = (folder: string, ...args: string[]) =>
  run(process.execPath, [TSC, ...args], { cwd: folder }).catch(({ stdout }) => assert.fail(stdout));

/** Whether packages can be installed. */
const isOnline = await run("npm", ["ping", "--silent"], { env: ENV }).then(
  () => true,
  () => false,
);
const test = isOnline ? tests : tests.skip;

beforeAll(async () => {
  if (!isOnline) return;
  // npm test has packed them. Packing builds the console and the reference, which other tests read at the same time.
  if (process.env.npm_lifecycle_event !== "test")
    await run(process.execPath, [join(ROOT, "tools/package.ts")], { env: CHILD_ENV });
  const { "@bufbuild/protobuf": protobuf, "@connectrpc/connect": connect } = JSON.parse(
    await readFile(join(ROOT, "package.json"), "utf8"),
  ).dependencies;
  const peers = [
    `@bufbuild/protobuf@${protobuf}`,
    ...["", "-node"].map((end) => `@connectrpc/connect${end}@${connect}`),
  ];
  client = await install(join(PACKAGES, "chorus-client.tgz"), ...peers);
  service = await install(join(PACKAGES, "chorus.tgz"));
  return () => Promise.all([client, service].map((folder) => rm(folder, { recursive: true, force: true })));
}, 300_000);

test("the client is small, needs no other package and changes nothing in a project", async () => {
  const alone = await install(join(PACKAGES, "chorus-client.tgz"));
  assert.deepEqual((await readdir(join(alone, "node_modules"))).sort(), [".package-lock.json", "chorus-client"]);
  assert.ok((await stat(join(PACKAGES, "chorus-client.tgz"))).size < 175_000);
  assert.ok((await sizeOf(join(alone, "node_modules"))) < 1_000_000);
  await rm(alone, { recursive: true });
});

test("the client's exports run on the consumer's Node, and it calls the service", async ({ service }) => {
  const program = `
    import { readFileSync } from "node:fs";
    import { createRequire } from "node:module";
    import { createClient } from "@connectrpc/connect";
    import { createGrpcTransport } from "@connectrpc/connect-node";
    import { ChorusError, createChorus } from "chorus-client";
    import { GenerationService } from "chorus-client/rpc/v1/generation";
    import { KeyService } from "chorus-client/rpc/admin/v1/keys";
    const apiKey = "${service.apiKey}";
    const absent = createChorus({ baseUrl: "http://127.0.0.1:9", apiKey, retries: 0 });
    const code = await absent.generate({ prompt: "a" }).catch((error) => error instanceof ChorusError && error.code);
    const { answer } = await createChorus({ baseUrl: "${service.url}", apiKey }).generate({ prompt: "What is 6 * 7?" });
    const rpc = createClient(GenerationService, createGrpcTransport({ baseUrl: "${service.rpcUrl}" }));
    const called = await rpc.generate({ prompt: "What is 6 * 7?" }, { headers: { "x-api-key": apiKey } });
    const document = createRequire(import.meta.url).resolve("chorus-client/openapi.json");
    const { openapi } = JSON.parse(readFileSync(document, "utf8"));
    console.log([code, answer, called.answer, KeyService.typeName, openapi].join());`;
  await writeFile(join(client, "program.js"), program);
  const { stdout } = await run("node", ["program.js"], { cwd: client, env: ENV });
  assert.equal(stdout.trim(), "connection_failed,6 * 7 = 42,6 * 7 = 42,chorus.admin.v1.KeyService,3.1.1");
});

test("infers the answer's type from a const schema and rejects mistakes at compile time", async () => {
  await cp(join(import.meta.dirname, "client/consumer.ts"), join(client, "consumer.ts"));
  const rpc = `import { GenerationService } from "chorus-client/rpc/v1/generation";
    export const name: string = GenerationService.method.generate.output.typeName;`;
  await writeFile(join(client, "rpc.ts"), rpc);
  for (const module of [
    ["--module", "nodenext"],
    ["--module", "esnext", "--moduleResolution", "bundler"],
  ]) {
    // Without Node's types, as in a browser or a worker.
    await tsc(client, ...STRICT, "--lib", "es2022,dom,dom.iterable", ...module, "--types", "", "consumer.ts", "rpc.ts");
  }
});

test("every program of the client's guide compiles and runs as written", async ({ service }) => {
  const guide = await readFile(join(ROOT, "docs/typescript.md"), "utf8");
  const programs = [...guide.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => text);
  assert.equal(programs.length, 7);
  const expected = [
    /395\nstop, \d+ tokens/,
    /^INV-2041 1234\.50 billing@example\.com$/m,
    /^temperature: /,
    /^true .*42/,
    /^1$/m,
    /^ok [\d.]+ \[ 'answer \d+'/m,
    /credits/,
  ];
  const files: string[] = [];
  for (const [i, text] of programs.entries()) {
    const file = join(client, `guide-${i}.ts`);
    await writeFile(file, text.replaceAll("http://127.0.0.1:8080", service.url));
    files.push(file);
    const env = { ...CHILD_ENV, CHORUS_API_KEY: service.apiKey };
    const { stdout } = await run(process.execPath, [file], { env });
    assert.match(stdout, expected[i] ?? assert.fail());
  }
  await symlink(join(ROOT, "node_modules/@types"), join(client, "node_modules/@types"), "junction");
  await tsc(client, ...STRICT, "--module", "nodenext", "--types", "node", "--skipLibCheck", ...files);
});

test("the service leaves the consumer's Node in front, and brings its own only where that is too old", async () => {
  const bin = join(service, "node_modules/.bin");
  const before = await nodeVersion(PATH);
  assert.equal(await nodeVersion([bin, PATH].join(delimiter)), before);
  assert.ok(!(await readdir(bin)).includes("node"));
  const isOld = Number(/^v(\d+)/.exec(before)?.[1]) < 24;
  const own = join(service, "node_modules/chorus/runtime/node_modules/.bin/node");
  assert.equal(
    await stat(own).then(
      () => true,
      () => false,
    ),
    isOld,
  );
  if (isOld) assert.match((await run(own, ["-v"])).stdout, /^v24\./);
  assert.ok((await stat(join(PACKAGES, "chorus.tgz"))).size < 7_500_000);
});

interface Bill {
  specVersion: string;
  components: { name: string; purl: string; licenses: object[] }[];
}

interface Shrinkwrap {
  packages: Record<string, { version: string }>;
}

test("the bill of materials of the service is valid CycloneDX, and names each package with its licence", async () => {
  const schemas = join(ROOT, "node_modules/@cyclonedx/cyclonedx-library/res/schema");
  const read = async <T = object>(path: string): Promise<T> => JSON.parse(await readFile(path, "utf8"));
  const ajv = new Ajv({ strict: false, validateFormats: false });
  for (const file of ["spdx.SNAPSHOT.schema.json", "jsf-0.82.SNAPSHOT.schema.json"])
    ajv.addSchema(await read(join(schemas, file)), `http://cyclonedx.org/schema/${file}`);
  const bill = await read<Bill>(join(PACKAGES, "chorus.cdx.json"));
  assert.equal(bill.specVersion, "1.5");
  const validate = ajv.compile(await read(join(schemas, "bom-1.5.SNAPSHOT.schema.json")));
  assert.equal(validate(bill), true, JSON.stringify(validate.errors));
  const { packages } = await read<Shrinkwrap>(join(PACKAGES, "service/npm-shrinkwrap.json"));
  const known = new Set(bill.components.map(({ purl }) => decodeURIComponent(purl)));
  for (const [path, { version }] of Object.entries(packages)) {
    if (path === "") continue;
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    assert.ok(known.has(`pkg:npm/${name}@${version}`), path);
  }
  for (const { name, licenses } of bill.components) assert.doesNotMatch(JSON.stringify(licenses), /unknown/, name);
  // What the browser gets is built from development packages.
  assert.ok([...known].some((purl) => purl.startsWith("pkg:npm/preact@")));
  assert.ok([...known].some((purl) => /^pkg:npm\/pdfjs-dist@.+#cmaps$/.test(purl)));
  assert.deepEqual(await read(join(PACKAGES, "service/sbom.cdx.json")), bill);
});

test("chorus runs the command line and the service, with console and reference", async ({ t }) => {
  const { url } = await testDatabase(t);
  const npx = (...args: string[]) => run("npx", ["--no-install", "chorus", ...args], { cwd: service, env });
  const port = await freePort();
  const data = { DATABASE_URL: url, DATA_DIR: join(service, "data"), BOOTSTRAP_API_KEY: "key-0123456789abcdef" };
  const env = {
    ...{ ...ENV, ...data, OPERATOR_TOKEN: "operator-0123456789abcdef", PORT: `${port}`, RPC_PORT: "0" },
    ...{ CHORUS_WORKERS: "2", CHORUS_MAX_LOOP_DELAY_MS: "0" },
  };
  assert.match((await npx("--help")).stdout, /^Usage: chorus \[options\] \[command\]/);
  await npx("migrate");
  // npx does not wait for what it has started when it gets a signal.
  const chorus = join(service, "node_modules/.bin/chorus");
  const child = spawn(chorus, ["start"], { cwd: service, env, stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(child, "exit");
  const greeting = text(child.stdout);
  t.onTestFinished(async () => {
    // Not SIGKILL, which the launcher could not pass on.
    child.kill("SIGTERM");
    await ended;
  });
  const get = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined);
    return { status: response?.status, text: (await response?.text()) ?? "" };
  };
  await until(async () => (await get("/readyz")).status === 200, 50);
  assert.match((await get("/docs")).text, /docs\/reference\.js/);
  const [script = ""] = /\/console\/assets\/[\w-]+\.js/.exec((await get("/console")).text) ?? [];
  assert.equal((await get(script)).status, 200);
  assert.equal(JSON.parse((await get("/openapi.json")).text).openapi, "3.1.1");
  assert.match((await npx("workspaces", "list")).stdout, /^default /m);
  // A large body and a file are read in worker threads, each from a program in a file.
  const page = `<p>Invoice INV-2041.</p>${"<br>".repeat(200_000)}`;
  const body = {
    prompt: "Which invoice is it?",
    attachments: [{ name: "a.html", media_type: "text/html", data: Buffer.from(page).toString("base64") }],
  };
  const headers = { "x-api-key": data.BOOTSTRAP_API_KEY, "content-type": "application/json" };
  const request = { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(`http://127.0.0.1:${port}/v1/generate`, request);
  assert.match(await response.text(), /INV-2041/);
  child.kill("SIGTERM");
  assert.deepEqual(await ended, [0, null]);
  assert.match(await greeting, /To create a key: npx chorus keys create --workspace default/);
});

test("the package has no path of a TypeScript file", () => {
  const folder = join(PACKAGES, "service/src");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  assert.ok(files.includes(join("process", "main.js")) && files.includes(join("store/functions", "check_books.sql")));
  for (const file of files) {
    assert.doesNotMatch(file, /\.ts$/);
    if (file.endsWith(".js"))
      assert.doesNotMatch(readFileSync(join(folder, file), "utf8"), /["'`/]\w[\w-]*\.ts["'`]/, file);
  }
});
