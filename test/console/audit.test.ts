import assert from "node:assert/strict";
import { test } from "vitest";
import { changesOf } from "../../console/src/audit/changes.ts";
import { downloaded, openConsole, purchase, signIn, skipReason, visit } from "./chromium.ts";

test("shows the owner who changed what, and exports it", async (t) => {
  t.skip(skipReason !== undefined, skipReason);
  const started = await openConsole(t);
  await purchase(started, "100");
  const page = await started.open();
  await signIn(page, started.token);
  await visit(page, "Keys");
  await page.getByRole("button", { name: "Create a key" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Invoices");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "I have stored it" }).click();
  await visit(page, "Audit log");
  const rows = page.getByRole("row");
  assert.match(await rows.filter({ hasText: "key create" }).first().innerText(), /Owner tok_\w+[\s\S]*name Invoices/);
  assert.match(await rows.filter({ hasText: "credit purchase" }).innerText(), /Operator [\s\S]*amount 100/);
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export as CSV" }).click();
  const csv = await downloaded(download);
  assert.match(csv, /\r\n\d{4}-\S+Z,key\.create,owner,tok_\w+,"\{""/);
  assert.deepEqual(started.problems, []);
});

test("writes the details of a change as names and values", () => {
  assert.deepEqual(
    changesOf(
      '{"name":"","scopes":["a","b"],"keys":[],"limit":{"from":1,"to":null},"expires_at":"2026-11-22T13:20:52.156Z"}',
    ),
    [
      ["name", "none"],
      ["scopes", "a, b"],
      ["keys", "none"],
      ["limit", "from 1, to none"],
      ["expires_at", "2026-11-22 13:20:52"],
    ],
  );
});
