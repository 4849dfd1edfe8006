import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { test as base, describe } from "vitest";
import { prefixOf } from "../../src/admission/secret.ts";
import { fixture } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";
import { type ConsoleTest, openConsole, signIn, skipReason, visit } from "./chromium.ts";

/** The tests share a service. Each has a session of its own, and leaves no cap behind that concerns the others. */
const test = base
  .extend("console", { scope: "file" }, fixture(openConsole))
  .extend("started", async ({ console }, { onCleanup }) => {
    onCleanup(async () => assert.deepEqual(console.problems, []));
    return console;
  });

/** Sends requests of a user until one gets a status: a change of caps takes up to a second. @returns the last answer */
async function answered({ service }: ConsoleTest, user: string, status: number): Promise<string> {
  let text = "";
  await until(async () => {
    const response = await service.post("/v1/generate", { prompt: "What is 6 * 7?", user });
    text = await response.text();
    return response.status === status;
  });
  return text;
}

/** Sets a cap on requests of a day in the dialog that the page offers. */
async function setCap(page: Page, whose: string, amount: string, ends = "Never"): Promise<void> {
  await page.getByRole("button", { name: `Set a cap for ${whose}` }).click();
  const dialog = page.getByRole("dialog", { name: `Set a cap for ${whose}` });
  await dialog.getByLabel("Figure").selectOption("Requests");
  await dialog.getByLabel("Amount").fill(amount);
  await dialog.getByLabel("Ends").selectOption(ends);
  await dialog.getByRole("button", { name: "Set the cap" }).click();
  await dialog.waitFor({ state: "detached" });
}

/** Waits until a number of requests is in the figures. */
function counted({ service }: ConsoleTest, requests: number): Promise<void> {
  return until(async () => {
    const { totals } = (await (await service.get("/v1/metrics")).json()) as { totals: { requests: number } };
    return totals.requests === requests;
  });
}

/** Runs in the page: files are written to the browser's private storage, in place of where a person would choose. */
const PICKER = `
  window.showSaveFilePicker = async ({ suggestedName }) =>
    (await navigator.storage.getDirectory()).getFileHandle(suggestedName, { create: true });`;

/** Runs in the page: the text of a file that was written there. */
const readFile = (ending: string) => `
  (async () => {
    for await (const [name, handle] of (await navigator.storage.getDirectory()).entries())
      if (name.endsWith("${ending}")) return (await handle.getFile()).text();
  })()`;

describe.skipIf(skipReason !== undefined)("caps and exports in the console", () => {
  test("exports usage as CSV, JSON lines and FOCUS, whose credits are those of the ledger", async ({ started }) => {
    const { service, open, token } = started;
    let spent = 0;
    for (const user of ["u-1", "u-1", "u-2", undefined]) {
      const answer = await service.post("/v1/generate", { prompt: "What is 6 * 7?", ...(user ? { user } : {}) });
      const { usage } = (await answer.json()) as { usage: { credits: number } };
      spent += usage.credits;
    }
    await counted(started, 4);
    const page = await open("/console/subjects");
    await page.addInitScript(PICKER);
    await page.reload();
    await signIn(page, token);
    await page.getByRole("link", { name: "u-2" }).waitFor();
    await page.getByRole("button", { name: "Export" }).click();
    const dialog = page.getByRole("dialog", { name: "Export usage" });
    const save = async (format: string) => {
      await dialog.getByText(format, { exact: true }).click();
      await dialog.getByRole("button", { name: "Save the file" }).click();
      await dialog.getByText("The file has 3 rows.").waitFor();
    };

    await save("JSON lines");
    const lines = (await page.evaluate<string>(readFile("jsonl"))).trimEnd().split("\n");
    const rows = lines.map((line) => JSON.parse(line) as { user: string; requests: number; credits: string });
    assert.deepEqual(rows.map(({ user, requests }) => [user, requests]).sort(), [
      ["", 1],
      ["u-1", 2],
      ["u-2", 1],
    ]);
    const exported = rows.reduce((sum, { credits }) => sum + Number(credits), 0);
    assert.equal(exported.toFixed(6), spent.toFixed(6));

    await save("CSV");
    assert.match(await page.evaluate<string>(readFile("csv")), /^day,workspace,user,requests,/);

    const focus = async () => {
      await save("FOCUS 1.3");
      const [head = "", first = ""] = (await page.evaluate<string>(readFile("csv"))).split("\n");
      return (name: string) => first.split(",")[head.split(",").indexOf(name)];
    };
    const inCredits = await focus();
    assert.deepEqual([inCredits("BillingCurrency"), inCredits("PricingUnit")], ["XXX", "tokens"]);
    const currency = dialog.getByLabel("Currency of the costs");
    const price = dialog.getByLabel("Price of a credit");
    const invalid = (name: string) => dialog.locator(`#${name}:invalid`).count();
    await currency.fill(" EUR");
    assert.deepEqual([await invalid("currency"), await invalid("price")], [0, 1]);
    await currency.fill("");
    await price.fill("0.01 ");
    assert.deepEqual([await invalid("currency"), await invalid("price")], [1, 0]);
    await currency.fill(" EUR");
    const inEuros = await focus();
    assert.equal(inEuros("BillingCurrency"), "EUR");
    assert.equal(Number(inEuros("BilledCost")).toFixed(9), (Number(inCredits("BilledCost")) / 100).toFixed(9));
  });

  test("downloads the export where the browser does not let pages choose a file", async ({ started }) => {
    const { open, token } = started;
    const page = await open("/console/subjects");
    await page.addInitScript("window.showSaveFilePicker = undefined;");
    await page.reload();
    await signIn(page, token);
    await page.getByRole("button", { name: "Export" }).click();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save the file" }).click();
    assert.match((await download).suggestedFilename(), /^chorus-usage-\d{4}-\d\d-\d\d\.csv$/);
    await page.getByText("The file has 3 rows.").waitFor();
  });

  test("says what the browser says when the disk is full", async ({ started }) => {
    const { open, token } = started;
    const page = await open("/console/subjects");
    await page.addInitScript(`
      const full = async () => { throw new DOMException("The disk is full.", "QuotaExceededError"); };
      const file = { write: full, close: full, abort: async () => undefined };
      window.showSaveFilePicker = async () => ({ createWritable: async () => file });`);
    await page.reload();
    await signIn(page, token);
    await page.getByRole("button", { name: "Export" }).click();
    await page.getByRole("button", { name: "Save the file" }).click();
    await page.getByText("The disk is full.").waitFor();
    assert.equal(await page.getByText("The service cannot be reached").count(), 0);
  });

  test("rotates a key: the new one has its caps, the old one stops", async ({ started }) => {
    const { service, open, token } = started;
    const page = await open("/console/keys");
    await signIn(page, token);
    await page.getByRole("button", { name: "Create a key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("importer");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    const old = await page.locator("[data-secret]").innerText();
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page.getByRole("button", { name: "Caps of importer" }).click();
    await setCap(page, "this key", "1");
    await page.getByRole("dialog").getByText("0 of 1").waitFor();
    await page.keyboard.press("Escape");

    const rotate = async (end: string) => {
      await page.getByRole("button", { name: "Rotate importer" }).first().click();
      const dialog = page.getByRole("dialog", { name: "Rotate importer?" });
      await dialog.getByLabel("The old key stops").selectOption(end);
      const { promise: held, resolve: goOn } = Promise.withResolvers<void>();
      await page.route("**/CreateKey", (route) => held.then(() => route.continue()), { times: 1 });
      await dialog.getByRole("button", { name: "Rotate", exact: true }).click();
      // Without its dialog, the only copy of the secret would be lost.
      await dialog.getByRole("button", { name: "Rotating…" }).waitFor();
      for (let i = 0; i < 2; i++) await page.keyboard.press("Escape");
      await page.mouse.click(5, 5);
      assert.ok(await dialog.getByRole("button", { name: "Cancel" }).isDisabled());
      goOn();
      const secret = await page.locator("[data-secret]").innerText();
      await page.getByRole("button", { name: "I have stored it" }).click();
      await page.getByText("Rotated the key importer.").last().waitFor();
      return secret;
    };
    const statusOf = async (secret: string) =>
      (await service.post("/v1/generate", { prompt: "What is 6 * 7?" }, { "x-api-key": secret })).status;
    const rows = page.getByRole("region", { name: "Keys", exact: true }).getByRole("row", { name: /^importer/ });
    /** Waits until the list has loaded again and shows the key, by the first characters of its secret. */
    const listed = (secret: string) => rows.filter({ hasText: prefixOf(secret) }).waitFor();
    const second = await rotate("At once");
    await listed(second);
    await until(async () => (await statusOf(old)) === 401);
    await until(async () => (await statusOf(second)) === 429);
    const third = await rotate("In a day");
    assert.equal(await statusOf(third), 200);
    assert.equal(await statusOf(second), 429);
    await listed(third);
    assert.equal(await rows.count(), 2);
    const capped = page.locator("main [aria-label=Caps] tbody .name").filter({ hasText: "importer" });
    const names = [second, third].map((secret) => `importer (${prefixOf(secret)}…)`).toSorted();
    await until(async () => `${(await capped.allInnerTexts()).toSorted()}` === `${names}`);
    assert.match(await rows.last().innerText(), /20\d\d-\d\d-\d\d\s/);
    for (const left of [1, 0]) {
      await page.getByRole("button", { name: "Revoke importer" }).first().click();
      await page.getByRole("button", { name: "Revoke the key" }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      // Until the list is loaded again, its first row is the same key.
      await until(async () => (await rows.count()) === left);
    }
  });

  test("caps a key in its drawer, and splits the overview by user", async ({ started }) => {
    const page = await started.open("/console/keys");
    await signIn(page, started.token);
    await page
      .getByRole("button", { name: /^Caps of/ })
      .first()
      .click();
    const drawer = page.getByRole("dialog", { name: /^Caps of/ });
    await drawer.getByText("This key has no cap.").waitFor();
    // The caps of all keys, below the drawer. Revoked keys keep theirs.
    const all = page.locator("main [aria-label=Caps] tbody tr");
    const before = await all.count();
    await setCap(page, "this key", "1");
    await drawer.getByText(/^\d+ of 1$/).waitFor();
    await until(async () => (await all.count()) === before + 1);
    assert.match(await answered(started, "u-1", 429), /"key:requests_per_day"/);
    await drawer.getByRole("button", { name: "Clear Requests a day" }).click();
    await page.getByRole("button", { name: "Clear the cap" }).click();
    await drawer.getByText("This key has no cap.").waitFor();
    await until(async () => (await all.count()) === before);
    await answered(started, "u-1", 200);
    await page.keyboard.press("Escape");
    await drawer.waitFor({ state: "detached" });

    await visit(page, "Overview");
    await page.getByLabel("Group by").selectOption("By user");
    await page.getByRole("heading", { name: "Usage of users" }).first().waitFor();
    await page.getByRole("link", { name: "u-1", exact: true }).click();
    await page.getByRole("heading", { name: "Caps of u-1" }).waitFor();
    assert.match(page.url(), /subject=user%3Au-1/);
  });

  test("sets a cap for each user, an exception, and a raise, and clears them", async ({ started }) => {
    const page = await started.open("/console/subjects");
    await signIn(page, started.token);
    await page.getByText("There is no cap.").waitFor();

    await page.getByRole("button", { name: "Set a cap for each user" }).click();
    await page.getByLabel("Figure").selectOption("Requests at a time");
    assert.equal(await page.getByLabel("Period, UTC").count(), 0, "requests at a time have no period");
    await page.getByLabel("Amount").fill(" 0.5 ");
    await page.getByRole("button", { name: "Set the cap" }).click();
    assert.equal(await page.evaluate("document.activeElement.validity.patternMismatch"), true);
    await page.getByRole("button", { name: "Cancel" }).click();

    await setCap(page, "each user", "1");
    const caps = page.getByRole("table", { name: "Caps" }).or(page.getByRole("region", { name: "Caps" }));
    await caps.getByText("user:*").waitFor();
    await answered(started, "u-8", 200);
    assert.match(await answered(started, "u-8", 429), /"user:requests_per_day"/);

    await page.goto("/console/subjects?subject=user%3Au-8");
    await caps.getByText("template").waitFor();
    await caps.getByText("reached", { exact: true }).waitFor();
    await setCap(page, "u-8", "2");
    await caps.getByText("template").waitFor({ state: "detached" });
    await answered(started, "u-8", 200);
    await answered(started, "u-8", 429);
    await answered(started, "u-9", 200);
    await answered(started, "u-9", 429);

    await setCap(page, "u-8", "100", "In an hour");
    await caps.getByText(/^\d{4}-\d\d-\d\d \d\d:\d\d$/).waitFor();
    await answered(started, "u-8", 200);

    const clear = caps.getByRole("button", { name: "Clear Requests a day of user:u-8" });
    for (const left of [1, 0]) {
      await clear.first().click();
      await page.getByText("It no longer limits user:u-8: requests a day.").waitFor();
      await page.getByRole("button", { name: "Clear the cap" }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await until(async () => (await clear.count()) === left);
    }
    await caps.getByText("template").waitFor();
    await answered(started, "u-8", 429);

    await visit(page, "Audit log");
    await page.getByText("Cleared the cap of").first().waitFor();
  });
});
