import assert from "node:assert/strict";
import { test } from "vitest";
import { missedByPanels } from "../../eval/gates.ts";
import { panelsPart, votersOf } from "../../eval/panels.ts";
import { voteConstants } from "../../eval/vote-constants.ts";
import { rowsOf } from "./rows.ts";

/** Six models that err on different questions, and one that is right on nearly all. */
function rows(hasBest: boolean) {
  const errs = (own: number) => Array.from({ length: 60 }, (_, at) => (at % 6 === own ? "BCDEFG"[own] : "A")).join("");
  const models = Object.fromEntries(Array.from({ length: 6 }, (_, at) => [`m${at}`, errs(at)]));
  return rowsOf(hasBest ? { ...models, best: `B${"A".repeat(59)}` } : models);
}

test("measures random panels with and without knowledge of their members", () => {
  const near = panelsPart(votersOf(rows(false)), new Map());
  assert.deepEqual(near[0]?.panels, "near-peers");
  assert.ok((near[0]?.mean_gain ?? 0) > 10);
  const dominated = panelsPart(votersOf(rows(true)), new Map()).filter(({ panels }) => panels === "a dominant member");
  assert.deepEqual(dominated.map(({ knows }) => knows).slice(0, 2), ["accuracies", "tiers: the best is strong"]);
  assert.equal(dominated[1]?.worst_gain, 0);
});

test("uses accuracies of another file for models of the same name", () => {
  const other = new Map(Array.from({ length: 6 }, (_, at) => [`m${at}`, 0.5 + at / 20]));
  const known = panelsPart(votersOf(rows(false)), other).filter(({ knows }) => knows === "accuracies of another kind");
  assert.equal(known[0]?.number, 100);
});

test("names panels that miss their gate", () => {
  const row = { number: 1, mean_gain: 1, worst_gain: -2, significantly_below: 0, plain_plurality: 2 };
  const missed = (panels: string, knows: string) => missedByPanels("f", [{ ...row, panels, knows }]).length;
  assert.equal(missed("near-peers", "accuracies"), 1);
  assert.equal(missed("a dominant member", "tiers: the best is strong"), 1);
  assert.equal(missed("a dominant member", "nothing"), 0);
});

test("prints the constants that are best on the other files", () => {
  const table = voteConstants(
    new Map([
      ["one", votersOf(rows(false))],
      ["two", votersOf(rows(true))],
    ]),
  );
  assert.match(table, /chosen without one \|/);
});
