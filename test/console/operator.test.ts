import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { test as base, describe } from "vitest";
import { openPool } from "../../src/store/pool.ts";
import { fixture } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";
import { downloaded, openConsole, skipReason, visit } from "./chromium.ts";

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const test = base.extend("console", { scope: "file" }, fixture(openConsole));

async function enter(page: Page, token: string): Promise<void> {
  await page.getByLabel("Operator token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}

async function assertAccessible(page: Page, name: string): Promise<void> {
  await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
  const { violations } = await page.evaluate<Pick<AxeResults, "violations">>("axe.run()");
  const found = violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)}`));
  assert.deepEqual(found, [], name);
  const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  assert.ok(overflow <= 0, `${name} is ${overflow} too wide`);
}

describe.skipIf(skipReason !== undefined)("the operator's pages", () => {
  test("open with the operator token alone, and close at sign-out", async ({ console: { open, service, token } }) => {
    const page = await open("/console/operator/models");
    await enter(page, token);
    await page.getByRole("alert").getByText("This is an owner token.").waitFor();
    await enter(page, service.operatorToken);
    await page.getByRole("heading", { level: 1, name: "Models" }).waitFor();
    await page.getByRole("rowheader", { name: "openai-fast" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("You have signed out.").waitFor();
    await page.reload();
    await page.getByLabel("Operator token").waitFor();
    await page.context().close();
  });

  test("let in a customer, sell credit and lift a limit", async ({ console: { open, service, problems } }) => {
    const page = await open("/console/operator/workspaces");
    await enter(page, service.operatorToken);
    await page.getByRole("button", { name: "New workspace" }).click();
    await page.getByRole("dialog").getByRole("textbox", { name: "Name" }).fill("acme.dev");
    await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { level: 1, name: "acme.dev" }).waitFor();
    assert.match(page.url(), /\/console\/operator\/workspaces\/acme\.dev$/);

    const credit = page.getByRole("form", { name: "Credit" });
    const book = async () => {
      await credit.getByLabel("Credits").fill("500");
      await credit.getByLabel("Reference").fill("INV-1");
      await credit.getByRole("button", { name: "Book" }).click();
    };
    await book();
    await page.getByText("Booked 500 credits.").waitFor();
    await book();
    await page.getByText(/^Booked before, at .*\. Nothing was booked now\.$/).waitFor();
    // The page has an address of its own, also for a name with a dot.
    await page.reload();
    await page.getByLabel("Balance in credits").getByText("500", { exact: true }).first().waitFor();

    const limits = page.getByRole("form", { name: "Limits" });
    await limits.getByLabel("Limit", { exact: true }).selectOption("requests per day");
    await limits.getByLabel("Value").fill("7");
    await limits.getByRole("button", { name: "Set the limit" }).click();
    await page.getByText("Set requests per day.").waitFor();
    const facts = page.locator("dl").filter({ hasText: "Identifier" });
    await facts.getByText("set by an operator").waitFor();
    await limits.getByLabel("Limit", { exact: true }).selectOption("requests per day");
    await limits.getByLabel("Value").fill("none");
    await limits.getByRole("button", { name: "Set the limit" }).click();
    await facts.getByText(/^no limit set by an operator$/).waitFor();
    await facts.getByText("requests per day").waitFor();

    const tier = page.getByRole("form", { name: "Tier" });
    await tier.getByLabel("Tier").fill("gold");
    await tier.getByRole("button", { name: "Set the tier" }).click();
    await tier.getByRole("alert").getByText("There is no such tier.").waitFor();

    await page.getByRole("button", { name: "Create a link" }).click();
    await page.getByText(/^It signs in one browser, once/).waitFor();
    await page.getByRole("link", { name: "Audit log", exact: true }).last().click();
    await page.getByText("Booked a purchase").waitFor();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export as CSV" }).click();
    assert.match(await downloaded(download), /,ws_\w+,acme\.dev\r\n/);
    await page.getByLabel("Changes", { exact: true }).first().selectOption("Tier");
    await page.getByText("No change matches.").waitFor();
    await page.goBack();
    await page.getByRole("heading", { level: 1, name: "acme.dev" }).waitFor();
    assert.deepEqual(problems, []);
    await page.context().close();
  });

  test("show use, revenue, cost, margin and what needs attention", async ({
    console: { open, service, vendor, problems },
  }) => {
    vendor.always({ text: "Many voices." });
    for (let i = 0; i < 3; i++) {
      const response = await service.post("/v1/generate", { prompt: "What is a choir?", effort: "low" });
      assert.equal(response.status, 200);
    }
    const page = await open("/console/operator");
    await enter(page, service.operatorToken);
    const sums = page.getByLabel("Sums of the period");
    await sums
      .getByText(/^Requests/)
      .first()
      .waitFor();
    // Replicas report their calls every ten seconds, and the page loads again after 15.
    const models = page.getByRole("region", { name: "Models by cost" });
    await until(async () => {
      await page.getByRole("button", { name: "Refresh" }).click();
      return (await models.getByRole("rowheader", { name: "openai-fast" }).count()) > 0;
    }, 1_000);
    assert.match(await sums.innerText(), /Revenue\s+[\d.]+ credits[\s\S]*Margin[\s\S]*CHORUS_USD_PER_CREDIT/);
    await page.getByText("Needs attention").waitFor();
    await visit(page, "Models");
    for (const name of ["Cost by model", "Revenue", "Cost of models", "Calls by model", "Failed calls by model"])
      await page.getByRole("heading", { name, exact: true }).waitFor();
    await page.goBack();
    await page.getByRole("link", { name: "default" }).click();
    await page.getByRole("heading", { level: 1, name: "default" }).waitFor();
    await page.getByLabel("Balance in credits").getByText("Granted").waitFor();
    await page.getByRole("region", { name: "Requests" }).getByRole("link").first().click();
    await page.getByRole("region", { name: "Calls of models" }).getByText("openai-fast").waitFor();
    await page.goBack();
    await page.getByRole("heading", { level: 1, name: "default" }).waitFor();
    await page.getByRole("link", { name: "Workspaces" }).last().click();
    const all = page.getByLabel("Sums of all workspaces");
    await all.getByText(/^\d+ failed$/).waitFor();
    assert.match(
      await all.innerText(),
      /^Workspaces\s+\d+\s+Balance\s+[\d.,]+ credits[\s\S]*Used, 24 hours\s+[\d.]+ credits/,
    );
    await page.getByLabel("Order").selectOption("Most credits used first");
    await page.waitForURL(/sort=spend/);
    await page.getByRole("rowheader").first().getByText("default").waitFor();
    await page.getByLabel("Order").selectOption("Newest first");
    await page.waitForURL(/sort=new/);
    await page.getByRole("rowheader").first().waitFor();
    await page.getByRole("searchbox", { name: "Find workspaces" }).fill("EFAU");
    await page.waitForURL(/search=EFAU/);
    await page.getByRole("link", { name: "default", exact: true }).waitFor();
    await page.getByRole("searchbox", { name: "Find workspaces" }).fill("nothing like it");
    await page.getByText("No workspace has this in its name.").waitFor();
    assert.deepEqual(problems, []);
    await page.context().close();
  });

  test("show what is learned, and forget it when asked", async ({ console: { open, service, problems } }) => {
    // Each answer tells the service which version of its model answers.
    for (const effort of ["low", "high"]) {
      const response = await service.post("/v1/generate", { prompt: "Write a poem about rain.", effort });
      assert.equal(response.status, 200);
    }
    const pool = openPool(service.databaseUrl, { max: 1 });
    const sums = () => pool.query("select from model_duels");
    try {
      await until(async () => (await pool.query("select from served_versions")).length === 2);
      await pool.query(
        `insert into model_duels select a.model, a.served, b.model, b.served, 'maths', 1200, 34
         from served_versions a join served_versions b on a.model < b.model`,
      );
      const page = await open("/console/operator/models");
      await enter(page, service.operatorToken);
      const table = page.getByRole("region", { name: "Learned" });
      await table.getByRole("rowheader", { name: "openai-strong" }).waitFor();
      const reset = page.getByRole("button", { name: "Reset…" });
      await reset.click();
      const dialog = page.getByRole("dialog", { name: "Reset what is learned?" });
      await dialog.getByRole("button", { name: "Keep it" }).click();
      await dialog.waitFor({ state: "detached" });
      assert.equal((await sums()).length, 1);
      await reset.click();
      await dialog.getByRole("button", { name: "Reset", exact: true }).click();
      await page.getByText("Forgot 1,234 graded disagreements.").waitFor();
      await page.getByText("No disagreement of models is graded yet.").waitFor();
      assert.equal(await reset.count(), 0);
      assert.equal((await sums()).length, 0);
      assert.deepEqual(problems, []);
      await page.context().close();
    } finally {
      await pool.end();
    }
  });

  test("show why a vendor refuses a model, and what to do", async ({
    console: { open, service, vendor, problems },
  }) => {
    const error = { message: "Incorrect API key provided: hunter2.", code: "invalid_api_key" };
    vendor.always({ status: 401, error });
    await (await service.post("/v1/generate", { prompt: "What is a choir?", effort: "low" })).text();
    const page = await open("/console/operator/models", { viewport: { width: 390, height: 800 } });
    await page.context().addInitScript(AXE);
    await page.reload();
    await enter(page, service.operatorToken);
    const row = page.getByRole("row", { name: "openai-fast" });
    await row.getByText(/^401 invalid_api_key, just now/).waitFor();
    await row.getByText("Down").waitFor();
    await row.getByText("The vendor says: Incorrect API key provided.").waitFor();
    await row.getByText("Set a valid OPENAI_API_KEY, then start again.").waitFor();
    assert.equal(await page.getByText("hunter2").count(), 0);
    await assertAccessible(page, "Models with a refused key");
    vendor.always({});
    assert.equal((await service.post("/v1/generate", { prompt: "What is a choir?", effort: "low" })).status, 200);
    await row.getByText("Healthy").waitFor();
    assert.equal(await row.getByText(/401/).count(), 0);
    assert.deepEqual(problems, []);
    await page.context().close();
  });

  test("test a model, and say why it does not answer", async ({ console: { open, service, vendor, problems } }) => {
    for (const width of [390, 1280]) {
      const page = await open("/console/operator/models", { viewport: { width, height: 800 } });
      await page.context().addInitScript(AXE);
      await page.reload();
      await enter(page, service.operatorToken);
      const { promise: mayAnswer, resolve: answer } = Promise.withResolvers<void>();
      vendor.always(async () => {
        await mayAnswer;
        return { text: "OK", usage: { input: 14, output: 2 } };
      });
      await page.getByRole("button", { name: "Test openai-fast" }).click();
      const dialog = page.getByRole("dialog", { name: "Test openai-fast" });
      await dialog.getByText("The model is asked for one word.").waitFor();
      answer();
      await dialog.getByText("It answers", { exact: true }).waitFor();
      await dialog.getByText("14 in, 2 out").waitFor();
      await assertAccessible(page, "A model that answers");
      vendor.always({ status: 403, error: { message: "Permission denied for hunter2", code: "denied" } });
      await dialog.getByRole("button", { name: "Test again" }).click();
      await dialog.getByText("It does not answer: 403 denied.").waitFor();
      await dialog.getByText("The vendor says: Permission denied.").waitFor();
      await dialog.getByText(/^Allow the account of OPENAI_API_KEY to use /).waitFor();
      assert.equal(await page.getByText("hunter2").count(), 0);
      await assertAccessible(page, "A model that does not answer");
      await dialog.getByRole("button", { name: "Done" }).click();
      await dialog.waitFor({ state: "detached" });
      vendor.always({});
      await page.context().close();
    }
    assert.deepEqual(problems, []);
  });

  test("disable a model, and enable it again", async ({ console: { open, service, problems } }) => {
    for (const width of [390, 1280]) {
      const page = await open("/console/operator/models", { viewport: { width, height: 800 } });
      await page.context().addInitScript(AXE);
      await page.reload();
      await enter(page, service.operatorToken);
      await page.getByRole("button", { name: "Disable openai-strong" }).click();
      const dialog = page.getByRole("dialog", { name: "Disable openai-strong?" });
      await dialog.getByText("It is the last strong model.").waitFor();
      await dialog.getByLabel("Reason").fill("answers nonsense");
      await assertAccessible(page, "Before a model is disabled");
      await dialog.getByRole("button", { name: "Disable", exact: true }).click();
      const row = page.getByRole("row", { name: "openai-strong" });
      await row.getByText("Disabled", { exact: true }).waitFor();
      await row.getByText(/^just now by tok_.*: answers nonsense$/).waitFor();
      await assertAccessible(page, "A disabled model");
      await page.route("**/EnableModel", (route) => route.abort(), { times: 1 });
      await page.getByRole("button", { name: "Enable openai-strong" }).click();
      await page.getByText(/^Not enabled\. /).waitFor();
      await page.getByRole("button", { name: "Enable openai-strong" }).click();
      await page.getByText("Enabled openai-strong. Requests call it again.").waitFor();
      await page.getByRole("button", { name: "Disable openai-strong" }).waitFor();
      await page.context().close();
    }
    assert.deepEqual(problems, []);
  });

  test("pass axe-core in light and dark, and fit a narrow screen", async ({ console: { open, service } }) => {
    const answer = await service.post("/v1/generate", { prompt: "What is a choir?", effort: "low" });
    const { id } = (await answer.json()) as { id: string };
    for (const [colorScheme, width] of [
      ["light", 1280],
      ["dark", 390],
    ] as const) {
      const page = await open("/console/operator", { colorScheme, viewport: { width, height: 800 } });
      await page.context().addInitScript(AXE);
      await page.reload();
      await page.getByLabel("Operator token").waitFor();
      await assertAccessible(page, "Sign in");
      await enter(page, service.operatorToken);
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
      for (const name of ["Overview", "Workspaces", "Models", "Replicas", "Alerts", "Audit log"]) {
        await visit(page, name);
        if (name === "Replicas") await page.getByRole("region", { name: "Grants" }).getByRole("row").nth(1).waitFor();
        await assertAccessible(page, `${name}, ${colorScheme}, ${width} wide`);
      }
      await visit(page, "Workspaces");
      await page.getByRole("link", { name: "default", exact: true }).click();
      await page.getByLabel("Balance in credits").getByText("Granted").waitFor();
      await assertAccessible(page, `A workspace, ${colorScheme}, ${width} wide`);
      const request = page.getByRole("searchbox", { name: "Open a request by its identifier" });
      await request.fill(id);
      await request.press("Enter");
      await page.getByRole("region", { name: "Calls of models" }).getByText("openai-fast").waitFor();
      await assertAccessible(page, `A run, ${colorScheme}, ${width} wide`);
      await page.context().close();
    }
  });
});
