import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { choose, choosePanel, type RecordedFile, readRecorded } from "../../eval/data.ts";
import { difficultyPart, folds, routed } from "../../eval/difficulty.ts";

const NO_OTHERS = new Map();
const UNASKED = { weak: [], strong: undefined };

/** A data set: the strong model is always right, the weak one is wrong on every prompt with a formula. */
function set(rows: number, groups: number): RecordedFile {
  return {
    path: "made-up.jsonl",
    name: "made-up",
    raw: [],
    toolRows: [],
    skipped: 0,
    rows: Array.from({ length: rows }, (_, at) => ({
      id: String(at),
      group: String(at % groups),
      prompt: at % 3 === 0 ? `Solve x^2 = ${at} for x.` : `Who wrote book number ${at}?`,
      gold: null,
      models: { small: { answer: null, score: at % 3 === 0 ? 0 : 1 }, big: { answer: null, score: 1 } },
    })),
  };
}

test("learns on other folds which prompts models fail on, or on files that share no prompt", () => {
  const file = set(90, 4);
  const on = routed(file, UNASKED);
  assert.ok(typeof on !== "string");
  const rated = difficultyPart(on, NO_OTHERS);
  assert.ok(typeof rated !== "string");
  assert.equal(rated.part.weak, "small");
  assert.equal(rated.part.fitted_on, "other folds");
  assert.ok(rated.part.apgr > 0.8, String(rated.part.apgr));
  assert.ok(rated.part.apgr_failures_known > 0.8);
  const [hard, easy] = file.rows;
  assert.ok(hard && easy && rated.difficulty(hard) > rated.difficulty(easy));
  const copy = difficultyPart(on, new Map([["copy", on]]));
  assert.ok(typeof copy !== "string" && copy.part.fitted_on === "other folds");
  const other = { ...on, rows: on.rows.map((row) => ({ ...row, prompt: `Now: ${row.prompt}` })) };
  const left = difficultyPart(on, new Map([["other", other]]));
  assert.ok(typeof left !== "string" && left.part.fitted_on === "other files");
});

test("returns a number or a reason, never NaN, for degenerate data", () => {
  const part = (file: RecordedFile) => {
    const on = routed(file, UNASKED);
    return typeof on === "string" ? on : difficultyPart(on, NO_OTHERS);
  };
  assert.match(String(part(set(4, 1))), /at least 10/);
  const equal = set(30, 2);
  for (const row of equal.rows) row.models.small = { answer: null, score: 1 };
  assert.match(String(part(equal)), /weak model|not better/);
  const alone = set(30, 2);
  for (const row of alone.rows) delete row.models.small;
  assert.match(String(part(alone)), /weak/);
  assert.match(
    String(choose(set(30, 2), { weak: ["unheard"], strong: undefined })),
    /no scores of "unheard".*small, big/,
  );
  assert.match(String(choosePanel(set(30, 2), [], { weak: ["small"], strong: "big" })), /too few/);
});

test("keeps each group in one fold and fills every fold", () => {
  const keys = Array.from({ length: 100 }, (_, at) => `g${at % 20}`);
  const fold = folds(keys, 5, 1);
  for (const [at, key] of keys.entries()) assert.equal(fold[at], fold[keys.indexOf(key)]);
  assert.deepEqual(new Set(fold).size, 5);
  assert.deepEqual(folds(keys, 5, 1), fold);
});

test("reads a file line by line, counts invalid lines and skips replies without a score", () => {
  const folder = mkdtempSync(join(tmpdir(), "recorded-"));
  try {
    const path = join(folder, "some.jsonl");
    const row = {
      prompt: "p",
      models: { a: { answer: null, score: null }, b: { answer: "x", score: 1, cost_usd: 0.5 }, c: 3 },
    };
    writeFileSync(path, [JSON.stringify(row), "{broken", "[]", '{"id":"1","model":"m","output":"{}"}', ""].join("\n"));
    const file = readRecorded(path);
    assert.equal(file.name, "some");
    assert.equal(file.skipped, 2);
    assert.deepEqual(file.raw, [{ id: "1", model: "m", output: "{}" }]);
    assert.deepEqual(file.rows, [
      { id: "1", group: "", prompt: "p", gold: null, models: { b: { answer: "x", score: 1, cost_usd: 0.5 } } },
    ]);
    writeFileSync(path, "nothing\n");
    assert.throws(() => readRecorded(path), /no recorded answers/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
