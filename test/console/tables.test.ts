import assert from "node:assert/strict";
import { test as base, describe } from "vitest";
import { fixture } from "../helpers/lifetime.ts";
import { connect, skipReason } from "./chromium.ts";
import { type Answers, USED } from "./scene/answers.ts";
import { openScene } from "./scene/scene.ts";

const test = base.extend("browser", { scope: "file" }, fixture(connect));

/** Runs in the page. Returns what is too wide, and the words of tables that go over the end of a line. */
const FAULTS = `(() => {
  const faults = [];
  const { scrollWidth } = document.documentElement;
  if (scrollWidth > innerWidth) faults.push("the page is " + (scrollWidth - innerWidth) + " px too wide");
  for (const table of document.querySelectorAll(".scroll")) {
    const over = table.scrollWidth - table.clientWidth;
    if (over > 0) faults.push("the table " + table.ariaLabel + " is " + over + " px too wide");
    const texts = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
    for (let text; (text = texts.nextNode()); ) {
      for (const { index, 0: word } of text.data.matchAll(/[^\\s-]+/g)) {
        const range = document.createRange();
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        const tops = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
        if (tops.size > 1) faults.push("the word " + word + " is broken");
      }
    }
  }
  return faults;
})()`;

describe.skipIf(skipReason !== undefined)("a long name", () => {
  test("fits the page of a user on a screen of 360 px", async ({ browser }) => {
    const path = `/console/subjects?subject=${encodeURIComponent(`user:${"u".repeat(128)}`)}`;
    const answers: Answers = new Map([...USED, ["chorus.admin.v1.UsageService/GetUsage", () => undefined]]);
    const page = await openScene(browser, path, answers, { viewport: { width: 360, height: 800 } });
    await page.getByRole("heading", { name: /^Caps of u/ }).waitFor();
    assert.equal(await page.evaluate("document.documentElement.scrollWidth"), 360);
    await page.context().close();
  });
});

describe.skipIf(skipReason !== undefined)("the playground", () => {
  test("fits a screen of 360 px", async ({ browser }) => {
    const page = await openScene(browser, "/console/playground", USED, { viewport: { width: 360, height: 800 } });
    await page.getByRole("list", { name: "Examples to try" }).waitFor();
    assert.equal(await page.evaluate("document.documentElement.scrollWidth"), 360);
    await page.context().close();
  });
});

describe.skipIf(skipReason !== undefined)("the pages of a list", () => {
  test("are the same after a visit of another page, and begin anew with another filter", async ({ browser }) => {
    const page = await openScene(browser, "/console/ledger", USED);
    const pager = page.getByRole("navigation", { name: "Pages of the list" });
    const isAt = (number: number) => pager.getByText(`Page ${number}`, { exact: true }).waitFor();
    await pager.getByRole("button", { name: "Older" }).click();
    await isAt(2);
    await pager.getByRole("button", { name: "Older" }).click();
    await isAt(3);
    await page.getByRole("link", { name: "Keys", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
    await page.goBack();
    await isAt(3);
    await pager.getByRole("button", { name: "Newer" }).click();
    await isAt(2);
    await page.reload();
    await isAt(2);
    await page.getByRole("combobox", { name: "Movements" }).selectOption("Grants");
    await isAt(1);
    await page.context().close();
  });
});

describe.skipIf(skipReason !== undefined)("tables with long names of people at 390 px", () => {
  const person = {
    ...{ id: "per_9", name: "Alexandra Konstantinopoulos-Smith" },
    email: "alexandra.konstantinopoulos@engineering.example.com",
  };
  const key = { id: "key_9", name: "nightly import", prefix: "ck_9fK2", expiresAt: "2126-12-29T00:00:00Z" };
  const answers: Answers = new Map([
    ...USED,
    ["chorus.admin.v1.KeyService/ListKeys", () => ({ unary: { keys: [{ ...key, holder: person }] } })],
    ["chorus.admin.v1.MemberService/ListMembers", () => ({ unary: { members: [{ person, keys: 1 }] } })],
  ]);
  for (const [path, label] of [
    ["/console/keys", "Keys"],
    ["/console/members", "Members"],
  ] as const) {
    test(`${path} fits`, async ({ browser }) => {
      const page = await openScene(browser, path, answers, { isPerson: true, viewport: { width: 390, height: 800 } });
      const table = page.getByRole("region", { name: label, exact: true });
      await table.getByText(person.name).first().waitFor();
      const isWithin = (element: Element) => element.scrollWidth <= element.clientWidth;
      assert.equal(await table.evaluate(isWithin), true);
      await page.context().close();
    });
  }
});

describe.skipIf(skipReason !== undefined)("tables at 1024 px", () => {
  for (const path of ["/console/keys", "/console/subjects", "/console/subjects?subject=user%3Au-4711"]) {
    test(`${path} fits, and breaks no word`, async ({ browser }) => {
      const page = await openScene(browser, path, USED, { viewport: { width: 1024, height: 768 } });
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
      await page.evaluate("document.fonts.ready");
      assert.deepEqual(await page.evaluate(FAULTS), []);
      await page.context().close();
    });
  }
});
