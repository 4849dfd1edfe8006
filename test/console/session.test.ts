import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import type { Page } from "playwright-core";
import { test as base, describe } from "vitest";
import { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { fixture } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";
import { visit as goTo, openConsole, signIn, skipReason } from "./chromium.ts";

/** A page before sign-in. Each test has a new token, which ends the sessions of earlier tests. */
const test = base
  .extend("console", { scope: "file" }, fixture(openConsole))
  .extend("visit", async ({ console }, { onCleanup }) => {
    const workspaces = createClient(WorkspaceService, console.transport);
    const { token } = await workspaces.createOwnerToken({ workspace: "default" });
    const page = await console.open("/console/ledger");
    onCleanup(async () => {
      await page.context().close();
      assert.deepEqual(console.problems, []);
    });
    return { workspaces, token, page };
  });

const ledger = (page: Page) => page.getByRole("heading", { level: 1, name: "Ledger" }).waitFor();

describe.skipIf(skipReason !== undefined)("console sessions", () => {
  test("reports an invalid token", async ({ visit: { page } }) => {
    await page.getByLabel("Owner token").fill("ow_nothing");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("This token is not valid.").waitFor();
    const field = page.getByLabel("Owner token");
    assert.match((await field.getAttribute("aria-describedby")) ?? "", /^token-wrong token-help$/);
    assert.equal(await field.getAttribute("aria-invalid"), "true");
  });

  test("says what a token opens that belongs elsewhere, and gives the field the focus again", async ({
    visit: { page },
  }) => {
    const field = page.getByLabel("Owner token");
    await field.fill("op_0123456789");
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    const alert = page.getByRole("alert");
    await alert.getByText("This is an operator token.").waitFor();
    assert.ok(await field.evaluate((each) => each === document.activeElement));
    await field.fill("ck_0123456789");
    await page.keyboard.press("Enter");
    await alert.getByText("This is an API key").waitFor();
    await field.fill("op_0123456789");
    await page.keyboard.press("Enter");
    await alert.getByRole("link").click();
    await page.getByLabel("Operator token").fill("ow_0123456789");
    await page.keyboard.press("Enter");
    await alert.getByText("This is an owner token.").waitFor();
    const names = await page.locator("form input").evaluateAll((all) => all.map((each) => each.outerHTML));
    assert.match(names[0] ?? "", /autocomplete="username"/);
    assert.match(names[1] ?? "", /autocomplete="current-password"/);
  });

  test("opens with a sign-in link, once, and removes it from the address", async ({
    console,
    visit: { workspaces },
  }) => {
    const { path } = await workspaces.createSignInLink({ workspace: "default" });
    const page = await console.open(path);
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    assert.equal(new URL(page.url()).hash, "");
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await page.context().close();
    const other = await console.open(path);
    await other.getByText(/The sign-in link was used before or has expired/).waitFor();
    await other.getByRole("button", { name: "Try again" }).click();
    await other.getByLabel("Owner token").waitFor();
    await other.context().close();
  });

  test("opens with a sign-in link in a tab that shows the sign-in form", async ({
    console,
    visit: { page, workspaces },
  }) => {
    const link = async () => {
      const { path } = await workspaces.createSignInLink({ workspace: "default" });
      return new URL(path, console.service.url).href;
    };
    await page.goto("/console");
    await page.getByLabel("Owner token").waitFor();
    // Only the fragment of the address changes, so the browser loads no page.
    await page.goto(await link());
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Owner token").fill(await link());
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    assert.equal(new URL(page.url()).hash, "");
  });

  test("supports keyboard-only use", async ({ visit: { page, token } }) => {
    await page.goto("/console/keys");
    const focused = () => page.evaluate<string>("document.activeElement.textContent");
    const isTokenFocused = () => page.evaluate<boolean>("document.activeElement.matches('input')");
    await until(isTokenFocused);
    await page.keyboard.type(token);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
    for (let i = 0; i < 30 && (await focused()) !== "Create a key"; i++) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Create a key" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await until(async () => (await focused()) === "Create a key");
    for (let i = 0; i < 30 && (await focused()) !== "Ledger"; i++) await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await ledger(page);
    await until(async () => (await focused()) === "Ledger");
  });

  test("returns to the page after a new sign-in when the session ends", async ({
    visit: { page, token, workspaces },
  }) => {
    await signIn(page, token);
    // The new token ends the session, so a load that is under way would fail before the button is pressed.
    const movement = page.getByText("Movement", { exact: true });
    await movement.waitFor();
    const { token: next } = await workspaces.createOwnerToken({ workspace: "default" });
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByText(/^Your session has ended: it was idle for an hour/).waitFor();
    assert.equal(await movement.count(), 0, "hides the content of the page");
    await signIn(page, next);
    await ledger(page);
  });

  test("keeps the theme and the sign-out after a reload", async ({ visit: { page, token } }) => {
    await signIn(page, token);
    await page.getByLabel("Theme").selectOption("Dark");
    await page.reload();
    await ledger(page);
    assert.equal(await page.evaluate("getComputedStyle(document.documentElement).colorScheme"), "dark");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("You have signed out.").waitFor();
    await page.reload();
    await page.getByLabel("Owner token").waitFor();
  });

  test("follows a change of workspace in another tab", async ({ visit: { page, token, workspaces } }) => {
    await workspaces.createWorkspace({ name: "second" });
    const second = (await workspaces.createOwnerToken({ workspace: "second" })).token;
    await signIn(page, token);
    const other = await page.context().newPage();
    await other.goto("/console");
    await other.getByRole("button", { name: "Sign out" }).click();
    await signIn(other, second);
    await page.evaluate('document.dispatchEvent(new Event("visibilitychange"))');
    await page.getByText("second", { exact: true }).waitFor();
    await goTo(page, "Overview");
  });

  test("keeps the page and shows an error when the service is unreachable", async ({ onTestFinished }) => {
    const { open, transport, service, problems } = await openConsole({ onTestFinished });
    const workspaces = createClient(WorkspaceService, transport);
    await workspaces.createWorkspace({ name: "empty" });
    const { token } = await workspaces.createOwnerToken({ workspace: "empty" });
    const page = await open("/console/ledger");
    await signIn(page, token);
    await page.getByText("Nothing moved in this period.").waitFor();
    await service.stop();
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByRole("alert").getByText("The service cannot be reached.").waitFor();
    await page.getByText("Nothing moved in this period.").waitFor();
    assert.deepEqual(problems, []);
  });
});
