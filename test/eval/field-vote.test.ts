import assert from "node:assert/strict";
import { test } from "vitest";
import { fieldVotePart } from "../../eval/field-vote.ts";
import { rowsOf } from "./rows.ts";

const choice = (panel: string[]) => ({ weak: [], strong: undefined, panel });

test("repairs objects that each have one mistake by voting on each field", async () => {
  const rows = rowsOf({ one: "BAAAABAAAA", two: "ABAAAABAAA", three: "AABAAAABAA" });
  const part = (await fieldVotePart(rows, choice(["one", "two", "three"])))?.file_order;
  assert.deepEqual([part?.objects, part?.best, part?.majority, part?.accuracy], [2, 0, 0, 1]);
  assert.equal(part?.gain_over_majority, 1);
});

test("leaves out questions that do not fill an object", async () => {
  const part = await fieldVotePart(rowsOf({ one: "AAAAAAA", two: "AAAAAAA" }), choice(["one", "two"]));
  assert.deepEqual([part?.file_order?.objects, part?.objects, part?.groupings], [1, 10, 10]);
  assert.equal(await fieldVotePart(rowsOf({ one: "AAAA", two: "AAAA" }), choice(["one", "two"])), undefined);
  assert.equal(await fieldVotePart(rowsOf({ one: "AAAA-", two: "AAAAA" }), choice(["one", "two"])), undefined);
  assert.equal(await fieldVotePart(rowsOf({ one: "AAAAA" }), choice(["one"])), undefined);
});

test("groups a file with few rows several times, with the same result on each run", async () => {
  const rows = rowsOf({ one: "BAAAABAAAAABAAA", two: "AABAAAAAABAAAAA", three: "AAAAAAAAAAAAAAB" });
  const part = await fieldVotePart(rows, choice(["one", "two", "three"]));
  assert.equal(part?.objects, 30);
  assert.ok((part?.low ?? 0) < (part?.gain ?? 0) && (part?.gain ?? 0) < (part?.high ?? 0));
  assert.deepEqual(await fieldVotePart(rows, choice(["one", "two", "three"])), part);
});
