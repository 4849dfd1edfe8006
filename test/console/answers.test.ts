import assert from "node:assert/strict";
import { test as base, describe } from "vitest";
import { fixture } from "../helpers/lifetime.ts";
import { openConsole, signIn, skipReason } from "./chromium.ts";

const test = base
  .extend("console", { scope: "file" }, fixture(openConsole))
  .extend("answer", async ({ console }, { onCleanup }) => {
    const page = await console.open("/console/playground");
    onCleanup(async () => {
      await page.context().close();
      assert.deepEqual(console.problems, []);
    });
    await signIn(page, console.token);
    /** Asks, and returns the answer as the page shows it. */
    return async (text: string) => {
      console.vendor.reply({ text });
      await page.getByRole("textbox", { name: "Prompt" }).fill("What is a choir?");
      await page.getByRole("button", { name: "Ask" }).click();
      await page.getByText("Done", { exact: true }).waitFor();
      return page.locator(".markdown");
    };
  });

describe.skipIf(skipReason !== undefined)("answers in the playground", () => {
  test("are formatted, with tables and coloured code", async ({ answer }) => {
    const shown = await answer(
      "# Parts\n\n- *alto*\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n```ts\nconst a = 1;\n```",
    );
    await shown.getByRole("heading", { level: 3, name: "Parts" }).waitFor();
    await shown.getByRole("cell", { name: "2" }).waitFor();
    assert.equal(await shown.locator("pre .code-word").innerText(), "const");
  });

  test("show HTML as text, and no addresses that run scripts or load images", async ({ answer }) => {
    const html = '<img src=x onerror="document.title=1"><b>bold</b>';
    const shown = await answer(
      `${html}\n\n![photo](http://127.0.0.1:9/a.png)\n\n[a](javascript:alert(1)) [b](https://b.example)`,
    );
    await shown.getByText(html).waitFor();
    assert.equal(await shown.locator("img, b, script").count(), 0);
    const links = await shown.getByRole("link").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    assert.deepEqual(links, ["http://127.0.0.1:9/a.png", "https://b.example"]);
  });
});
