import assert from "node:assert/strict";
import { test } from "vitest";
import { type ContextRow, contextsPart } from "../../eval/contexts.ts";
import { missedByContexts } from "../../eval/gates.ts";
import type { Context } from "../../src/engine/difficulty/difficulty.ts";
import { rowsOf } from "./rows.ts";

const choice = { weak: ["one", "two"], strong: "strong", panel: [] };

test("compares questions under system texts and in templates with the bare ones", async () => {
  // A rater that takes questions for prose if there is a system text that speaks of a bank.
  const rate = (_: string, context?: Context) => ({
    difficulty: 0,
    kind: context?.instructions.some((text) => text.includes("Bank")) ? ("prose" as const) : ("closed" as const),
    explain: () => [],
  });
  const rows = rowsOf({ one: "AABBA", two: "AAABA", strong: "AAAAA" });
  const found = new Map(
    (await contextsPart("gsm8k", rows, choice, { rate }))?.map((row): [string, ContextRow] => [row.context, row]),
  );
  assert.equal(found.size, 13);
  assert.deepEqual([found.get("bare")?.accuracy, found.get("bare")?.gain], [4 / 5, 0]);
  assert.deepEqual([found.get("system: tutor")?.accuracy, found.get("system: tutor")?.extra_cost], [4 / 5, 0]);
  assert.equal(found.get("system: bank")?.accuracy, 3 / 5);
  assert.equal(await contextsPart("another", rows, choice, { rate }), undefined);
});

test("rewords questions about the result of a program, and leaves out others", async () => {
  const asked: string[] = [];
  const rate = (text: string) => {
    asked.push(text);
    return { difficulty: 0, kind: "output" as const, explain: () => [] };
  };
  const [row, other] = rowsOf({ one: "AA", two: "AA", strong: "AA" });
  assert.ok(row && other);
  row.prompt = "Complete it.\n[PYTHON]\ndef f(n):\n    return n\nassert f(3) == ??\n[/PYTHON]";
  const found = await contextsPart("crux", [row, other], choice, { rate });
  assert.deepEqual(
    found?.map(({ rows }) => rows),
    [2, 1, 1, 1, 1, 1],
  );
  assert.ok(asked.includes("def f(n):\n    return n\n\nGive the value of f(3) as a Python literal, nothing else."));
});

test("names the contexts that cost accuracy or calls", () => {
  const row = (context: string, gain: number, extra_cost: number) => ({
    ...{ context, gain, extra_cost, rows: 9, accuracy: 0, strong_share: 0 },
  });
  assert.deepEqual(missedByContexts("gsm8k", [row("system: bank", -0.004, 0.09), row("reworded: a", -0.009, 0)]), []);
  assert.equal(missedByContexts("gsm8k", [row("system: bank", -0.006, 0), row("bare", 0, 0.2)]).length, 2);
});
