import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { beforeAll, test } from "vitest";
import { CHILD_ENV } from "../helpers/environment.ts";
import { startService } from "../helpers/service.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");
const run = promisify(execFile);
// Outside the repository, because a consumer does not have its settings.
const tsc = (...args: string[]) => run(process.execPath, [TSC, ...args], { cwd: folder });

let folder: string;

/** A consumer's project that depends on this package. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "chorus-consumer-"));
  const home = join(folder, "node_modules/chorus");
  await mkdir(home, { recursive: true });
  await tsc("-p", join(ROOT, "src/client"), "--outDir", join(home, "dist/client"));
  await cp(join(ROOT, "gen"), join(home, "gen"), { recursive: true });
  await cp(join(ROOT, "package.json"), join(home, "package.json"));
  for (const name of ["@bufbuild", "@connectrpc"]) {
    await symlink(join(ROOT, "node_modules", name), join(folder, "node_modules", name), "junction");
  }
  await writeFile(join(folder, "package.json"), '{"type":"module"}');
  return () => rm(folder, { recursive: true, force: true });
});

test("the package's exports run as JavaScript, and the client builds without Node's types", async () => {
  const program = `
    import { ChorusError, createChorus } from "chorus/client";
    import { GenerationService } from "chorus/rpc/v1/generation";
    import { KeyService } from "chorus/rpc/admin/v1/keys";
    import openapi from "chorus/openapi.json" with { type: "json" };
    const chorus = createChorus({ baseUrl: "http://127.0.0.1:9", apiKey: "secret", retries: 0 });
    const code = await chorus.generate({ prompt: "a" }).catch((error) => error instanceof ChorusError && error.code);
    console.log(code, GenerationService.typeName, KeyService.typeName, openapi.openapi);`;
  await writeFile(join(folder, "program.js"), program);
  const { stdout } = await run(process.execPath, ["--disable-warning=ExperimentalWarning", join(folder, "program.js")]);
  assert.equal(stdout.trim(), "connection_failed chorus.v1.GenerationService chorus.admin.v1.KeyService 3.1.1");
});

test("infers the answer's type from a const schema and rejects mistakes at compile time", async () => {
  await cp(join(import.meta.dirname, "consumer.ts"), join(folder, "consumer.ts"));
  for (const module of [
    ["--module", "nodenext"],
    ["--module", "esnext", "--moduleResolution", "bundler"],
  ]) {
    const options = [
      "--noEmit",
      "--strict",
      "--exactOptionalPropertyTypes",
      "--target",
      "es2022",
      "--lib",
      "es2022,dom",
    ];
    await tsc(...options, ...module, "--types", "", join(folder, "consumer.ts")).catch(({ stdout }) =>
      assert.fail(stdout),
    );
  }
});

test("every program of the guide compiles and runs as written", async (t) => {
  const service = await startService(t);
  const guide = await readFile(join(ROOT, "docs/typescript.md"), "utf8");
  const programs = [...guide.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => text);
  assert.equal(programs.length, 5);
  const expected = [
    /395\nstop, \d+ tokens/,
    /^INV-2041 1234\.50 billing@example\.com$/m,
    /^temperature: /,
    /^true .*42/,
    /credits/,
  ];
  const files: string[] = [];
  for (const [i, text] of programs.entries()) {
    const file = join(folder, `guide-${i}.ts`);
    await writeFile(file, text.replaceAll("http://127.0.0.1:8080", service.url));
    files.push(file);
    const env = { ...CHILD_ENV, CHORUS_API_KEY: service.apiKey };
    const { stdout } = await run(process.execPath, [file], { env });
    assert.match(stdout, expected[i] ?? assert.fail());
  }
  await symlink(join(ROOT, "node_modules/@types"), join(folder, "node_modules/@types"), "junction");
  const options = [
    "--noEmit",
    "--strict",
    "--target",
    "es2022",
    "--module",
    "nodenext",
    "--types",
    "node",
    "--skipLibCheck",
  ];
  await tsc(...options, ...files).catch(({ stdout }) => assert.fail(stdout));
});

test("package.json exports the built client", async () => {
  const { exports } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  assert.deepEqual(exports["./client"], { types: "./dist/client/client.d.ts", default: "./dist/client/client.js" });
});
