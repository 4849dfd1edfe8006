import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, type TestContext } from "vitest";
import { KINDS, type Served, test } from "../served.ts";

const CODEX = join(import.meta.dirname, "node_modules/.bin/codex");
const TASK = "Write the sum of the numbers in numbers.txt to sum.txt.";
const NUMBERS = "17\n25\n";
const ANSWER = "The sum is 42. It is in sum.txt.";
const PATCH = "*** Begin Patch\n*** Add File: sum.txt\n+42\n*** End Patch";

interface Step {
  name: string;
  arguments: object;
  /** Text of the call that has no escape in JSON. */
  mark: string;
}

function command(cmd: string): Step {
  return { name: "exec_command", arguments: { cmd }, mark: cmd };
}

const READ = command("cat ./numbers.txt");
const COUNT = command("wc -c ./sum.txt");
const PRINT = [READ, command("echo 42 > ./sum.txt"), COUNT];
/** For models of its own list, Codex has a custom tool, whose input is text. */
const EDIT = [READ, { name: "apply_patch", arguments: { input: PATCH }, mark: "*** Add File: sum.txt" }, COUNT];

/** Scripts an agent that takes these steps and then answers. The requests say which ones it has taken. */
function playSteps({ vendor }: Served, steps: readonly Step[]): void {
  vendor.reset();
  vendor.always(({ body }) => {
    const next = steps.find(({ mark }) => !body.includes(mark));
    if (next === undefined) return { text: ANSWER };
    return { calls: [{ name: next.name, arguments: JSON.stringify(next.arguments) }] };
  });
}

/** Lets Codex work on the task in a folder of its own, with a new home. */
async function runCodex(t: Pick<TestContext, "onTestFinished">, { service }: Served, model: string) {
  const home = await mkdtemp(join(tmpdir(), "chorus-codex-"));
  t.onTestFinished(() => rm(home, { recursive: true, force: true }));
  const folder = join(home, "work");
  await mkdir(folder);
  await writeFile(join(folder, "numbers.txt"), NUMBERS);
  await writeFile(
    join(home, "config.toml"),
    `model = "${model}"
model_provider = "chorus"

[model_providers.chorus]
name = "Chorus"
base_url = "${service.url}/v1"
env_key = "CHORUS_API_KEY"
wire_api = "responses"
`,
  );
  const options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--cd", folder];
  const child = spawn(CODEX, ["exec", ...options, TASK], {
    env: { PATH: process.env.PATH, HOME: home, CODEX_HOME: home, CHORUS_API_KEY: service.apiKey },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [output, log] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { folder, output, log, code: child.exitCode };
}

describe.each(KINDS)("on models of %s", (kind) => {
  test.for([
    ["chorus", PRINT],
    ["gpt-5.1-codex", PRINT],
    ["gpt-5.5", EDIT],
  ] as const)(
    "Codex finishes a task with three calls, as model %s",
    async ([model, steps], { serve, onTestFinished }) => {
      const served = await serve(kind);
      playSteps(served, steps);
      const { folder, output, log, code } = await runCodex({ onTestFinished }, served, model);
      assert.equal(code, 0, log);
      assert.equal(output.trim(), ANSWER, log);
      assert.equal(await readFile(join(folder, "sum.txt"), "utf8"), "42\n");
      const last = served.vendor.calls.at(-1)?.body ?? "";
      for (const result of ["17\\n25", "3 ./sum.txt"]) assert.ok(last.includes(result), last);
    },
  );
});
