import assert from "node:assert/strict";
import { create, toJson } from "@bufbuild/protobuf";
import { test as base, describe } from "vitest";
import { ListGenerationsResponseSchema } from "../../gen/chorus/admin/v1/activity_pb.js";
import { fixture } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";
import { connect, skipReason } from "./chromium.ts";
import { failure } from "./scene/answer.ts";
import { type Answers, USED } from "./scene/answers.ts";
import { generations } from "./scene/records.ts";
import { openScene } from "./scene/scene.ts";

const test = base.extend("browser", { scope: "file" }, fixture(connect));

const LIST = "chorus.admin.v1.ActivityService/ListGenerations";

/** A list to which each call adds a newer request. */
function growing(): Answers {
  let shown = 2;
  const answer = () => {
    const page = create(ListGenerationsResponseSchema, { generations: generations.slice(-shown++) });
    return { unary: Object(toJson(ListGenerationsResponseSchema, page)) };
  };
  return new Map([...USED, [LIST, answer]]);
}

describe.skipIf(skipReason !== undefined)("activity", () => {
  test("adds new requests at the top while it is live", async ({ browser }) => {
    const page = await openScene(browser, "/console/activity", growing());
    const rows = page.getByRole("table").locator("tbody tr");
    await rows.nth(1).waitFor();
    assert.equal(await rows.count(), 2);
    await page.mouse.move(200, 200);
    await page.getByRole("button", { name: "Live" }).click();
    await rows.nth(3).waitFor();
    const times = await rows.locator("time").evaluateAll((all) => all.map((each) => each.getAttribute("datetime")));
    assert.deepEqual(times, [...times].sort().reverse());
    await page.getByRole("button", { name: "Stop live" }).click();
    await page.context().close();
  });

  test("keeps its rows while it is live and the newest requests have no match", async ({ browser }) => {
    let calls = 0;
    const rare = () => {
      const page = calls++ === 0 ? { generations: generations.slice(-2) } : { nextPageToken: "further" };
      return { unary: Object(toJson(ListGenerationsResponseSchema, create(ListGenerationsResponseSchema, page))) };
    };
    const page = await openScene(browser, "/console/activity?level=high", new Map([...USED, [LIST, rare]]));
    const rows = page.getByRole("region", { name: "Requests" }).locator("tbody tr");
    await rows.nth(1).waitFor();
    await page.mouse.move(200, 200);
    await page.getByRole("button", { name: "Live" }).click();
    await until(() => calls >= 21);
    await page.getByRole("button", { name: "Stop live" }).click();
    assert.equal(await rows.count(), 2);
    await page.context().close();
  });

  test("goes on from the new page, without a gap, when the live list has become too long", async ({ browser }) => {
    // Requests 0 to 1099, the oldest first, in pages of 100. The token of a page is the number of its first request.
    let shown = 1000;
    const [row] = generations;
    const answer = ({ pageToken = "" }) => {
      const end = pageToken === "" ? shown : Number(pageToken);
      const numbers = Array.from({ length: 100 }, (_, i) => end - 1 - i);
      const page = { generations: numbers.map((i) => ({ ...row, id: `gen_${i}`, user: `u-${i}` })) };
      return { ...page, nextPageToken: end > 100 ? `${end - 100}` : "" };
    };
    const list = (request: object) => create(ListGenerationsResponseSchema, answer(request));
    const answers: Answers = new Map([
      ...USED,
      [LIST, (request) => ({ unary: Object(toJson(ListGenerationsResponseSchema, list(request))) })],
    ]);
    const page = await openScene(browser, "/console/activity", answers);
    const rows = page.getByRole("region", { name: "Requests" }).locator("tbody tr");
    const count = async (expected: number) => until(async () => (await rows.count()) === expected);
    for (let pages = 1; pages <= 9; pages++) {
      await count(pages * 100);
      await page.getByRole("button", { name: "Show more" }).click();
    }
    await count(1000);
    shown = 1050;
    await page.getByRole("button", { name: "Live" }).click();
    await count(100);
    await page.getByRole("button", { name: "Stop live" }).click();
    await page.getByRole("button", { name: "Show more" }).click();
    await count(200);
    await rows.last().getByRole("button").first().click();
    await page.getByRole("dialog", { name: "Request" }).getByText("u-850", { exact: true }).waitFor();
    await page.context().close();
  });

  test("saves the same period page after page, however long that takes", async ({ browser }) => {
    const starts: unknown[] = [];
    const answers: Answers = new Map([
      ...USED,
      [
        LIST,
        (request) => {
          if (request.pageSize !== 1000) return USED.get(LIST)?.(request);
          starts.push(request.from);
          return { unary: { nextPageToken: starts.length < 3 ? "more" : "", generations: [{ id: "gen_1" }] } };
        },
      ],
    ]);
    const page = await openScene(browser, "/console/activity", answers);
    await page.getByRole("region", { name: "Requests" }).locator("tbody tr").first().waitFor();
    await page.evaluate(() => {
      const start = Date.now();
      let calls = 0;
      Date.now = () => start + 60_000 * calls++;
    });
    await page.getByRole("button", { name: "CSV" }).click();
    await until(() => starts.length === 3);
    assert.equal(new Set(starts).size, 1, String(starts));
    await page.context().close();
  });

  test("stops live also while a refresh is under way", async ({ browser }) => {
    let calls = 0;
    const answers: Answers = new Map([
      ...USED,
      [
        LIST,
        (request) => {
          calls++;
          return USED.get(LIST)?.(request);
        },
      ],
    ]);
    const page = await openScene(browser, "/console/activity", answers);
    await page.getByRole("region", { name: "Requests" }).locator("tbody tr").first().waitFor();
    await page.getByRole("button", { name: "Live" }).dblclick();
    await page.getByRole("button", { name: "Live", exact: true }).waitFor();
    await until(() => calls === 2);
    await page.locator("[aria-busy=false]").first().waitFor();
    await page.clock.fastForward(10_000);
    // A request that a timer has made before this one has arrived before it.
    await page.evaluate(async () => void (await fetch(location.href)));
    assert.equal(calls, 2, "the first page, and the refresh of the first click");
    await page.context().close();
  });

  test("tries a refresh that failed again, without a request twice", async ({ browser }) => {
    let calls = 0;
    const answers: Answers = new Map([
      ...USED,
      [LIST, (request) => (++calls === 2 ? { failure } : USED.get(LIST)?.(request))],
    ]);
    const page = await openScene(browser, "/console/activity", answers);
    const rows = page.getByRole("region", { name: "Requests" }).locator("tbody tr");
    await rows.first().waitFor();
    const before = await rows.count();
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("alert").waitFor({ state: "detached" });
    await page.locator("[aria-busy=true]").waitFor({ state: "detached" });
    assert.equal(await rows.count(), before);
    await page.context().close();
  });

  test("says how long ago a request was, and keeps the titles of the columns in view", async ({ browser }) => {
    for (const width of [1280, 1440]) {
      const page = await openScene(browser, "/console/activity", USED);
      await page.setViewportSize({ width, height: 500 });
      const time = page.getByRole("table").locator("tbody time").first();
      assert.match(await time.innerText(), /^(just now|\d+ (minute|hour)s? ago)$/);
      assert.match((await time.getAttribute("title")) ?? "", /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/);
      const head = page.getByRole("columnheader", { name: "Outcome" });
      const table = page.getByRole("region", { name: "Requests" });
      assert.ok(await table.evaluate((each) => each.scrollWidth <= each.clientWidth), "nothing is cut");
      await table.locator("tbody tr").last().scrollIntoViewIfNeeded();
      assert.ok(await page.evaluate(() => scrollY > 100));
      assert.equal((await head.boundingBox())?.y, 0);
      await page.context().close();
    }
  });

  test("shows the code of failures to which a link leads, and offers those of refused requests", async ({
    browser,
  }) => {
    const page = await openScene(browser, "/console/activity?outcome=out_of_paper", USED);
    const outcome = page.getByRole("combobox", { name: "Outcome" });
    await outcome.waitFor();
    assert.equal(await outcome.inputValue(), "out_of_paper");
    await outcome.selectOption("content_refused");
    await page.waitForURL(/outcome=content_refused/);
    await page.context().close();
  });

  test("marks how a request ended only if that is unusual", async ({ browser }) => {
    const page = await openScene(browser, "/console/activity", USED);
    const ends = page.getByRole("table").locator("tbody tr td:last-child > span > span:first-child");
    await ends.first().waitFor();
    const tags = await ends.evaluateAll((all) => all.map(({ className, textContent }) => [className, textContent]));
    for (const [tag, text] of tags) assert.equal(tag === "soft", text === "stop", `${text}: ${tag}`);
    assert.ok(tags.some(([, text]) => text === "stop") && tags.some(([, text]) => text === "upstream_failed"));
    await page.context().close();
  });

  test("rates answers in their rows, with the keyboard, and says when that fails", async ({ browser }) => {
    const outcomes: unknown[] = [];
    const method = "chorus.v1.GenerationService/RecordOutcome";
    const answers: Answers = new Map([
      ...USED,
      [
        method,
        (request) => {
          outcomes.push(request);
          return outcomes.length < 3 ? USED.get(method)?.(request) : { failure };
        },
      ],
    ]);
    const page = await openScene(browser, "/console/activity", answers);
    const row = (i: number) => page.getByRole("table").locator("tbody tr").nth(i);
    const pressed = async (i: number) => {
      const thumbs = row(i).getByRole("button", { name: /^(Good|Bad) answer$/ });
      return thumbs.evaluateAll((all) => all.map((each) => each.getAttribute("aria-pressed")));
    };
    await row(1).waitFor();
    assert.deepEqual(await pressed(0), ["false", "false"]);
    assert.deepEqual(await pressed(1), ["true", "false"]);
    assert.deepEqual(await pressed(4), ["false", "true"]);
    assert.deepEqual(await pressed(6), ["false", "false"]);
    assert.match(await row(6).innerText(), /0\.7/);
    assert.deepEqual(await pressed(3), [], "a failed request has no answer");

    await row(0).getByRole("button", { name: "Good answer" }).focus();
    await page.keyboard.press("Enter");
    await row(0).locator('[aria-label="Good answer"][aria-pressed="true"]').waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    await row(0).locator('[aria-label="Bad answer"][aria-pressed="true"]').waitFor();
    const { id } = generations[0] ?? {};
    assert.deepEqual(outcomes, [
      { id, correct: true },
      { id, correct: false },
    ]);
    assert.equal(await page.getByRole("dialog").count(), 0, "the row does not open");

    await row(0).getByRole("button", { name: "Good answer" }).click();
    await page.getByText("Not recorded. The database does not answer. Try again in a few seconds.").waitFor();
    assert.deepEqual(await pressed(0), ["false", "true"]);

    // The outcome of another tab or program, or that none is left, is shown once the list is loaded again.
    await page.getByRole("button", { name: "Refresh" }).click();
    await row(0).locator('[aria-label="Bad answer"][aria-pressed="false"]').waitFor();
    await page.context().close();
  });

  test("asks before it deletes all texts", async ({ browser }) => {
    const method = "chorus.admin.v1.ActivityService/DeleteRunText";
    const deleted: unknown[] = [];
    const answers: Answers = new Map([
      ...USED,
      ["chorus.admin.v1.WorkspaceService/GetWorkspace", () => ({ unary: { workspace: { runTextDays: 7 } } })],
      [
        method,
        (request) => {
          deleted.push(request);
          return USED.get(method)?.(request);
        },
      ],
    ]);
    const page = await openScene(browser, "/console/activity", answers);
    await page.getByRole("button", { name: "Text of requests" }).click();
    await page.getByRole("button", { name: "Delete all texts…" }).click();
    const question = page.getByRole("dialog", { name: "Delete all texts?" });
    await question.getByRole("button", { name: "Cancel" }).click();
    await question.waitFor({ state: "detached" });
    assert.deepEqual(deleted, []);
    await page.getByRole("button", { name: "Delete all texts…" }).click();
    await question.getByRole("button", { name: "Delete all texts" }).click();
    await page.getByText("Deleted the text of 1 request.").waitFor();
    assert.deepEqual(deleted, [{ all: true }]);
    await page.context().close();
  });

  test("opens the request of a link, and forgets it when the drawer closes", async ({ browser }) => {
    const { id, requestId } = generations[3] ?? {};
    const page = await openScene(browser, `/console/activity?request=${id}`, USED);
    const drawer = page.getByRole("dialog", { name: "Request" });
    const text = await drawer.innerText();
    assert.match(text, new RegExp(`upstream_failed\\s+not charged[\\s\\S]*${requestId}`));
    assert.match(text, /Calls of models\s+6/);
    await drawer.getByRole("button", { name: "Close" }).click();
    await drawer.waitFor({ state: "detached" });
    assert.doesNotMatch(page.url(), /request=/);
    await page.context().close();
  });

  test("opens the request of a link that the list has not loaded, or says that there is none", async ({ browser }) => {
    const method = "chorus.admin.v1.ActivityService/GetRun";
    const { id = "", requestId } = generations[8] ?? {};
    const first = create(ListGenerationsResponseSchema, {
      generations: generations.slice(0, 2),
      nextPageToken: "more",
    });
    const answers: Answers = new Map([
      ...USED,
      [LIST, () => ({ unary: Object(toJson(ListGenerationsResponseSchema, first)) })],
      [method, (request) => (request.id === id ? USED.get(method)?.(request) : { failure })],
    ]);
    const page = await openScene(browser, `/console/activity?request=${id}`, answers);
    const drawer = page.getByRole("dialog", { name: "Request" });
    await drawer.getByText(String(requestId)).waitFor();
    await drawer.getByRole("button", { name: "Close" }).click();
    await drawer.waitFor({ state: "detached" });
    assert.doesNotMatch(page.url(), /request=/);
    await page.goto(page.url().replace(/activity.*/, "activity?request=gen_0"));
    await drawer.getByRole("alert").waitFor();
    await page.context().close();
  });
});
