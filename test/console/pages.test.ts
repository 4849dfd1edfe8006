import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { test } from "vitest";
import { openConsole, purchase, signIn, skipReason, visit } from "./chromium.ts";

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGES = [
  "Overview",
  "Keys",
  "Users and tags",
  "Limits and spend",
  "Alerts",
  "Activity",
  "Playground",
  "Ledger",
  "Audit log",
];

/** The rules of axe-core that read colours. */
const COLOURS = ["color-contrast", "link-in-text-block"];

/** Findings of axe-core, one line each. */
async function findings(page: Page, rules?: string[]): Promise<string[]> {
  const options = JSON.stringify(rules ? { runOnly: rules } : {});
  const { violations } = await page.evaluate<Pick<AxeResults, "violations">>(`axe.run(${options})`);
  return violations.flatMap(({ id, nodes }) =>
    nodes.map((node) => `${id}: ${node.html.slice(0, 160)} ${node.failureSummary}`),
  );
}

/** Longest time of a test, in milliseconds: axe-core reads every page twice, which takes minutes on a busy machine. */
const TIMEOUT_MS = 300_000;

test.for([1280, 390])(
  "every page passes axe-core in light and dark and fits a screen %d wide",
  { timeout: TIMEOUT_MS },
  async (width, t) => {
    t.skip(skipReason !== undefined, skipReason);
    const started = await openConsole(t);
    const { open, token, service, problems } = started;
    await purchase(started, "100");
    await service.post("/v1/generate", { prompt: "What is a choir?", user: "u-4711", tags: { team: "search" } });
    const page = await open("/console", { colorScheme: "dark", viewport: { width, height: 800 } });
    await page.context().addInitScript(AXE);
    await page.reload();
    const check = async (name: string) => {
      await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
      assert.deepEqual(await findings(page), [], `${name}, dark, ${width} wide`);
      await page.emulateMedia({ colorScheme: "light" });
      assert.deepEqual(await findings(page, COLOURS), [], `${name}, light, ${width} wide`);
      await page.emulateMedia({ colorScheme: "dark" });
      const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
      assert.ok(overflow <= 0, `${name} is ${overflow} too wide for ${width}`);
    };
    await page.getByLabel("Owner token").waitFor();
    await check("Sign in");
    await signIn(page, token);
    for (const name of PAGES) {
      await visit(page, name);
      await check(name);
    }
    await visit(page, "Keys");
    await page.getByRole("button", { name: "Create a key" }).click();
    await check("Create a key");
    assert.equal(await page.evaluate("document.activeElement.id"), "key-name");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText("Store it now.").waitFor();
    await check("The secret");
    await page.getByRole("button", { name: "I have stored it" }).click();
    await page
      .getByRole("button", { name: /^Revoke/ })
      .first()
      .click();
    await check("Revoke");
    await page.getByRole("button", { name: "Keep it" }).click();
    await page
      .getByRole("button", { name: /^Caps of/ })
      .first()
      .click();
    await check("Caps of a key");
    await page.keyboard.press("Escape");
    await visit(page, "Overview");
    await page.getByLabel("Group by").selectOption("By user");
    await page.getByRole("link", { name: "u-4711" }).waitFor();
    await check("Overview by user");
    await page.getByRole("link", { name: "u-4711" }).click();
    await page.getByRole("heading", { name: "Caps of u-4711" }).waitFor();
    await check("One user");
    await visit(page, "Activity");
    await page.getByRole("table").getByRole("button").first().click();
    await page.getByRole("link", { name: "How it was answered" }).click();
    await page.getByRole("region", { name: "Calls of models" }).waitFor();
    await check("A run");
    await visit(page, "Playground");
    await page.getByText("Messages", { exact: true }).click();
    await page.getByText("Strict JSON").click();
    await page.getByLabel("JSON Schema of the answer").fill("{");
    await page.getByText("System instructions, stop sequences").click();
    await check("Playground, with all that it has");
    assert.deepEqual(problems, []);
  },
);

test("heeds a choice that is made as soon as a page is there", async (t) => {
  t.skip(skipReason !== undefined, skipReason);
  const { open, token } = await openConsole(t);
  const page = await open();
  await signIn(page, token);
  await page.evaluate(() => {
    const choose = () => {
      const choice = document.querySelector<HTMLSelectElement>("select[aria-label=Movements]");
      if (!choice) return;
      watching.disconnect();
      choice.value = "purchase";
      choice.dispatchEvent(new Event("change", { bubbles: true }));
    };
    const watching = new MutationObserver(choose);
    watching.observe(document.body, { childList: true, subtree: true });
    document.querySelector<HTMLElement>('a[href="/console/ledger"]')?.click();
  });
  await page.waitForURL(/[?&]show=purchase$/);
  await page.getByText("Nothing moved in this period.").waitFor();
});
