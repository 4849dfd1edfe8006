import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import type { Page } from "playwright-core";
import { test as base, describe } from "vitest";
import { MemberService } from "../../gen/chorus/admin/v1/members_pb.js";
import { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { MemberRole } from "../../gen/chorus/v1/options_pb.js";
import { openPool } from "../../src/store/pool.ts";
import { fixture, lifetimeOf } from "../helpers/lifetime.ts";
import { startProvider, type TestProvider } from "../helpers/oidc.ts";
import { until } from "../helpers/until.ts";
import { openConsole, skipReason, visit } from "./chromium.ts";

/** The pages of the test's provider ask for fonts there. */
const FONTS = "https://fonts.googleapis.com";

const COMMON = ["Overview", "Activity", "Limits and spend"];

/** What the navigation has for each role, the group that gives it, and what the role may not do, as methods. */
const ROLES = [
  {
    group: "leads",
    pages: [...COMMON, "Playground", "Keys", "Users and tags", "Alerts", "Ledger", "Audit log", "Members"],
    denied: ["CreditService/Grant"],
  },
  {
    group: "engineering",
    pages: [...COMMON, "Playground", "Keys"],
    denied: ["CreditService/SetSpendLimit", "MemberService/ListMembers", "UsageService/ExportUsage"],
  },
  {
    group: "finance",
    pages: [...COMMON, "Users and tags", "Ledger"],
    denied: ["KeyService/ListKeys", "KeyService/CreateKey", "ActivityService/ListAudit"],
  },
  {
    group: "guests",
    pages: [...COMMON, "Keys", "Users and tags", "Alerts", "Ledger", "Audit log", "Members"],
    denied: ["KeyService/CreateKey", "MemberService/InviteMember", "AlertService/ClearAlerts"],
  },
] as const;

const test = base
  .extend("provider", { scope: "file" }, fixture(startProvider))
  .extend("console", { scope: "file" }, async ({ provider }, { onCleanup }) =>
    openConsole(lifetimeOf(onCleanup), provider.env),
  )
  .extend("rpc", { scope: "file" }, ({ console: { transport } }) => ({
    members: createClient(MemberService, transport),
    workspaces: createClient(WorkspaceService, transport),
  }))
  /** Opens a browser and signs a new person in; `close` ends it and checks that the page behaved. */
  .extend("person", async ({ console, provider }, { onCleanup }) => {
    const pages: Page[] = [];
    onCleanup(async () => {
      for (const page of pages) await page.context().close();
      // The provider is another host, and its pages are its own.
      const isOurs = (problem: string) => !problem.includes(provider.issuer) && !problem.includes(FONTS);
      const problems = console.problems.splice(0).filter(isOurs);
      assert.deepEqual(problems, []);
    });
    return async (subject: string, claims: Record<string, unknown> = {}, path = "/console") => {
      provider.accounts.set(subject, { name: `${subject} Lee`, email: `${subject}@example.com`, ...claims });
      const page = await console.open(path);
      pages.push(page);
      await page.context().route(`${FONTS}/**`, (route) => route.abort());
      await signInThrough(page, provider, subject);
      return page;
    };
  });

/** Signs in on the page through the provider, and consents. */
async function signInThrough(page: Page, { issuer }: TestProvider, subject: string): Promise<void> {
  await page.getByRole("link", { name: "Sign in with Example" }).click();
  await enter(page, subject);
  await page.locator("input[name=prompt][value=consent]").waitFor({ state: "attached" });
  await page.locator("form button[type=submit]").click();
  await page.waitForURL((url) => url.origin !== issuer);
}

/** Fills in the form of the provider. */
async function enter(page: Page, subject: string): Promise<void> {
  await page.locator("input[name=login]").fill(subject);
  await page.locator("input[name=password]").fill("any");
  await page.locator("form button[type=submit]").click();
}

const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor();

/** Calls a method as the page would. @returns the status of HTTP */
async function statusOf(page: Page, method: string): Promise<number> {
  return page.evaluate(async (path) => {
    const headers = { "content-type": "application/json", "connect-protocol-version": "1" };
    return (await fetch(path, { method: "POST", headers, body: "{}" })).status;
  }, `/console/rpc/chorus.admin.v1.${method}`);
}

describe.skipIf(skipReason !== undefined)("people in the console", () => {
  test.for(ROLES)("shows a person of $group the pages of the role", async ({ group, pages, denied }, { person }) => {
    const page = await person(`walker-${group}`, { groups: [group] });
    await heading(page, "Overview");
    const links = page.getByRole("navigation", { name: "Pages", exact: true }).getByRole("link");
    assert.deepEqual((await links.allTextContents()).map((text) => text.trim()).sort(), [...pages].sort());
    for (const name of pages) {
      await visit(page, name);
      await page.waitForLoadState("networkidle");
      assert.deepEqual(await page.getByRole("alert").allTextContents(), [], `${group} ${name}`);
    }
    for (const [name, shown] of [
      ["members", "Members"],
      ["keys", "Keys"],
      ["ledger", "Ledger"],
    ] as const) {
      await page.goto(`/console/${name}`);
      await heading(page, (pages as readonly string[]).includes(shown) ? shown : "Page not found");
    }
    for (const method of denied) assert.equal(await statusOf(page, method), 403, method);
  });

  test("hides what a role may not change", async ({ person }) => {
    const page = await person("guest", { groups: ["guests"] });
    await heading(page, "Overview");
    await page.getByText("No requests in this period.").waitFor();
    assert.equal(await page.getByRole("link", { name: "Create a key" }).count(), 0);
    for (const [name, button] of [
      ["Keys", "Create a key"],
      ["Keys", "Set a cap for each key"],
      ["Users and tags", "Set a cap for each user"],
      ["Members", "Invite"],
      ["Alerts", "Save"],
      ["Limits and spend", "Set a limit: Spending today"],
    ] as const) {
      await visit(page, name);
      await page.waitForLoadState("networkidle");
      assert.equal(await page.getByRole("button", { name: button, exact: true }).count(), 0, button);
    }
  });

  test("a developer creates a key, and an owner takes it over before removing the developer", async ({ person }) => {
    const page = await person("dev", { groups: ["engineering"] });
    await visit(page, "Keys");
    await page.getByRole("button", { name: "Create a key" }).click();
    assert.equal(await page.getByText("reads limits and usage").count(), 0);
    await page.getByLabel("Name").fill("kept");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("button", { name: "I have stored it" }).click();
    const owner = await person("lead", { groups: ["leads"] });
    await visit(owner, "Keys");
    await owner.getByText(", of dev Lee").first().waitFor();
    const takeOver = owner.getByRole("button", { name: "Take over kept" });
    await owner.route("**/TakeOverKey", (route) => route.abort(), { times: 1 });
    await takeOver.click();
    await owner.getByText(/^Not taken over\. /).waitFor();
    await takeOver.click();
    await owner.getByText("The key kept no longer ends with dev Lee.").waitFor();
    await visit(owner, "Members");
    await owner.getByRole("button", { name: "Remove dev Lee" }).click();
    await owner.getByText("A group of the identity provider gives the role, too").waitFor();
    await owner.getByRole("dialog").getByRole("button", { name: "Remove", exact: true }).click();
    await owner.getByText("Removed dev Lee.").waitFor();
    await page.reload();
    await heading(page, "You are a member of no workspace");
    await visit(owner, "Audit log");
    await owner.getByRole("row").filter({ hasText: "Removed the member" }).getByText("lead Lee").first().waitFor();
  });

  test("lets one person use an invitation, once", async ({ person, console, provider }) => {
    const owner = await person("inviter", { groups: ["leads"] });
    await visit(owner, "Members");
    await owner.getByRole("button", { name: "Invite", exact: true }).click();
    await owner.getByLabel("Role").selectOption("Billing");
    await owner.getByLabel("Note").fill("for Bill");
    await owner.getByRole("button", { name: "Create the link" }).click();
    const link = (await owner.locator("[data-secret]").textContent())?.trim() ?? "";
    await owner.getByRole("button", { name: "I have sent it" }).click();
    await owner.getByText("for Bill").waitFor();

    const path = link.slice(console.service.url.length);
    const bill = await person("bill", {}, path);
    await heading(bill, "Overview");
    await bill.getByText("bill Lee").waitFor();
    assert.doesNotMatch(bill.url(), /in_/);
    const thief = await person("thief", {}, path);
    await thief.getByText(/The invitation was used before or has expired/).waitFor();
    await thief.getByRole("button", { name: "Try again" }).click();
    await heading(thief, "You are a member of no workspace");
    assert.equal(await statusOf(thief, "UsageService/GetUsage"), 403);
    assert.ok(provider.accounts.has("thief"));
  });

  test("lets an operator who is a member of no workspace use an invitation at the first sign-in", async ({
    person,
    rpc,
  }) => {
    const { path } = await rpc.members.inviteMember({ workspace: "default", role: MemberRole.VIEWER });
    const page = await person("chief", { groups: ["operators"] }, path);
    await heading(page, "Overview");
    await page.getByText("viewer", { exact: false }).first().waitFor();
    assert.match(page.url(), /\/console$/);
  });

  test("withdraws an invitation once if its button is clicked twice", async ({ person }) => {
    const owner = await person("withdrawer", { groups: ["leads"] });
    await visit(owner, "Members");
    for (const note of ["for Ann", "for Bob"]) {
      await owner.getByRole("button", { name: "Invite", exact: true }).click();
      await owner.getByLabel("Note").fill(note);
      await owner.getByRole("button", { name: "Create the link" }).click();
      await owner.getByRole("button", { name: "I have sent it" }).click();
      await owner.getByRole("row").filter({ hasText: note }).waitFor();
    }
    let calls = 0;
    await owner.route("**/WithdrawInvitation", async (route) => {
      calls += 1;
      await sleep(200);
      await route.continue();
    });
    await owner.getByRole("row").filter({ hasText: "for Ann" }).getByRole("button", { name: "Withdraw" }).dblclick();
    await owner.getByText("Withdrew the invitation.").waitFor();
    await owner.getByText("for Ann").waitFor({ state: "detached" });
    assert.equal(calls, 1);
    assert.equal(await owner.getByRole("alert").count(), 0);
  });

  test("switches between the workspaces of a person", async ({ person, rpc }) => {
    await rpc.workspaces.createWorkspace({ name: "second" });
    const { path } = await rpc.members.inviteMember({ workspace: "second", role: MemberRole.VIEWER });
    const page = await person("two", { groups: ["engineering"] }, path);
    await page.getByText("two Lee · viewer").waitFor();
    await page.getByLabel("Workspace").selectOption("default");
    await page.getByText("two Lee · developer").waitFor();
    await page.reload();
    await page.getByText("two Lee · developer").waitFor();
  });

  test("changes nothing in a workspace that another window has chosen", async ({ person, console, rpc }) => {
    await rpc.workspaces.createWorkspace({ name: "beside" });
    const { path } = await rpc.members.inviteMember({ workspace: "beside", role: MemberRole.OWNER });
    const page = await person("wide", { groups: ["leads"] }, path);
    await visit(page, "Keys");
    await page.getByRole("button", { name: "Create a key" }).click();
    await page.getByLabel("Name").fill("of beside");
    const other = await page.context().newPage();
    await other.goto(`${console.service.url}/console`);
    await heading(other, "Overview");
    const chosen = other.waitForEvent("load");
    await other.getByLabel("Workspace").selectOption("default");
    await chosen;
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText("Another tab or window of this browser has changed the workspace.").first().waitFor();
    await visit(other, "Keys");
    await other.getByRole("cell", { name: "bootstrap" }).waitFor();
    assert.equal(await other.getByText("of beside").count(), 0);
  });

  test("signs in from each of two tabs, also if both began before one has ended", async ({ person }) => {
    const first = await person("twice", { groups: ["guests"] });
    const context = first.context();
    await context.clearCookies();
    const second = await context.newPage();
    await first.goto("/console/keys");
    await second.goto("/console/ledger");
    for (const page of [first, second]) {
      await page.getByRole("link", { name: "Sign in with Example" }).click();
      await page.locator("input[name=login]").waitFor();
    }
    await enter(first, "twice");
    await first.locator("input[name=prompt][value=consent]").waitFor({ state: "attached" });
    await first.locator("form button[type=submit]").click();
    // What the person has consented to holds for the other tab, too.
    await enter(second, "twice");
    await heading(first, "Keys");
    await heading(second, "Ledger");
  });

  test("asks for a sign-in after the session has ended", async ({ person, console, provider }) => {
    const page = await person("late", { groups: ["guests"] });
    // A page that does not reload by itself. It has loaded when its first movement is there.
    await visit(page, "Ledger");
    await page.getByRole("cell").first().waitFor();
    const pool = openPool(console.service.databaseUrl, { max: 1 });
    await pool.query(
      `update person_sessions set expires_at = now()
       where person_id in (select id from people where name = 'late Lee')`,
    );
    await pool.end();
    await page.getByRole("link", { name: "Activity", exact: true }).click();
    await page.getByText("Your session has ended").waitFor();
    await page.getByRole("link", { name: "Sign in with Example" }).click();
    // The person is still signed in at the provider.
    await heading(page, "Activity");
    assert.equal(provider.isDown, false);
  });

  test("keeps who is signed in while the provider is down, and says so to others", async ({
    person,
    console,
    provider,
  }) => {
    const page = await person("calm", { groups: ["guests"] });
    await heading(page, "Overview");
    provider.isDown = true;
    try {
      await visit(page, "Ledger");
      const other = await console.open("/console/ledger");
      const notice = other.getByText("The identity provider does not answer");
      // Metadata that were read in the last ten seconds still lead to the provider.
      await until(async () => {
        await other.goto("/console/ledger");
        await other.getByRole("link", { name: "Sign in with Example" }).click();
        await other.waitForLoadState();
        return (await notice.count()) > 0;
      }, 1_000);
      assert.equal(new URL(other.url()).pathname, "/console/ledger");
      await other.context().close();
    } finally {
      provider.isDown = false;
    }
  });

  test("signs out here and at the provider", async ({ person, provider }) => {
    const page = await person("leaver", { groups: ["guests"] });
    await heading(page, "Overview");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Yes, sign me out" }).click();
    await page.waitForURL((url) => url.origin !== provider.issuer);
    await page.getByRole("link", { name: "Sign in with Example" }).click();
    await page.locator("input[name=login]").waitFor();
  });

  test("lets an operator in by claim, and refuses others", async ({ person }) => {
    const page = await person("boss", { groups: ["operators"] }, "/console/operator");
    await heading(page, "Overview");
    await page.getByText("boss Lee").waitFor();
    const other = await person("curious", { groups: ["guests"] }, "/console/operator");
    await other.getByText("You are no operator of this service.").waitFor();
  });
});
