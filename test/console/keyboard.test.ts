import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { test } from "vitest";
import { openConsole, signIn, skipReason } from "./chromium.ts";

/** Text or name of the focused element. */
const FOCUSED = `(() => {
  const { activeElement: element } = document;
  return element.getAttribute("aria-label") ?? element.labels?.[0]?.textContent ?? element.textContent;
})()`;

/** Waits for the named element, because pages load their data, and moves the focus to it with the tabulator. */
async function tabTo(page: Page, name: string): Promise<void> {
  const named = page.getByLabel(name, { exact: true }).or(page.getByText(name, { exact: true }));
  await named.first().waitFor();
  for (let i = 0; i < 60; i++) {
    if ((await page.evaluate<string>(FOCUSED)).trim() === name) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`The tabulator does not reach ${name}.`);
}

/** How a person types: the page draws itself in between. */
const PACE = { delay: 60 };

async function press(page: Page, name: string): Promise<void> {
  await tabTo(page, name);
  await page.keyboard.press("Enter");
}

test("sets and removes alerts with the keyboard alone", async (t) => {
  t.skip(skipReason !== undefined, skipReason);
  const { open, token, problems } = await openConsole(t);
  const page = await open("/console/alerts");
  await page.getByLabel("Owner token").and(page.locator(":focus")).waitFor();
  await page.keyboard.type(token);
  await page.keyboard.press("Enter");
  await page.getByText("Set at least one threshold.").waitFor();

  await tabTo(page, "Webhook URL or e-mail addresses");
  await page.keyboard.type("https://example.com/hook");
  await tabTo(page, "Requests failed");
  await page.keyboard.type("20");
  await press(page, "Save");
  await page.getByText("Store it now.").waitFor();
  await press(page, "I have stored it");
  await page.getByText("Store it now.").waitFor({ state: "detached" });

  await press(page, "Remove");
  await press(page, "Remove the alerts");
  await page.getByText("Removed the alerts.").waitFor();
  assert.deepEqual(problems, []);
});

test("goes to a page, to keys and to a run with Ctrl+K", async (t) => {
  t.skip(skipReason !== undefined, skipReason);
  const { open, token, problems } = await openConsole(t);
  const page = await open("/console", { viewport: { width: 390, height: 800 } });
  await signIn(page, token);
  const goTo = async (text: string, ...keys: string[]) => {
    await page.keyboard.press("Control+k");
    const input = page.getByRole("textbox", { name: "Where to go" });
    await input.and(page.locator(":focus")).waitFor();
    await page.keyboard.type(text);
    for (const key of keys) await page.keyboard.press(key);
    await input.waitFor({ state: "detached" });
  };
  await goTo("led", "Enter");
  await page.getByRole("heading", { level: 1, name: "Ledger" }).and(page.locator(":focus")).waitFor();
  await goTo("key", "Tab", "Tab", "Enter");
  await page.waitForURL(/\/keys\?search=key$/);
  // The page is open already: the field follows the address, and not the other way round.
  await goTo("other", "Tab", "Enter");
  await page.waitForURL(/\/keys\?search=other$/);
  await page.waitForTimeout(400);
  assert.equal(await page.getByLabel("Find", { exact: true }).inputValue(), "other");
  assert.match(page.url(), /\/keys\?search=other$/);
  const id = `gen_${"0".repeat(32)}`;
  await goTo(id, "Enter");
  await page.waitForURL(new RegExp(`/runs/${id}$`));
  await goTo("nothing", "Escape");
  assert.deepEqual(problems, []);
});

test("chooses the days of a range by typing their digits", async (t) => {
  t.skip(skipReason !== undefined, skipReason);
  const { open, token, problems } = await openConsole(t);
  const page = await open("/console/ledger?from=2026-09-21&to=2026-11-28");
  await signIn(page, token);
  // On the way to December is January, which is before the first day.
  await page.getByLabel("Last day").focus();
  await page.keyboard.type("12", PACE);
  await page.waitForURL(/\?from=2026-09-21&to=2026-12-28$/);
  // On the way to 2025 are the years 2, 20 and 202.
  await page.getByLabel("First day").focus();
  await page.keyboard.type("0901", PACE);
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.postData() ?? ""));
  await page.keyboard.type("2025", PACE);
  await page.waitForURL(/\?from=2025-09-01&to=2026-12-28$/);
  assert.doesNotMatch(asked.join(), /"0/);
  // A day after the last one changes nothing, and does not stay in the field.
  await page.getByLabel("Last day").focus();
  await page.getByLabel("First day").focus();
  await page.keyboard.type("09012027", PACE);
  await page.getByLabel("Last day").focus();
  assert.equal(await page.getByLabel("First day").inputValue(), "2025-09-01");
  assert.deepEqual(problems, []);
});

test("takes no year of five digits, which the service could not express", async (t) => {
  t.skip(skipReason !== undefined, skipReason);
  const { open, token, problems } = await openConsole(t);
  const page = await open("/console/ledger?from=2026-09-21&to=2026-11-28");
  await signIn(page, token);
  await page.getByLabel("Last day").fill("20266-11-28");
  await page.getByLabel("First day").focus();
  assert.match(page.url(), /\?from=2026-09-21&to=2026-11-28$/);
  assert.equal(await page.getByLabel("Last day").inputValue(), "2026-11-28");
  await page.goto("/console/keys");
  await page.getByRole("button", { name: "Create a key" }).click();
  await page.getByLabel("Expires").selectOption("date");
  await page.getByLabel("Last day, UTC").fill("20266-11-28");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByLabel("Last day, UTC").and(page.locator(":invalid")).waitFor();
  assert.equal(await page.getByRole("alert").count(), 0);
  assert.deepEqual(problems, []);
});

test("signs in, makes a key, asks and revokes with the keyboard alone", async (t) => {
  t.skip(skipReason !== undefined, skipReason);
  const { open, token, problems } = await openConsole(t);
  const page = await open("/console/keys");
  await page.getByLabel("Owner token").and(page.locator(":focus")).waitFor();
  await page.keyboard.type(token);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();

  await press(page, "Create a key");
  await page.getByLabel("Name", { exact: true }).and(page.locator(":focus")).waitFor();
  await page.keyboard.type("Invoices");
  await page.keyboard.press("Enter");
  await page.getByText("Store it now.").waitFor();
  await press(page, "I have stored it");
  await page.getByRole("link", { name: "Invoices" }).waitFor();

  await press(page, "Playground");
  await page.getByRole("heading", { level: 1, name: "Playground" }).waitFor();
  // The kind of input, then the text.
  await tabTo(page, "Prompt");
  await page.keyboard.press("Tab");
  await page.keyboard.type("What is a choir?");
  await page.keyboard.press("Control+Enter");
  await page.getByText("Done", { exact: true }).waitFor();

  await press(page, "Keys");
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await press(page, "Revoke Invoices");
  await press(page, "Revoke the key");
  await page.getByText("Revoked the key Invoices. It is refused within a second.").waitFor();
  assert.deepEqual(problems, []);
});
