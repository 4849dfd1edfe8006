import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { describe } from "vitest";
import { connect, skipReason } from "../../console/chromium.ts";
import { test as base } from "../../helpers/fixtures.ts";

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const test = base.extend("open", async ({ service, t }) => {
  return async (path: string, width = 1280, colorScheme: "light" | "dark" = "light"): Promise<Page> => {
    const browser = await connect(t);
    const context = await browser.newContext({
      baseURL: service.url,
      viewport: { width, height: 800 },
      colorScheme,
      permissions: ["clipboard-read", "clipboard-write"],
    });
    const page = await context.newPage();
    page.on("pageerror", (error) => assert.fail(error));
    await page.goto(path);
    return page;
  };
});

async function findings(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<Pick<AxeResults, "violations">>("axe.run()");
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}

describe.skipIf(skipReason !== undefined)("the documentation in a browser", () => {
  test("finds a section by its words, with the keyboard alone", async ({ open }) => {
    const page = await open("/docs/guides");
    await page.keyboard.press("/");
    await page.keyboard.type("rotate zeppelins");
    await page.getByText("Nothing is found for “rotate zeppelins”.").waitFor();
    await page.getByRole("searchbox").fill("idempotency");
    const results = page.getByRole("list", { name: "Results" }).getByRole("link");
    await results.first().waitFor();
    assert.ok((await results.count()) > 1);
    assert.deepEqual(await findings(page), []);
    await page.keyboard.press("Escape");
    await results.first().waitFor({ state: "detached" });
    await page.getByRole("searchbox").fill("what becomes of each member");
    await page.getByText(/^What becomes of each member/).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/docs/guides/messages#what-becomes-of-each-member");
  });

  test("shows an example in the language that the reader chose, on other pages too, and copies it", async ({
    open,
  }) => {
    const page = await open("/docs/guides/calling");
    const tabs = page.getByRole("tablist", { name: "Language" });
    assert.deepEqual(await tabs.getByRole("tab").allTextContents(), ["Shell", "TypeScript", "Python"]);
    await page.getByRole("tabpanel", { name: "Shell" }).waitFor();
    await tabs.getByRole("tab", { name: "Shell" }).press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    const python = page.getByRole("tabpanel", { name: "Python" });
    assert.match(await python.innerText(), /urllib\.request/);
    assert.equal(await page.getByRole("tabpanel").count(), 1);
    await python.hover();
    await python.getByRole("button", { name: "Copy" }).click();
    await python.getByRole("button", { name: "Copied" }).waitFor();
    const copied = await page.evaluate<string>("navigator.clipboard.readText()");
    assert.match(copied, /^import json, os, urllib\.request\n/);
    await page.reload();
    await python.waitFor();
  });

  test.for([
    [1280, "light"],
    [390, "dark"],
  ] as const)("passes axe-core and fits a screen %d wide, %s", async ([width, scheme], { open }) => {
    for (const path of [
      "/docs/guides",
      "/docs/guides/calling",
      "/docs/decisions/speed",
      "/docs/guides/configuration",
    ]) {
      const page = await open(path, width, scheme);
      assert.deepEqual(await findings(page), [], path);
      const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
      assert.ok(overflow <= 0, `${path} is ${overflow} too wide`);
      if (width === 390) {
        await page.getByText("All pages").click();
        await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Streaming" }).click();
        await page.getByRole("heading", { level: 1, name: "Streaming" }).waitFor();
      }
    }
  });
});
