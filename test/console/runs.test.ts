import assert from "node:assert/strict";
import { create, toJson } from "@bufbuild/protobuf";
import type { Page } from "playwright-core";
import { test as base, describe } from "vitest";
import { RunSchema, RunTextState } from "../../gen/chorus/admin/v1/activity_pb.js";
import { fixture, lifetimeOf } from "../helpers/lifetime.ts";
import { connect, openConsole, signIn, skipReason } from "./chromium.ts";
import { failure } from "./scene/answer.ts";
import { type Answers, RUNNING, USED } from "./scene/answers.ts";
import { plainRun, runningRun, runOf } from "./scene/run.ts";
import { openScene } from "./scene/scene.ts";

const GET_RUN = "chorus.admin.v1.ActivityService/GetRun";

const test = base
  .extend("browser", { scope: "file" }, fixture(connect))
  .extend("scene", async ({ browser }, { onCleanup }) => {
    const pages: Page[] = [];
    onCleanup(async () => {
      for (const page of pages) await page.context().close();
    });
    return async (path: string, answers: Answers = USED) => {
      const page = await openScene(browser, path, answers);
      pages.push(page);
      return page;
    };
  });

const answering = (run: Parameters<typeof create<typeof RunSchema>>[1]): Answers =>
  new Map([...USED, [GET_RUN, () => ({ unary: Object(toJson(RunSchema, create(RunSchema, run))) })]]);

describe.skipIf(skipReason !== undefined)("the page of a run", () => {
  test("shows an owner the plan, its reasons, steps and calls, without names of models", async ({ scene }) => {
    const page = await scene("/console/activity");
    await page.getByRole("table").getByRole("button").first().click();
    await page.getByRole("link", { name: "How it was answered" }).click();
    await page.getByRole("heading", { level: 1, name: "Run" }).waitFor();
    assert.match(new URL(page.url()).pathname, /^\/console\/runs\/gen_\w+$/);
    await page.getByText("3 drafts, written into one answer, at level high").waitFor();
    await page.getByText("Why this level: several constraints; an open question.").waitFor();
    assert.match(await page.locator(".agreement").innerText(), /67 %/);
    const steps = page.locator(".plan-steps").getByRole("listitem");
    assert.equal(await steps.count(), 5);
    assert.match(await steps.nth(2).innerText(), /^draft fast.*dropped\s*: too late for the judge$/is);
    const calls = page.getByRole("region", { name: "Calls of models" });
    assert.equal(await calls.locator("tbody tr").count(), 6);
    assert.match(await calls.locator("tbody tr").first().innerText(), /strong.*failed/s);
    assert.doesNotMatch(await page.locator("main").innerText(), /gpt|claude|gemini|openai|invalid_api_key|\$\d/);
    assert.equal(await page.locator(".plan rect").count(), 5);
    // Two drafts go into the judge, and its choice into the answer.
    assert.equal(await page.locator(".plan path").count(), 3);
    const link = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Activity" });
    assert.equal(await link.getAttribute("aria-current"), "page");
    await page.locator("main").getByRole("link", { name: "Activity" }).click();
    await page.getByRole("heading", { level: 1, name: "Activity" }).waitFor();
  });

  test("shows an operator models, vendors, costs, and why a call failed", async ({ scene }) => {
    const page = await scene("/console/operator/runs/gen_1?workspace=acme");
    const calls = page.getByRole("region", { name: "Calls of models" });
    await calls.waitFor();
    const [first = ""] = await calls.locator("tbody tr").allInnerTexts();
    assert.match(first, /gpt-strong\s+openai.*failed\s+401 invalid_api_key/s);
    assert.match(await page.locator(".details").innerText(), /Cost of its calls\s+\$0\.0105/);
    assert.match(await page.locator(".plan").innerText(), /draft gpt-strong, gemini-strong · 2\.1 s/);
  });

  test("follows a request while it runs, until its end", async ({ scene }) => {
    let ended = false;
    const page = await scene(
      "/console/activity",
      new Map([
        ...RUNNING,
        [
          GET_RUN,
          () => ({ unary: Object(toJson(RunSchema, create(RunSchema, ended ? runOf(false) : runningRun(false)))) }),
        ],
      ]),
    );
    const running = page
      .getByRole("region", { name: "Running now" })
      .or(page.getByRole("table", { name: "Running now" }));
    await running.first().getByRole("link").first().click();
    await page.getByText("At level high, for 2.4 s so far").waitFor();
    assert.match(await page.locator(".details").innerText(), /Outcome\s+running[\s\S]*Charged\s+at its end/);
    assert.match(await page.locator(".plan").innerText(), /judge strong · 240 ms so far/);
    assert.equal(await page.locator(".plan .running rect").count(), 2);
    assert.match(await page.locator(".plan .scale").innerText(), /5(\.0)? s$/);
    ended = true;
    await page.getByText("3 drafts, written into one answer, at level high").waitFor();
    assert.equal(await page.locator(".plan .running rect").count(), 0);
    assert.match(await page.locator(".details").innerText(), /Charged\s+[.\d]+ credits/);
  });

  test("is found by the identifier of the answer", async ({ scene }) => {
    const page = await scene("/console/activity");
    const find = page.getByRole("searchbox", { name: "Open a request by its identifier" });
    await find.fill("req_1");
    await find.press("Enter");
    assert.match(page.url(), /\/console\/activity$/, "the browser says what is expected");
    const id = `gen_${"0a".repeat(16)}`;
    await find.fill(` ${id} `);
    await find.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Run" }).waitFor();
    assert.ok(page.url().endsWith(`/console/runs/${id}`));
  });

  test("is found by the identifier of the request, and has its own address then", async ({ scene }) => {
    const run = runOf(false);
    const page = await scene(`/console/runs/req_${"0a".repeat(16)}`, answering(run));
    await page.waitForURL(`**/console/runs/${run.generation?.id}`);
    await page.getByText("3 drafts, written into one answer, at level high").waitFor();
  });

  test("offers code that sends a request of the same kind", async ({ scene }) => {
    const run = runOf(false);
    const page = await scene("/console/runs/gen_1", answering(run));
    for (const [language, text] of [
      ["curl", /^curl .*\/v1\/generate/],
      ["TypeScript", /createChorus/],
      ["Python", /import/],
      ["OpenAI", /model="chorus"/],
    ] as const) {
      await page.getByText(language, { exact: true }).click();
      assert.equal(await page.getByRole("button", { name: `Copy as ${language}` }).count(), 1);
      assert.match(await page.locator(".snippet pre").innerText(), text);
    }
  });

  test("says what is not kept or not there", async ({ scene }) => {
    const { generation } = plainRun;
    const plain = await scene("/console/runs/gen_1", answering(plainRun));
    await plain.getByText("One model, at level low").waitFor();
    const gone = await scene("/console/runs/gen_1", answering({ ...(generation ? { generation } : {}) }));
    await gone.getByText(/^How this request was answered is not kept, or not any more\. Runs are deleted/).waitFor();
    const failing = await scene("/console/runs/gen_1", new Map([...USED, [GET_RUN, () => ({ failure })]]));
    await failing.getByRole("alert").getByText("The database does not answer.").waitFor();
  });

  test("shows the text of a request when it is asked for, drafts beside each other, and deletes it", async ({
    scene,
  }) => {
    const page = await scene("/console/runs/gen_1");
    const said = page.locator(".card", { has: page.getByRole("heading", { name: "What was said" }) });
    await said.getByText("The audit log records that you read them.").waitFor();
    assert.equal(await said.locator("pre").count(), 0);
    await said.getByRole("button", { name: "Show the text" }).click();
    await said.getByRole("heading", { name: "Drafts" }).waitFor();
    const titles = (await said.locator("figcaption").allInnerTexts()).map((title) => title.trim());
    assert.deepEqual(titles, ["System", "User", "Strong, step 1", "Strong, step 2", "Assistant"]);
    assert.match(await said.innerText(), /timetable\.pdf application\/pdf, 48,211 bytes, not kept/);
    assert.match(await said.innerText(), /Kept until 2026-12-01 09:24/);
    const boxes = await Promise.all((await said.locator(".cards figure").all()).map((one) => one.boundingBox()));
    assert.equal(boxes[0]?.y, boxes[1]?.y);
    await said.getByRole("button", { name: "Delete the text" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await said.getByText("No text of this request is kept: it came before").waitFor();
    assert.equal(await said.getByRole("button").count(), 0);
  });

  test("says why there is no text to read", async ({ scene }) => {
    const whys: [RunTextState, RegExp][] = [
      [RunTextState.OFF, /^The workspace keeps no text of requests/],
      [RunTextState.FORBIDDEN, /because its key forbids it/],
      [RunTextState.ABSENT, /it came before texts were kept/],
    ];
    for (const [text, why] of whys) {
      const page = await scene("/console/runs/gen_1", answering({ ...runOf(false), text }));
      await page.getByText(why).waitFor();
      assert.equal(await page.getByRole("button", { name: "Show the text" }).count(), 0);
    }
    const operator = await scene("/console/operator/runs/gen_1?workspace=acme");
    await operator.getByText("Operators cannot read it.").waitFor();
    assert.equal(await operator.getByRole("button", { name: "Show the text" }).count(), 0);
    const failing = new Map([...USED, ["chorus.admin.v1.ActivityService/GetRunText", () => ({ failure })]]);
    const broken = await scene("/console/runs/gen_1", failing);
    await broken.getByRole("button", { name: "Show the text" }).click();
    await broken.getByRole("alert").getByText("The database does not answer.").waitFor();
  });

  test("leads from the playground to the run of a real service", async ({ onTestFinished }) => {
    const console = await openConsole(lifetimeOf(onTestFinished));
    console.vendor.reset();
    const page = await console.open("/console/playground");
    await signIn(page, console.token);
    console.vendor.reply({ text: ["Many ", "voices."] });
    await page.getByRole("textbox", { name: "Prompt" }).fill("What is a choir?");
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByRole("link", { name: "How it was answered" }).click();
    await page.getByText("One model, at level low").waitFor();
    const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    assert.match(await page.locator(".details").innerText(), new RegExp(`ok[\\s\\S]*${id}`, "i"));
    assert.match(await page.getByRole("region", { name: "Calls of models" }).innerText(), /fast[\s\S]*ok/i);
    await page.goto(`/console/runs/${"gen_"}${"0".repeat(32)}`);
    await page.getByRole("alert").getByText("no request with this identifier").waitFor();
    await page.context().close();
    // The browser reports the unknown run, too.
    assert.ok(console.problems.splice(0).every((problem) => problem.includes("404")));
  });
});
