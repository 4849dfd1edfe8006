import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, test } from "vitest";
import { generateQuestions } from "../../src/calibration/questions.ts";
import { runCli, spawnCli } from "../helpers/cli.ts";
import { CHILD_ENV } from "../helpers/environment.ts";
import { until } from "../helpers/until.ts";
import { type Script, type ScriptedVendor, startVendor } from "../helpers/vendors.ts";

const MAIN = resolve(import.meta.dirname, "../../src/cli/main.ts");

const ANSWERS = new Map(generateQuestions(3).map(({ prompt, answer }) => [prompt, answer]));

let folder = "";
let vendor: ScriptedVendor;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "chorus-calibrate-"));
  vendor = await startVendor("openai");
  const model = { vendor: "openai", price: { input: 1, output: 10 } };
  const models = [
    { ...model, name: "good", model: "good", tier: "strong" },
    { ...model, name: "poor", model: "poor", tier: "fast" },
  ];
  writeFileSync(join(folder, "models.json"), JSON.stringify({ models, accuracies: "accuracies.json" }));
});
afterEach(async () => {
  await vendor.close();
  rmSync(folder, { recursive: true });
});

const calibrate = (args: string[], input = "", run = runCli) =>
  run(["calibrate", "--each", "3", ...args], { ...vendor.env, CHORUS_MODELS: join(folder, "models.json") }, input);
const written = () => JSON.parse(readFileSync(join(folder, "accuracies.json"), "utf8"));

/** The good model knows all answers. The poor one only those to maths. */
const answering: Script = ({ json, body }) => {
  const prompt = [...ANSWERS.keys()].find((each) => body.includes(JSON.stringify(each).slice(1, -1)));
  const answer = ANSWERS.get(prompt ?? "") ?? "";
  const knows = json.model === "good" || /Compute|remainder|How many euros/.test(prompt ?? "");
  return { text: knows ? answer : "I am not sure about this." };
};

test("chorus calibrate measures every model and writes accuracies with intervals", async () => {
  vendor.always(answering);
  const { code, stdout, stderr } = await calibrate(["--yes"], "", spawnCli);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /good: 12 of 12 questions to ask, about USD 0\.07\n/);
  assert.match(stdout, /poor +knowledge +0\.\d{3} +0\.000 to 0\.\d{3} +0 of 3/);
  const { models } = written();
  assert.deepEqual([models.good.code.right, models.good.extraction.right, models.poor.maths.right], [3, 3, 3]);
  assert.ok(models.good.code.low < models.good.code.accuracy && models.good.code.accuracy < 1);
  assert.equal(vendor.calls.length, 24);
});

test("asks before it costs anything", async () => {
  vendor.always(answering);
  for (const input of ["", "n\n"]) {
    const { code, stderr } = await calibrate([], input);
    assert.equal(code, 1);
    assert.match(stderr, /Nothing was asked\. Confirm with y, or use --yes/);
  }
  assert.equal(vendor.calls.length, 0);
  assert.equal((await calibrate([], "y\n")).code, 0);
});

test("continues after an interruption with the open questions only", async () => {
  vendor.always((call) => {
    const isDown = call.json.model === "good" && call.body.includes("Python");
    return isDown ? { status: 400, error: { message: "no" } } : (answering as (of: typeof call) => object)(call);
  });
  const { code, stderr } = await calibrate(["--yes"]);
  assert.equal(code, 1);
  assert.match(stderr, /Questions without an answer: good \(\d+\)\. The same command asks only these again/);
  assert.equal(existsSync(join(folder, "accuracies.json")), false);
  vendor.calls.length = 0;
  vendor.always(answering);
  const again = await calibrate(["--yes"]);
  assert.equal(again.code, 0, again.stderr);
  assert.match(again.stderr, /poor: 0 of 12 questions to ask/);
  assert.ok(vendor.calls.length >= 3 && vendor.calls.every(({ json }) => json.model === "good"));
  assert.equal(written().models.good.code.right, 3);
  assert.equal(existsSync(join(folder, "accuracies.json.progress")), false);
});

test("says why a model does not answer", async () => {
  vendor.always({ status: 401, error: { message: "Incorrect API key provided", code: "invalid_api_key" } });
  const { code, stderr } = await calibrate(["--yes"]);
  assert.equal(code, 1);
  const why =
    "401 invalid_api_key. The vendor says: Incorrect API key provided. Set a valid OPENAI_API_KEY, then start";
  assert.match(stderr, /^chorus: Questions without an answer: good \(12\), poor \(12\)\. The same command asks only/m);
  assert.ok(stderr.includes(` good: ${why} again. poor: ${why} again.\n`), stderr);
});

test("says how to go on when it is interrupted, also where a terminal's Ctrl-C arrives twice", async () => {
  vendor.always({ end: "silent" });
  // A second signal from outside could arrive when the process ends and no longer handles signals.
  const repeat = 'process.once("SIGINT", () => setImmediate(() => process.emit("SIGINT")))';
  const options = ["--import", `data:text/javascript,${encodeURIComponent(repeat)}`];
  const child = spawn(process.execPath, [...options, MAIN, "calibrate", "--each", "3", "--yes"], {
    env: { ...CHILD_ENV, ...vendor.env, CHORUS_MODELS: join(folder, "models.json") },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const said = text(child.stderr);
  await until(() => vendor.calls.length > 0);
  child.kill("SIGINT");
  const [code, signal] = await once(child, "exit");
  assert.deepEqual([code, signal], [1, null]);
  assert.match(await said, /chorus: Interrupted\. The same command continues\.\n$/);
});

test("asks the operator's questions, and names a wrong line", async () => {
  vendor.always({ text: "The answer is 7." });
  const path = join(folder, "own.jsonl");
  // As an editor on Windows writes it.
  writeFileSync(path, '\ufeff{"ability":"prose","prompt":"Seven?","answer":"7"}\r\n');
  assert.equal((await calibrate(["--yes", "--questions", path])).code, 0);
  assert.equal(written().models.good.prose.right, 1);
  writeFileSync(path, '{"ability":"poetry","prompt":"Seven?","answer":"7"}\n');
  assert.match((await calibrate(["--yes", "--questions", path])).stderr, /own\.jsonl:1: expected .*knowledge/);
  assert.match((await calibrate(["--each", "0"])).stderr, /--each must be a whole number from 1 to 200/);
});
