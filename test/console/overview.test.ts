import assert from "node:assert/strict";
import { test as base, describe } from "vitest";
import { fixture } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";
import { connect, skipReason } from "./chromium.ts";
import { type Answers, FAILING, USED } from "./scene/answers.ts";
import { HOUR, NOW } from "./scene/clock.ts";
import { openScene } from "./scene/scene.ts";

const test = base.extend("browser", { scope: "file" }, fixture(connect));

describe.skipIf(skipReason !== undefined)("the overview", () => {
  test("compares each figure with the period before", async ({ browser }) => {
    const page = await openScene(browser, "/console", USED);
    const sums = page.locator("dl.stats");
    await sums.getByText("vs. previous").first().waitFor();
    assert.match(await sums.innerText(), /Requests\s+18,895\s+(down|up)\s+2 %\s+vs\. previous/);
    await page.context().close();
  });

  test("says how long the credit lasts at the pace of the period", async ({ browser }) => {
    const page = await openScene(browser, "/console", USED);
    // 2,493.53 credits, of which 51.2 went in 24 hours.
    await page.getByText("for new requests, for about 49 days at this pace").waitFor();
    // What one key takes says nothing of the whole.
    const ofKey = await openScene(browser, "/console?key=key_1", USED);
    await ofKey.getByText("for new requests", { exact: true }).waitFor();
    await ofKey.context().close();
    await page.context().close();
  });

  test("asks for no time that a call cannot express, whatever period an address names", async ({ browser }) => {
    for (const [from, to] of [
      ["2026-01-01", "9999-12-31"],
      ["0000-01-01", "2026-01-01"],
    ]) {
      const page = await openScene(browser, `/console?from=${from}&to=${to}`, USED);
      await page.locator("dl.stats").getByText("vs. previous").first().waitFor();
      assert.equal(await page.getByText("The service cannot be reached").count(), 0, `${from} to ${to}`);
      await page.context().close();
    }
  });

  test("asks for no more days of all workspaces than the service sums up", async ({ browser }) => {
    const method = "chorus.admin.v1.OperationsService/GetServiceUsage";
    const asked = new Set<string>();
    const answers: Answers = new Map([
      ...USED,
      [
        method,
        (request) => {
          asked.add(`${request.from} to ${request.to}`);
          return USED.get(method)?.(request);
        },
      ],
    ]);
    for (const path of ["operator", "operator/models"]) {
      const page = await openScene(browser, `/console/${path}?from=2020-01-01&to=2026-03-11`, answers);
      await until(() => asked.has("2024-01-03T00:00:00Z to 2026-03-12T00:00:00Z"));
      const [first, last] = [page.getByLabel("First day"), page.getByLabel("Last day")];
      assert.deepEqual([await first.inputValue(), await last.inputValue()], ["2024-01-03", "2026-03-11"]);
      // The other end moves along.
      await first.fill("2021-01-01");
      await until(() => asked.has("2021-01-01T00:00:00Z to 2023-03-11T00:00:00Z"));
      await last.fill("2025-12-31");
      await until(() => asked.has("2023-10-25T00:00:00Z to 2026-01-01T00:00:00Z"));
      await first.fill("2025-12-01");
      await until(() => asked.has("2025-12-01T00:00:00Z to 2026-01-01T00:00:00Z"));
      for (const period of asked) {
        const [from = 0, to = 0] = period.split(" to ").map(Date.parse);
        assert.ok(to - from <= 799 * 24 * HOUR, period);
      }
      asked.clear();
      await page.context().close();
    }
  });

  test("says exactly what is left", async ({ browser }) => {
    let workspace = { granted: "0.1", purchased: "0.2", held: "0" };
    const answers: Answers = new Map([
      ...USED,
      ["chorus.admin.v1.WorkspaceService/GetWorkspace", () => ({ unary: { workspace } })],
    ]);
    const left = async () => {
      const page = await openScene(browser, "/console", answers);
      await page.getByText("Available credits").waitFor();
      const figure = page.locator(".balance dl > div").first();
      const found = [await figure.getAttribute("title"), await figure.locator("dd").first().innerText()];
      await page.context().close();
      return found;
    };
    assert.deepEqual(await left(), ["0.3 credits", "0.3"]);
    // As binary numbers, what is held is a little more.
    workspace = { granted: "0.7", purchased: "0.1", held: "0.8" };
    assert.deepEqual(await left(), ["0 credits", "0"]);
  });

  test("moves a period that ends now on while the page is open, and the one before it", async ({ browser }) => {
    const method = "chorus.admin.v1.UsageService/GetUsage";
    const asked = new Set<string>();
    const answers: Answers = new Map([
      ...USED,
      [
        method,
        (request) => {
          asked.add(`${request.from} to ${request.to ?? "now"}`);
          return USED.get(method)?.(request);
        },
      ],
    ]);
    const page = await openScene(browser, "/console?period=24h", answers);
    await until(() => asked.size === 2);
    const periods = (hour: string) => [
      `2026-03-12T${hour}:25:07Z to 2026-03-13T${hour}:26:00Z`,
      `2026-03-13T${hour}:26:00Z to now`,
    ];
    assert.deepEqual([...asked].sort(), periods("09"));
    // The pages load again a while after an answer has come.
    await page.getByText("vs. previous").first().waitFor();
    asked.clear();
    await page.clock.setFixedTime(NOW + 3 * HOUR);
    await page.keyboard.press("Shift");
    await page.clock.fastForward(300_000);
    await until(() => asked.size === 2);
    assert.deepEqual([...asked].sort(), periods("12"));
    await page.context().close();
  });

  test("shows the same point on every chart, and says that the last hour still runs", async ({ browser }) => {
    const page = await openScene(browser, "/console", USED);
    const plot = page.locator(".u-over").first();
    const { width = 0 } = (await plot.boundingBox()) ?? {};
    await plot.hover({ position: { x: width / 2, y: 40 } });
    await page
      .getByText(/^2026-03-13 2\d:00: /)
      .nth(3)
      .waitFor();
    await plot.hover({ position: { x: width - 8, y: 40 } });
    await page
      .getByText(/^2026-03-14 09:00 \(so far\): /)
      .nth(3)
      .waitFor();
    await page.context().close();
  });

  test("zooms into the part that is selected by dragging, and back", async ({ browser }) => {
    const page = await openScene(browser, "/console?period=7d", USED);
    const { x = 0, y = 0, width = 0 } = (await page.locator(".u-over").first().boundingBox()) ?? {};
    await page.mouse.move(x + width * 0.25, y + 40);
    await page.mouse.down();
    await page.mouse.move(x + width * 0.5, y + 40, { steps: 4 });
    await page.mouse.up();
    const reset = page.getByRole("button", { name: "Show the whole period" });
    await reset.waitFor();
    assert.match(page.url(), /from=2026-03-0\dT\d\d%3A00Z&to=2026-03-1\dT\d\d%3A00Z/);
    await reset.click();
    await page.getByRole("radio", { name: "7 days" }).and(page.locator(":checked")).waitFor({ state: "attached" });
    await page.context().close();
  });

  test("leads to the same days of the same key", async ({ browser }) => {
    const days = "from=2026-03-01&to=2026-03-07";
    const page = await openScene(browser, `/console?${days}&key=key_1`, USED);
    const failed = page.getByRole("link", { name: "upstream failed" });
    assert.equal(await failed.getAttribute("href"), `/console/activity?${days}&key=key_1&outcome=upstream_failed`);
    await page.context().close();
    const split = await openScene(browser, `/console/subjects?${days}`, USED);
    await split.getByRole("link", { name: "u-4711" }).click();
    await split.getByRole("heading", { name: "Caps of u-4711" }).waitFor();
    assert.match(split.url(), new RegExp(`&${days}$`));
    const requests = split.getByRole("main").getByRole("link", { name: "Requests" });
    assert.equal(await requests.getAttribute("href"), `/console/activity?${days}&user=u-4711`);
    await split.context().close();
  });

  test("reports a failure once, and hides what it has no data for", async ({ browser }) => {
    const page = await openScene(browser, "/console", FAILING);
    await page.getByRole("alert").waitFor();
    // Each part of the page ends its own call.
    await until(async () => (await page.locator(".skeleton").count()) === 0);
    assert.equal(await page.getByRole("alert").count(), 1);
    await page.context().close();
  });
});
