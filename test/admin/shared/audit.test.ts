import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "vitest";

test("no statement updates or deletes rows of the audit or the ledger", () => {
  const src = resolve(import.meta.dirname, "../../../src");
  let files = 0;
  for (const entry of readdirSync(src, { recursive: true, withFileTypes: true })) {
    if (!/\.(ts|sql)$/.test(entry.name)) continue;
    const text = readFileSync(join(entry.parentPath, entry.name), "utf8");
    assert.doesNotMatch(text, /\b(update|delete\s+from|truncate(\s+table)?)\s+(only\s+)?(audit|ledger)\b/i, entry.name);
    files++;
  }
  assert.ok(files > 50);
});
