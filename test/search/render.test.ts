import assert from "node:assert/strict";
import { test } from "vitest";
import { listSources, renderResults } from "../../src/search/render.ts";

const results = [
  { title: "First", url: "https://a.example/", text: "Some text.", published: "2026-03-01" },
  { title: "Second", url: "https://b.example/x", text: "" },
];

test("numbers results with title, address and text", () => {
  assert.equal(
    renderResults(results),
    "[1] First (2026-03-01)\nhttps://a.example/\nSome text.\n\n[2] Second\nhttps://b.example/x",
  );
  assert.equal(renderResults([]), "");
});

test("numbers sources as the answer cites them", () => {
  assert.equal(listSources(results), "[1] https://a.example/ [2] https://b.example/x");
});
