import assert from "node:assert/strict";
import { test } from "vitest";
import { openConsole, skipReason } from "../../console/chromium.ts";

test("the reference shows every operation, sends a request and loads nothing from other hosts", async (t) => {
  t.skip(skipReason !== undefined, skipReason);
  const { open, service } = await openConsole(t);
  const page = await open("/healthz");
  const complaints: string[] = [];
  page.on("console", (message) => {
    // Browsers may request the icon of the previous page at any time.
    const isIcon = message.location().url.endsWith("/favicon.ico");
    if (message.type() === "error" && !isIcon) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => request.url().startsWith(service.url) || complaints.push(request.url()));

  await page.goto("/docs#tag/answers/POST/v1/generate");
  for (const name of ["Answers in one piece", "Answers piece by piece"]) await page.getByText(name).first().waitFor();
  await page.getByRole("button", { name: "Test Request" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByPlaceholder("QUxM").fill(service.apiKey);
  const answered = page.waitForResponse(`${service.url}/v1/generate`);
  await dialog.getByRole("button", { name: "Send" }).first().click();
  const response = await answered;
  assert.equal(response.status(), 200);
  assert.deepEqual(complaints, []);
});
