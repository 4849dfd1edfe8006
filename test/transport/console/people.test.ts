import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe } from "vitest";
import { ActivityService, ActorKind } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { KeyService } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { MemberService } from "../../../gen/chorus/admin/v1/members_pb.js";
import { WorkspaceService } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import { MemberRole } from "../../../gen/chorus/v1/options_pb.js";
import { ROLES } from "../../../src/contract/roles.ts";
import { ADMIN_SERVICES } from "../../../src/transport/call/methods.ts";
import { type Browser, openBrowser } from "../../helpers/browser.ts";
import { test as base, OFFLINE } from "../../helpers/fixtures.ts";
import { fixture } from "../../helpers/lifetime.ts";
import { signInAs, startProvider, walkProvider } from "../../helpers/oidc.ts";
import { transportWith } from "../../helpers/rpc.ts";
import { startService } from "../../helpers/service.ts";
import { until } from "../../helpers/until.ts";

const GROUPS = { owner: "leads", developer: "engineering", billing: "finance", viewer: "guests" } as const;

/** What members who are no owners may call, written down a second time. An owner may call all but OPERATORS. */
const MAY: Record<"developer" | "billing" | "viewer", string> = {
  developer:
    "ListGenerations ListRunning GetRun GetRunText SetCap ListCaps ClearCap CreateKey UpdateKey ListKeys RevokeKey " +
    "GetUsage GetQuotas GetPerformance ListTopKeys GetWorkspace GetNextTier Generate StreamGenerate RecordOutcome " +
    "Quotas",
  billing:
    "ListGenerations ListRunning GetRun ListCaps ListLedger ListLedgerHours SetSpendLimit ClearSpendLimit GetUsage " +
    "GetQuotas GetPerformance ExportUsage ListTopSubjects ListTagNames ListTopKeys GetWorkspace GetNextTier Quotas " +
    "Metrics",
  viewer:
    "ListGenerations ListRunning GetRun ListAudit GetAlerts ListAlertDeliveries ListCaps ListLedger ListLedgerHours " +
    "ListKeys ListMembers GetUsage GetQuotas GetPerformance ExportUsage ListTopSubjects ListTagNames ListTopKeys " +
    "GetWorkspace GetNextTier Quotas Metrics",
};
const OPERATORS =
  "Grant Deduct Purchase CheckBooks GetServiceUsage ListModels DisableModel EnableModel TestModel " +
  "ListLearned ResetLearned ListReplicas ListWorkspaceStates " +
  "CreateWorkspace ListWorkspaces SetTier SetLimits CreateOwnerToken CreateSignInLink";

const test = base
  .extend("provider", { scope: "file" }, fixture(startProvider))
  .extend("env", { scope: "file" }, ({ provider }) => ({ ...OFFLINE, ...provider.env }) as Record<string, string>)
  /** Signs a new person with these groups in. */
  .extend("person", ({ provider, service }) => async (groups: readonly string[] = [], to?: string) => {
    const subject = `person-${randomBytes(4).toString("hex")}`;
    const claims = { name: `Name of ${subject}`, email: `${subject}@example.com`, groups };
    provider.accounts.set(subject, claims);
    const browser = openBrowser(service.url);
    const landed = await signInAs(browser, subject, to);
    return { subject, browser, landed, name: claims.name };
  })
  .extend("members", ({ service: { rpcUrl, operatorToken } }) => {
    return createClient(MemberService, transportWith(rpcUrl, operatorToken));
  });

/** Calls a method with an empty request. @returns the code of the failure; undefined when it succeeds */
async function codeOf(
  browser: Browser,
  service: (typeof ADMIN_SERVICES)[number] | typeof GenerationService,
  name: string,
) {
  const method = service.methods.find((one) => one.name === name);
  assert.ok(method);
  const client = browser.client(service) as unknown as Record<string, (request: object) => unknown>;
  try {
    const answer = client[method.localName]?.(create(method.input));
    if (method.methodKind === "server_streaming") for await (const _ of answer as AsyncIterable<unknown>);
    else await answer;
    return undefined;
  } catch (error) {
    return Code[ConnectError.from(error).code];
  }
}

const session = async (browser: Browser) => {
  const response = await browser.fetch("/console/session");
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};

const sendToken = async (browser: Browser, token: string) => {
  const response = await browser.signIn(token);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};

describe("people in the console", () => {
  test.for(ROLES)("a person who is %s may call exactly the methods of the role", async (role, { person }) => {
    const { browser } = await person([GROUPS[role]]);
    const operators = new Set(OPERATORS.split(" "));
    const allowed = role === "owner" ? undefined : new Set(MAY[role].split(" "));
    for (const service of [...ADMIN_SERVICES, GenerationService]) {
      for (const { name } of service.methods) {
        const isAllowed = allowed ? allowed.has(name) : !operators.has(name);
        const code = await codeOf(browser, service, name);
        assert.equal(code !== "PermissionDenied", isAllowed, `${role} ${name}: ${code}`);
      }
    }
  });

  test("tells the page who the person is, with the cookie rules of other sessions", async ({ person, provider }) => {
    const { browser, landed, name } = await person(["engineering"], "/console/keys?search=a");
    assert.equal(landed, "/console/keys?search=a");
    assert.match(browser.cookie, /^chorus_session=ps_[0-9A-Za-z]{33}$/);
    const { body } = await session(browser);
    assert.equal((body.person as { name: string }).name, name);
    assert.equal(body.role, "developer");
    assert.equal(body.workspace, "default");
    const foreign = await browser.fetch("/console/session", { method: "DELETE", headers: { origin: provider.issuer } });
    assert.equal(foreign.status, 403);
    const named = await browser.fetch("/console/sign-in/provider");
    assert.deepEqual(await named.json(), { provider: "Example" });
  });

  test("leads back to the page of any user, and of any search", async ({ person }) => {
    const query = new URLSearchParams({ subject: `user:${"声".repeat(128)}`, search: "ab*-._~ 'x'(1)" });
    const to = `/console/subjects?${query}`;
    assert.equal((await person(["guests"], to)).landed, to);
    assert.equal((await person(["guests"], "/console/\\example.com")).landed, "/console");
  });

  test("makes a person an operator by claim alone", async ({ person }) => {
    const { browser, landed } = await person(["operators"]);
    assert.equal(landed, "/console/operator");
    const other = await browser.fetch("/console/operator/session");
    assert.equal(other.status, 200);
    const { browser: ann, landed: refused } = await person(["guests"], "/console/operator");
    assert.equal(refused, "/console/operator#sign-in-failed=not_operator");
    assert.equal((await ann.fetch("/console/operator/session")).status, 401);
  });

  test("invites by a link that one person uses once, and lets them choose a workspace", async ({ person, members }) => {
    const { path } = await members.inviteMember({ workspace: "default", role: MemberRole.DEVELOPER, note: "Ann" });
    const secret = path.replace("/console#invitation=", "");
    const [ann, eve] = [await person(), await person()];
    assert.equal((await session(ann.browser)).body.workspace, "");
    assert.equal((await sendToken(openBrowser(ann.browser.url), secret)).status, 401, "before the sign-in");
    const joined = await sendToken(ann.browser, secret);
    assert.deepEqual([joined.status, joined.body.role], [200, "developer"]);
    const again = await sendToken(eve.browser, secret);
    assert.equal(again.status, 422);
    assert.match(String(again.body.message), /used before or has expired/);
    assert.equal((await session(eve.browser)).body.workspace, "");
    assert.equal(await codeOf(eve.browser, WorkspaceService, "GetWorkspace"), "PermissionDenied");
    const wrong = await ann.browser.fetch("/console/session", {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ workspace: "ws_unknown" }),
    });
    assert.equal(wrong.status, 404);
  });

  test("refuses a call of a page that shows another workspace than the session has", async ({ person }) => {
    const { browser } = await person(["leads"]);
    const shown = String((await session(browser)).body.workspace_id);
    const keys = browser.client(KeyService);
    const call = (workspace: string) =>
      keys.createKey({ name: "meant for one" }, { headers: { "x-chorus-workspace": workspace } });
    await call(shown);
    await assert.rejects(call("ws_other"), (error: ConnectError) => error.code === Code.PermissionDenied);
    assert.equal((await keys.listKeys({ search: "meant for one" })).keys.length, 1);
  });

  test("removes a member with the next call, with the keys, and names people in the audit log", async ({
    person,
    members,
    service,
  }) => {
    const owner = await person(["leads"]);
    const ann = await person(["engineering"]);
    const { secret = "", key } = await ann.browser.client(KeyService).createKey({ name: "hers" });
    assert.equal(key?.createdByName, ann.name);
    assert.equal(key?.holder?.name, ann.name);
    const ask = () => service.post("/v1/generate", { prompt: "Hello" }, { "x-api-key": secret });
    assert.equal((await ask()).status, 200);
    const all = await owner.browser.client(MemberService).listMembers({ pageSize: 1_000 });
    const row = all.members.find((one) => one.person?.name === ann.name);
    assert.equal(row?.keys, 1);
    const removed = await owner.browser.client(MemberService).removeMember({ person: row?.person?.id ?? "" });
    assert.equal(removed.revokedKeys, 1);
    assert.equal(await codeOf(ann.browser, KeyService, "ListKeys"), "PermissionDenied");
    assert.equal((await ask()).status, 401);
    const { entries } = await owner.browser.client(ActivityService).listAudit({});
    const [made, ended] = ["key.create", "member.remove"].map((action) => entries.find((one) => one.action === action));
    assert.deepEqual([made?.actorKind, made?.actorName], [ActorKind.MEMBER, ann.name]);
    assert.deepEqual([ended?.actorKind, ended?.actorName], [ActorKind.MEMBER, owner.name]);
    assert.ok((await members.listMembers({ workspace: "default" })).members.length > 0);
  });

  test("signs out here and at the provider", async ({ person, provider }) => {
    const { browser } = await person(["guests"]);
    const response = await browser.fetch("/console/session", { method: "DELETE" });
    assert.equal(response.status, 200);
    const { sign_out_url: address } = (await response.json()) as { sign_out_url: string };
    const url = new URL(address);
    assert.equal(url.origin, provider.issuer);
    assert.ok(url.searchParams.get("id_token_hint"));
    assert.match(url.searchParams.get("post_logout_redirect_uri") ?? "", /\/console$/);
    assert.equal((await fetch(url)).status, 200);
    assert.equal((await session(browser)).status, 401);
  });

  test("ends a sign-in only in the browser that began it, and says when the provider is down", async ({
    provider,
    service,
    person,
  }) => {
    const visitor = openBrowser(service.url);
    const done = await visitor.fetch("/console/sign-in/done?code=x&state=y", { redirect: "manual" });
    assert.equal(done.headers.get("location"), "/console#sign-in-failed=refused");
    const { browser } = await person(["guests"]);
    provider.isDown = true;
    try {
      assert.equal((await session(browser)).status, 200);
      const begun = await visitor.fetch("/console/sign-in", { redirect: "manual" });
      // The metadata are known for ten minutes, so the browser sees that the provider is down.
      assert.match(begun.headers.get("location") ?? "", /^http:\/\/localhost|#sign-in-failed=no_provider$/);
    } finally {
      provider.isDown = false;
    }
  });

  test("logs what is wrong with the settings of the provider", async ({ provider, onTestFinished }) => {
    provider.accounts.set("settled", {});
    const failed = async (env: Record<string, string>) => {
      const service = await startService({ onTestFinished }, { env: { ...OFFLINE, ...provider.env, ...env } });
      const browser = openBrowser(service.url);
      const begun = await browser.fetch("/console/sign-in", { redirect: "manual" });
      const address = begun.headers.get("location") ?? "";
      if (!address.startsWith("/")) {
        const back = new URL(await walkProvider(address, "settled"));
        const done = await browser.fetch(back.pathname + back.search, { redirect: "manual" });
        assert.equal(done.headers.get("location"), "/console#sign-in-failed=no_provider");
      }
      const find = () => /.*a sign-in through the identity provider failed.*/.exec(service.output())?.[0];
      await until(() => find() !== undefined);
      return JSON.parse(find() ?? "").provider;
    };
    assert.deepEqual(await failed({ CHORUS_OIDC_CLIENT_SECRET: "wrong" }), { error: "invalid_client" });
    const other = provider.issuer.replace("localhost", "127.0.0.1");
    assert.deepEqual(await failed({ CHORUS_OIDC_ISSUER: other }), { member: "issuer", issuer: provider.issuer });
    assert.deepEqual(await failed({ CHORUS_OIDC_ISSUER: `${provider.issuer}/realms/none` }), { status: 404 });
  });

  test.for([
    { path: "/console", most: 4 },
    { path: `/console/keys?search=${"a".repeat(1_900)}`, most: 2 },
  ])("keeps the last $most sign-ins that a browser began", async ({ path, most }, { service }) => {
    const kept = new Map<string, string>();
    for (let begun = 0; begun < 6; begun += 1) {
      const cookie = [...kept].map((pair) => pair.join("=")).join("; ");
      const address = `${service.url}/console/sign-in?to=${encodeURIComponent(path)}`;
      const response = await fetch(address, { headers: { cookie }, redirect: "manual" });
      for (const line of response.headers.getSetCookie()) {
        const [, name = "", value = ""] = /^(chorus_sign_in_[^=]+)=([^;]*)/.exec(line) ?? [];
        if (line.includes("Max-Age=0")) assert.equal(kept.keys().next().value, name, "the oldest ends");
        if (line.includes("Max-Age=0")) kept.delete(name);
        else kept.set(name, value);
      }
    }
    assert.equal(kept.size, most);
  });

  test("writes no code, token or secret to the log", async ({ person, service }) => {
    const { browser } = await person(["engineering"]);
    const { secret } = await browser.client(KeyService).createKey({ name: "x" });
    const output = service.output();
    for (const word of [
      secret,
      browser.cookie.split("=")[1] ?? "-",
      "secret-of-chorus",
      "eyJ",
      "code=",
      "@example.com",
    ])
      assert.ok(!output.includes(word), word);
  });
});
