import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { test } from "vitest";
import { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { openConsole, purchase, signIn, skipReason, visit } from "./chromium.ts";

test("links from a refused prompt to the spend limit and shows how much of it is spent", async (t) => {
  t.skip(skipReason !== undefined, skipReason);
  const started = await openConsole(t);
  const { open, transport, problems } = started;
  const workspaces = createClient(WorkspaceService, transport);
  // A workspace without granted credit, which does not count as spend.
  await workspaces.createWorkspace({ name: "spenders" });
  const { token } = await workspaces.createOwnerToken({ workspace: "spenders" });
  await purchase(started, "100", "spenders");

  const page = await open("/console/limits");
  await signIn(page, token);
  const row = page.locator("tr", { hasText: "Spending today" });
  const limit = page.getByRole("textbox", { name: "Credits" });
  const change = row.getByRole("button", { name: /: Spending today$/ });
  const set = async (amount: string) => {
    await change.click();
    await limit.fill(amount);
    await page.getByRole("button", { name: "Save" }).click();
    await row.getByText(`of ${amount}`, { exact: true }).waitFor();
  };
  const ask = async () => {
    await visit(page, "Playground");
    await page.getByRole("textbox", { name: "Prompt" }).fill("What is 6 * 7?");
    await page.getByRole("button", { name: "Ask" }).click();
  };

  await change.click();
  await limit.fill("ten");
  await page.getByRole("button", { name: "Save" }).click();
  assert.equal(await page.evaluate("document.activeElement.validity.patternMismatch"), true);
  await page.getByRole("button", { name: "Cancel" }).click();

  await set("0.000001");
  await ask();
  const alert = page.getByRole("alert");
  await alert.getByText("A spend limit is reached.").waitFor();
  await alert.getByRole("link", { name: "Limits and spend" }).click();
  await row.getByText("of 0.000001", { exact: true }).waitFor();
  assert.match(page.url(), /\/console\/limits#spend$/);
  await change.click();
  assert.equal(await limit.inputValue(), "0.000001");
  await page.getByRole("button", { name: "Cancel" }).click();

  await set("50");
  await ask();
  await page.getByText("Done", { exact: true }).waitFor();
  await visit(page, "Limits and spend");
  await row.getByText("of 50", { exact: true }).waitFor();
  const used = Number.parseFloat(await row.locator("strong").innerText());
  assert.ok(used > 0, `${used} is spent`);
  await set(String(Number((used * 1.6).toFixed(6))));
  await row.getByText("over 50 %").waitFor();
  await set(String(Number((used * 1.1).toFixed(6))));
  await row.getByText("Requests that may cost more than the rest are already refused.").waitFor();
  await set("0.0001");
  await row.getByText(/^Requests that need purchased credit are refused until/).waitFor();

  await visit(page, "Overview");
  const near = page.locator(".near");
  await near.getByText("reached", { exact: true }).waitFor();
  await near.getByRole("link", { name: "Spending today" }).click();
  await change.click();
  await page.getByRole("button", { name: "Remove the limit" }).click();
  await row.getByText("no limit", { exact: true }).waitFor();
  assert.deepEqual(problems, []);
});
