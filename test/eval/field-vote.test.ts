import assert from "node:assert/strict";
import { test } from "vitest";
import { fieldVotePart } from "../../eval/field-vote.ts";
import { rowsOf } from "./rows.ts";

const choice = (panel: string[]) => ({ weak: [], strong: undefined, panel });

test("objects that each have one mistake are repaired field by field, which no whole object can", async () => {
  const rows = rowsOf({ one: "BAAAABAAAA", two: "ABAAAABAAA", three: "AABAAAABAA" });
  const part = (await fieldVotePart(rows, choice(["one", "two", "three"])))?.file_order;
  assert.deepEqual([part?.objects, part?.best, part?.majority, part?.accuracy], [2, 0, 0, 1]);
  assert.equal(part?.gain_over_majority, 1);
});

test("questions that make no whole object are left out", async () => {
  const part = await fieldVotePart(rowsOf({ one: "AAAAAAA", two: "AAAAAAA" }), choice(["one", "two"]));
  assert.deepEqual([part?.file_order?.objects, part?.objects, part?.groupings], [1, 10, 10]);
  assert.equal(await fieldVotePart(rowsOf({ one: "AAAA", two: "AAAA" }), choice(["one", "two"])), undefined);
  assert.equal(await fieldVotePart(rowsOf({ one: "AAAA-", two: "AAAAA" }), choice(["one", "two"])), undefined);
  assert.equal(await fieldVotePart(rowsOf({ one: "AAAAA" }), choice(["one"])), undefined);
});

test("a file with few rows is grouped several times, the same each time it is read", async () => {
  const rows = rowsOf({ one: "BAAAABAAAAABAAA", two: "AABAAAAAABAAAAA", three: "AAAAAAAAAAAAAAB" });
  const part = await fieldVotePart(rows, choice(["one", "two", "three"]));
  assert.equal(part?.objects, 30);
  assert.ok((part?.low ?? 0) < (part?.gain ?? 0) && (part?.gain ?? 0) < (part?.high ?? 0));
  assert.deepEqual(await fieldVotePart(rows, choice(["one", "two", "three"])), part);
});
