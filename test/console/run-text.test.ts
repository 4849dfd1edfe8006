import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "vitest";
import { lifetimeOf } from "../helpers/lifetime.ts";
import { openConsole, signIn, skipReason } from "./chromium.ts";

test.skipIf(skipReason !== undefined)(
  "an owner has texts kept, reads one, and forbids it for a key",
  async ({ onTestFinished }) => {
    const key = randomBytes(32).toString("base64");
    const console = await openConsole(lifetimeOf(onTestFinished), { CHORUS_RUN_TEXT_KEY: key });
    const page = await console.open("/console/activity");
    await signIn(page, console.token);
    await page.getByRole("button", { name: "Text of requests" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Keep it").selectOption("For 7 days");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("The text of requests is kept for 7 days.").waitFor();

    await page.goto("/console/playground");
    console.vendor.always(() => ({ text: ["Many ", "voices."] }));
    const said = page.locator(".card", { has: page.getByRole("heading", { name: "What was said" }) });
    const show = said.getByRole("button", { name: "Show the text" });
    const ask = async () => {
      await page.goto("/console/playground");
      await page.getByRole("textbox", { name: "Prompt" }).fill("What is a choir?");
      await page.getByRole("button", { name: "Ask" }).click();
      await page.getByRole("link", { name: "How it was answered" }).click();
      await said.waitFor();
    };
    await ask();
    // The session learns of the change within a second.
    for (let turn = 0; turn < 20 && (await show.count()) === 0; turn++) await ask();
    await show.click();
    await said.getByText("What is a choir?").waitFor();
    assert.match(await said.innerText(), /Many voices\./);

    await page.goto("/console/playground");
    await page.getByRole("textbox", { name: "Prompt" }).fill("What is a choir?");
    await page.getByLabel("Highest effort").selectOption("high");
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByRole("button", { name: "Show the drafts" }).click();
    await page.locator(".said figure", { hasText: "Many voices." }).nth(1).waitFor();

    await page.goto("/console/keys");
    await page.getByRole("button", { name: "Create a key" }).click();
    await dialog.getByLabel("Name").fill("secret work");
    await dialog.getByLabel("Never keep the text of its requests").check();
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByRole("button", { name: "I have stored it" }).click();
    const row = page.getByRole("row", { name: /secret work/ });
    await row.getByText("text never kept").waitFor();
    await row.getByRole("button", { name: "Change secret work" }).click();
    await dialog.getByLabel("Never keep the text of its requests").uncheck();
    await dialog.getByRole("button", { name: "Save" }).click();
    await row.getByText("text never kept").waitFor({ state: "detached" });

    await page.goto("/console/activity");
    await page.getByRole("button", { name: "Text of requests" }).click();
    await dialog.getByLabel("Keep it").selectOption("Not at all");
    await dialog.getByText("All texts that are kept are deleted at once.").waitFor();
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("No text of requests is kept.").waitFor();
    await page.goto("/console/audit");
    await page.getByText("Read the text of the request").first().waitFor();
    assert.deepEqual(console.problems, []);
  },
);
