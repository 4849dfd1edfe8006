import assert from "node:assert/strict";
import { test } from "vitest";
import { changesOf } from "../../console/src/audit/changes.ts";
import { sentenceOf } from "../../console/src/audit/sentence.ts";
import { downloaded, openConsole, purchase, signIn, skipReason, visit } from "./chromium.ts";

/** Runs in the page: the number of identifiers that go over the end of their cell. */
const COVERED = `[...document.querySelectorAll("td code")].filter(
  (code) => code.getBoundingClientRect().right > code.closest("td").getBoundingClientRect().right,
).length`;

test("shows the owner who changed what, and exports it", async (t) => {
  t.skip(skipReason !== undefined, skipReason);
  const started = await openConsole(t);
  await purchase(started, "100");
  const page = await started.open();
  await signIn(page, started.token);
  await visit(page, "Keys");
  await page.getByRole("button", { name: "Create a key" }).click();
  await page.getByLabel("Name", { exact: true }).fill(`Invoices ${"x".repeat(190)}`);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "I have stored it" }).click();
  await visit(page, "Audit log");
  const rows = page.getByRole("row");
  assert.match(await rows.filter({ hasText: "Created the key Invoices" }).innerText(), /Owner tok_\w+[\s\S]*scopes/);
  assert.match(await rows.filter({ hasText: "Booked a purchase" }).innerText(), /Operator [\s\S]*amount 100/);
  for (const width of [1280, 1024]) {
    await page.setViewportSize({ width, height: 900 });
    assert.equal(await page.evaluate(COVERED), 0, `at ${width} px`);
  }
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export as CSV" }).click();
  const csv = await downloaded(download);
  assert.match(csv, /\r\n\d{4}-\S+Z,key\.create,owner,tok_\w+,"\{""/);

  await page.getByLabel("Changes", { exact: true }).first().selectOption("Credit");
  await rows.filter({ hasText: "Created the key Invoices" }).waitFor({ state: "detached" });
  await rows.filter({ hasText: "Booked a purchase" }).waitFor();
  await page.getByLabel("Made by").selectOption("By the owner token");
  await page.getByText("No change matches.").waitFor();
  await page.getByLabel("Changes", { exact: true }).first().selectOption("Any change");
  await page.getByLabel("Last day").fill("2020-01-01");
  await page.getByText("No change matches.").waitFor();
  await page.getByLabel("Last day").fill("");
  await page.getByLabel("First day").fill("2020-01-01");
  await rows.filter({ hasText: "Created the key Invoices" }).waitFor();
  // One token, chosen in the table; the file has what the table has.
  await page.getByLabel("Made by").selectOption("By anyone");
  await rows.filter({ hasText: "Booked a purchase" }).getByRole("button", { name: /^tok_/ }).click();
  await rows.filter({ hasText: "Created the key Invoices" }).waitFor({ state: "detached" });
  await page.reload();
  await rows.filter({ hasText: "Booked a purchase" }).waitFor();
  const next = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export as CSV" }).click();
  const narrowed = await downloaded(next);
  assert.match(narrowed, /credit\.purchase,operator/);
  assert.doesNotMatch(narrowed, /key\.create/);
  await page.getByRole("button", { name: "Show the changes of all" }).click();
  await rows.filter({ hasText: "Created the key Invoices" }).waitFor();
  assert.deepEqual(started.problems, []);
});

test("writes a change as a sentence, and one that is not known in its own words", () => {
  const sentence = (action: string, ...details: [string, string][]) => {
    const { text, of, others } = sentenceOf(action, details);
    return [`${text} ${of}`.trim(), others.map(([name]) => name)];
  };
  assert.deepEqual(sentence("key.create", ["id", "key_1"], ["name", "Bot"]), ["Created the key Bot", ["id"]]);
  assert.deepEqual(sentence("key.create", ["id", "key_1"], ["name", "none"]), ["Created the key key_1", ["name"]]);
  assert.deepEqual(sentence("cap.clear"), ["cap clear", []]);
  assert.deepEqual(sentence("limits.set", ["set", "a 1"]), ["Changed limits", ["set"]]);
  assert.deepEqual(sentence("moon.land", ["on", "foot"]), ["moon land", ["on"]]);
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
