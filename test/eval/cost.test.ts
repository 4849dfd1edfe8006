import assert from "node:assert/strict";
import { test } from "vitest";
import { costPart } from "../../eval/cost.ts";
import { rowsOf } from "./rows.ts";

const ANSWERS = { one: "A".repeat(40), two: `B${"A".repeat(39)}`, strong: "A".repeat(40) };
const CHOSEN = { weak: ["one", "two"], strong: "strong", panel: ["one", "two", "strong"] };
const rounded = (part: object | undefined) =>
  JSON.parse(JSON.stringify(part ?? {}, (_, value) => (typeof value === "number" ? Number(value.toFixed(6)) : value)));

test("adds the cost of every call of a plan", async () => {
  const part = await costPart(rowsOf(ANSWERS, { one: 0.001, two: 0.002, strong: 0.01 }), CHOSEN);
  assert.deepEqual(rounded(part), { rows: 40, weak: 1, strong: 10, cascade: 3 + 10 / 40, panel: 13 });
});

test("omits a role without recorded costs", async () => {
  const rows = rowsOf(ANSWERS, { one: 0.001, two: 0.002 });
  assert.deepEqual(rounded(await costPart(rows, CHOSEN)), { rows: 40, weak: 1 });
  assert.equal(await costPart(rowsOf(ANSWERS), CHOSEN), undefined);
  assert.equal(await costPart(rows, { weak: [], strong: undefined, panel: [] }), undefined);
});

test("counts only questions with a known cost for every model", async () => {
  const rows = [...rowsOf(ANSWERS, { one: 0.001, two: 0.002, strong: 0.01 }), ...rowsOf(ANSWERS, { one: 0.5 })];
  assert.deepEqual(rounded(await costPart(rows, { ...CHOSEN, panel: [] })), {
    rows: 40,
    weak: 1,
    strong: 10,
    cascade: 3 + 10 / 40,
  });
});
