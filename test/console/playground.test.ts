import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { test as base, describe } from "vitest";
import { fixture } from "../helpers/lifetime.ts";
import { startRelay } from "../helpers/relay.ts";
import { openConsole, signIn, skipReason, visit } from "./chromium.ts";

const PIECES = ["Many ", "voices, ", "one ", "answer."];

/** The playground, signed in as an owner. */
const test = base
  .extend("console", { scope: "file" }, fixture(openConsole))
  .extend("playground", async ({ console }, { onCleanup }) => {
    console.vendor.reset();
    const page = await console.open("/console/playground");
    onCleanup(async () => {
      await page.context().close();
      assert.deepEqual(console.problems, []);
    });
    await signIn(page, console.token);
    const prompt = page.getByRole("textbox", { name: "Prompt" });
    const ask = page.getByRole("button", { name: "Ask" });
    return { vendor: console.vendor, page, prompt, ask };
  });

/** Lets the page need half a second to read a file. */
async function readSlowly(page: Page): Promise<void> {
  await page.evaluate(() => {
    const { arrayBuffer } = Blob.prototype;
    Blob.prototype.arrayBuffer = async function slow() {
      await new Promise((resolve) => setTimeout(resolve, 500));
      return arrayBuffer.call(this);
    };
  });
}

describe.skipIf(skipReason !== undefined)("the playground", () => {
  test("asks for a prompt when it is empty", async ({ playground: { page, ask } }) => {
    await ask.click();
    await page.getByText("Write a prompt first.").waitFor();
  });

  test("streams an answer with live token counts, and shows the plan at the end", async ({
    playground: { vendor, page, prompt },
  }) => {
    const { promise: goOn, resolve: sendTheRest } = Promise.withResolvers<void>();
    vendor.reply({ text: PIECES, goOn });
    await prompt.fill("What is a choir?");
    await prompt.press("Control+Enter");
    const answer = page.locator(".markdown");
    await answer.getByText("Many").waitFor();
    assert.equal(await page.getByText("Answering…").count(), 1);
    assert.match(await page.locator(".meters").innerText(), /about \d+ tokens/);
    sendTheRest();
    await page.getByText("Done", { exact: true }).waitFor();
    assert.equal(await answer.innerText(), PIECES.join(""));
    assert.match(
      await page.locator(".meters").innerText(),
      /Input\s+\d+ tokens[\s\S]*Output\s+\d+ tokens[\s\S]*Charged\s+0\.\d+ credits/,
    );
    await page.getByText("One model, at level low").waitFor();
    assert.match(await page.locator(".plan").innerText(), /answer fast · [\d.]+ m?s/);
    assert.equal(await page.getByRole("button", { name: "Show the drafts" }).count(), 0);
    await page.getByText(/^1 request, \d+ tokens, /).waitFor();

    // The rating is recorded for the request, and shown with it.
    const bad = page.getByRole("button", { name: "Bad answer" });
    assert.equal(await bad.getAttribute("aria-pressed"), "false");
    await bad.click();
    await page.locator('[aria-label="Bad answer"][aria-pressed="true"]').waitFor();
    await page.getByRole("link", { name: "Activity" }).click();
    await page.getByRole("table").locator('[aria-label="Bad answer"][aria-pressed="true"]').first().waitFor();
  });

  test("draws a long answer that arrives in many pieces only some times a second", async ({
    playground: { vendor, page, prompt, ask },
  }) => {
    const pieces = Array.from({ length: 1_500 }, (_, i) => (i % 50 === 0 ? `\n\n- **part** ${i} ` : `word${i} `));
    vendor.reply({ text: pieces, betweenMs: 1 });
    await page.evaluate(() => {
      const draws = { count: 0 };
      Object.assign(window, { draws });
      new MutationObserver((changes) => {
        if (changes.some(({ target }) => target instanceof Element && target.matches(".markdown"))) draws.count += 1;
      }).observe(document.body, { childList: true, subtree: true });
    });
    await prompt.fill("Write an essay.");
    const begun = performance.now();
    await ask.click();
    await page.getByText("Done", { exact: true }).waitFor();
    const seconds = (performance.now() - begun) / 1_000;
    assert.match(await page.locator(".markdown").innerText(), /word1499$/);
    const count = await page.evaluate("draws.count");
    assert.ok(Number(count) < 20 * seconds + 10, `${count} in ${seconds} s`);
  });

  test("keeps the received text when a stream is stopped", async ({ playground: { vendor, page, prompt, ask } }) => {
    await prompt.fill("What is a choir?");
    vendor.reply({ text: PIECES, betweenMs: 200, end: "hang", after: 2 });
    await ask.click();
    await page.locator(".markdown").getByText("voices").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Stopped. The text that was streamed is charged.").waitFor();
  });

  test("keeps the received text when the connection is lost", async ({
    console: { service },
    playground: { vendor, page: signedIn },
  }) => {
    await using line = new AsyncDisposableStack();
    const relay = await startRelay({ onTestFinished: (undo) => line.defer(undo) }, service.url);
    const page = await signedIn.context().newPage();
    await page.goto(new URL("/console/playground", relay.url).href);
    await page.getByRole("textbox", { name: "Prompt" }).fill("What is a choir?");
    vendor.reply({ text: PIECES, betweenMs: 200, end: "hang", after: 2 });
    await page.getByRole("button", { name: "Ask" }).click();
    await page.locator(".markdown").getByText("voices").waitFor();
    await line.disposeAsync();
    await page.getByRole("alert").getByText("The connection was lost").waitFor();
    assert.equal(await page.locator(".markdown").innerText(), "Many voices,");
  });

  test("asks once at a double click", async ({ playground: { vendor, page, prompt, ask } }) => {
    const { promise: goOn, resolve: sendTheRest } = Promise.withResolvers<void>();
    vendor.reply({ text: PIECES, goOn });
    await prompt.fill("What is a choir?");
    await ask.dblclick();
    await page.locator(".markdown").getByText("Many").waitFor();
    sendTheRest();
    await page.getByText("Done", { exact: true }).waitFor();
    await page.getByText(/^1 request, /).waitFor();
  });

  test("sends files of programs as text", async ({ playground: { page } }) => {
    const program = { name: "sing.py", mimeType: "text/x-python", buffer: Buffer.from("print('la')") };
    const photo = { name: "photo", mimeType: "image/png", buffer: Buffer.from("a") };
    await page.getByLabel("Attach files").setInputFiles([program, photo]);
    const files = page.getByRole("list", { name: "Attachments" });
    await files.getByText("image/png, 1 bytes").waitFor();
    await files.getByText("text/plain, 11 bytes").waitFor();
  });

  test("marks the invalid line of a schema while typing", async ({ playground: { page, prompt, ask } }) => {
    await prompt.fill("What is a choir?");
    await page.getByText("Strict JSON").click();
    const schema = page.getByLabel("JSON Schema of the answer");
    await page.getByText("The service accepts this schema.").waitFor();
    await schema.fill(
      '{\n  "type": "object",\n  "properties": {\n    "n": {"type": "string",\n          "pattern": "a"}\n  }\n}',
    );
    await page.getByText(/^Line 5 \(properties\.n\): The keyword "pattern" is not supported/).waitFor();
    assert.equal(await page.locator(".editor .wrong").count(), 1);
    await ask.click();
    await page.getByText("Correct the schema first.").waitFor();
    await schema.fill('{"type": "object",\n "properties": {\n}');
    await page.getByText("Line 3: The text is not valid JSON from here on.").waitFor();
  });

  test("shows strict JSON with its numbers as written", async ({ playground: { vendor, page, prompt, ask } }) => {
    vendor.reply({ text: '{"n":12345678901234567890.10}' });
    await prompt.fill("Count.");
    await page.getByText("Strict JSON").click();
    await page
      .getByLabel("JSON Schema of the answer")
      .fill('{"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}');
    await ask.click();
    await page.locator(".json-tree").getByText("n: 12345678901234567890.10").waitFor();
  });

  test("extracts JSON from a conversation with a file", async ({ playground: { vendor, page, ask } }) => {
    vendor.reply({ text: '{"tone":"warm"}' });
    await page.getByText("Extract JSON").click();
    await page.getByText("Messages", { exact: true }).click();
    await page.getByLabel("Message 1", { exact: true }).fill("Which tone?");
    await page.getByText("System instructions, stop sequences").click();
    await page.getByLabel("System", { exact: true }).fill("Be brief.");
    const file = { name: "notes.md", mimeType: "", buffer: Buffer.from("# Choir notes") };
    await page.getByLabel("Attach files").setInputFiles(file);
    await page.getByText("text/markdown, 13 bytes").waitFor();
    const request = page.waitForRequest(/StreamGenerate$/);
    await ask.click();
    await page.locator(".json-tree").getByText('tone: "warm"').waitFor();
    assert.equal(await page.locator(".json-tree summary").innerText(), "{ 1 member }");
    const sent = (await request).postDataBuffer()?.toString() ?? "";
    for (const piece of ["Which tone?", "Be brief.", Buffer.from("# Choir notes").toString("base64")])
      assert.ok(sent.includes(piece), piece);
    await page.getByRole("button", { name: "Remove notes.md" }).click();
    await page.getByText("text/markdown, 13 bytes").waitFor({ state: "detached" });
  });

  test("shows which items of a list of tasks are done", async ({ playground: { vendor, page, prompt, ask } }) => {
    vendor.reply({ text: ["- [x] Tune the piano\n- [ ] Invite the altos\n- Sing"] });
    await prompt.fill("What is left to do?");
    await ask.click();
    await page.getByText("Done", { exact: true }).waitFor();
    const items = (await page.locator(".markdown li").allInnerTexts()).map((text) => text.trim());
    assert.deepEqual(items, ["☑ Tune the piano", "☐ Invite the altos", "Sing"]);
  });

  test("writes Arabic and Hebrew from right to left", async ({ playground: { vendor, page, prompt, ask } }) => {
    vendor.reply({ text: ["שלום (2026).\n\n- بند أول\n\nHello.\n\n```\nקוד()\n```"] });
    await prompt.fill("ما هي الجوقة؟");
    await ask.click();
    await page.getByText("Done", { exact: true }).waitFor();
    const directionOf = (element: Element) => getComputedStyle(element).direction;
    assert.equal(await prompt.evaluate(directionOf), "rtl");
    const blocks = await page.locator(".markdown > *").all();
    const directions = await Promise.all(blocks.map((block) => block.evaluate(directionOf)));
    assert.deepEqual(directions, ["rtl", "rtl", "ltr", "ltr"]);
  });

  test("shows the text of an answer in which there is no object", async ({ playground: { vendor, page, prompt } }) => {
    vendor.reply({ text: '["warm", "calm"]' });
    await page.getByText("Extract JSON").click();
    await prompt.fill("Which tones?");
    await prompt.press("Control+Enter");
    await page.getByText("No object: ").waitFor();
    assert.equal(await page.locator(".answer .markdown").innerText(), '["warm", "calm"]');
    assert.equal(await page.locator(".json-tree").count(), 0);
  });

  test("keeps what is typed while a file is read", async ({ playground: { page, prompt } }) => {
    await readSlowly(page);
    const file = { name: "notes.md", mimeType: "", buffer: Buffer.from("# Choir notes") };
    await page.getByLabel("Attach files").setInputFiles(file);
    await prompt.fill("Which tone?");
    await page.getByText("text/markdown, 13 bytes").waitFor();
    assert.equal(await prompt.inputValue(), "Which tone?");
  });

  test("keeps the files that are chosen while others are read", async ({ playground: { page } }) => {
    await readSlowly(page);
    const file = (name: string) => ({ name, mimeType: "", buffer: Buffer.from("# Choir notes") });
    await page.getByLabel("Attach files").setInputFiles(file("first.md"));
    await page.getByLabel("Attach files").setInputFiles(file("second.md"));
    await page.getByRole("button", { name: "Remove second.md" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Remove first.md" }).count(), 1);
  });

  test("shows the cause of a failure and that it is not charged", async ({
    playground: { vendor, page, prompt, ask },
  }) => {
    vendor.always({ status: 400, error: { message: "no" } });
    await prompt.fill("What is a choir?");
    await ask.click();
    await page.getByRole("alert").getByText("Failed, not charged").waitFor();
    await page.getByRole("alert").getByText("No model could answer").waitFor();
    assert.equal(await page.locator(".meters").count(), 0);
  });

  test("goes on while another page is open, and shows past requests again", async ({
    console,
    playground: { vendor, page, prompt, ask },
  }) => {
    const { promise: goOn, resolve: sendTheRest } = Promise.withResolvers<void>();
    vendor.reply({ text: PIECES, goOn });
    await prompt.fill("What is a choir?");
    await ask.click();
    await page.locator(".markdown").getByText("Many").waitFor();
    await visit(page, "Ledger");
    await visit(page, "Playground");
    sendTheRest();
    await page.getByText("Done", { exact: true }).waitFor();
    assert.equal(await page.locator(".markdown").innerText(), PIECES.join(""));
    vendor.reply({ text: ["Four strings."] });
    await prompt.fill("What is a quartet?");
    await ask.click();
    await page.getByText("Four strings.").waitFor();
    const past = page.getByRole("region", { name: "This visit" });
    await past.getByRole("button", { name: "What is a choir?" }).click();
    assert.equal(await prompt.inputValue(), "What is a choir?");
    assert.equal(await page.locator(".markdown").innerText(), PIECES.join(""));
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("You have signed out.").waitFor();
    await signIn(page, console.token);
    assert.equal(await prompt.inputValue(), "");
    assert.equal(await past.count(), 0);
  });

  test("saves prompts in the browser, and has examples", async ({ playground: { page, prompt } }) => {
    await page.getByRole("button", { name: "A question" }).click();
    assert.match(await prompt.inputValue(), /^Why is the sky blue/);
    const other = await page.context().newPage();
    await other.goto(page.url());
    await page.getByRole("button", { name: "Save", exact: true }).click();
    // Another tab knows what this one has saved, and keeps it when it saves.
    const saved = other.getByRole("region", { name: "Saved prompts" });
    await saved.getByRole("button", { name: /^Why is the sky/ }).waitFor();
    await other.getByRole("textbox", { name: "Prompt" }).fill("Another one");
    await other.getByRole("button", { name: "Save", exact: true }).click();
    await saved.getByRole("button", { name: /^Remove the saved prompt Another/ }).waitFor();
    await other.close();
    await page.getByRole("button", { name: /^Remove the saved prompt Another/ }).click();
    await page.reload();
    await page
      .getByRole("region", { name: "Saved prompts" })
      .getByRole("button", { name: /^Why is the sky/ })
      .click();
    assert.match(await prompt.inputValue(), /^Why is the sky blue/);
    await page.getByRole("button", { name: /^Remove the saved prompt/ }).click();
    await page.getByText("Saved prompts").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "JSON that is valid against a schema" }).click();
    await page.getByText("The service accepts this schema.").waitFor();
  });

  test("keeps the prompt across pages and offers it as code", async ({ playground: { page, prompt } }) => {
    await prompt.fill("What is a choir?");
    await visit(page, "Ledger");
    await visit(page, "Playground");
    assert.equal(await prompt.inputValue(), "What is a choir?");
    for (const [language, sign] of [
      ["curl", "<<'JSON'"],
      ["TypeScript", 'from "chorus-client"'],
      ["Python", "import requests"],
      ["buf curl", "buf curl -H"],
      ["grpcurl", "grpcurl -plaintext"],
    ] as const) {
      await page.getByText(language, { exact: true }).click();
      const text = await page.locator(".snippet pre").innerText();
      assert.ok(text.includes(sign) && text.includes("What is a choir?"), text);
    }
  });

  test("runs two efforts side by side", async ({ playground: { vendor, page, prompt, ask } }) => {
    vendor.always({ text: "Many voices." });
    await page.getByLabel("Compare low and high").check();
    await prompt.fill("What is a choir?");
    await ask.click();
    await page.getByText("Done", { exact: true }).nth(1).waitFor();
    for (const [title, level] of [
      ["Effort low", "at level low"],
      ["Effort high", "at level high"],
    ] as const) {
      const card = page.locator(".answer-card", { has: page.getByRole("heading", { name: title }) });
      assert.match(await card.innerText(), new RegExp(`Charged\\s+0\\.\\d+ credits[\\s\\S]*${level}`));
    }
    await page.getByRole("button", { name: "Show the drafts" }).click();
    await page.getByText("The workspace keeps no text of requests.").waitFor();
  });

  test("lets cells of a spreadsheet be pasted as text, not as the picture of them", async ({
    playground: { page, prompt },
  }) => {
    await prompt.focus();
    const isTaken = await page.evaluate<boolean>(`(() => {
      const data = new DataTransfer();
      data.setData("text/plain", "a\\tb");
      data.setData("text/html", "<table><tr><td>a</td><td>b</td></tr></table>");
      data.items.add(new File(["picture"], "image.png", { type: "image/png" }));
      const paste = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
      return !document.activeElement.dispatchEvent(paste);
    })()`);
    assert.equal(isTaken, false, "the browser pastes the text");
    assert.equal(await page.getByRole("list", { name: "Attachments" }).count(), 0);
  });

  test("takes a pasted file, and sends web_search and continue", async ({ playground: { vendor, page, ask } }) => {
    vendor.reply({ text: " upon a time." });
    await page.getByText("Messages", { exact: true }).click();
    await page.getByLabel("Message 1", { exact: true }).fill("Tell a story.");
    await page.getByRole("button", { name: "Add a message" }).click();
    await page.getByLabel("Message 2", { exact: true }).fill("Once");
    await page.evaluate(`{
      const data = new DataTransfer();
      data.items.add(new File(["a,b"], "table.csv"));
      document.forms[0].dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true }));
    }`);
    await page.getByText("text/csv, 3 bytes").waitFor();
    await page.getByLabel("Search the web").check();
    await page.getByLabel("Continue the last message").check();
    const request = page.waitForRequest(/StreamGenerate$/);
    await ask.click();
    const sent = (await request).postDataBuffer()?.toString() ?? "";
    assert.match(sent, /"webSearch":true/);
    assert.match(sent, /"continue":true/);
    await page.getByText("Strict JSON").click();
    assert.equal(await page.getByLabel("Continue the last message").count(), 0);
  });
});
