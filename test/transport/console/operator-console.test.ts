import assert from "node:assert/strict";
import { ConnectError } from "@connectrpc/connect";
import { OperationsService } from "../../../gen/chorus/admin/v1/operations_pb.js";
import { WorkspaceService } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { FailureDetailSchema } from "../../../gen/chorus/v1/failure_pb.js";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import { openBrowser } from "../../helpers/browser.ts";
import { test as base, OFFLINE } from "../../helpers/fixtures.ts";

const SIDE = "/console/operator";

const test = base
  .extend("env", { scope: "file" }, OFFLINE)
  /** A browser signed in as the operator. */
  .extend("browser", async ({ service }) => {
    const browser = openBrowser(service.url, SIDE);
    assert.equal((await browser.signIn(service.operatorToken)).status, 200);
    return browser;
  });

async function codeOf(call: Promise<unknown>): Promise<string | undefined> {
  const error = await call.then(
    () => assert.fail("the call succeeded"),
    (reason: unknown) => ConnectError.from(reason),
  );
  return error.findDetails(FailureDetailSchema)[0]?.code;
}

test("signs in with the operator token alone, into a cookie for the operator's side", async ({ service, browser }) => {
  const operator = browser.client(WorkspaceService);
  const { token } = await operator.createOwnerToken({ workspace: "default" });
  const other = openBrowser(service.url, SIDE);
  for (const wrong of ["nonsense", token, service.apiKey]) {
    const response = await other.signIn(wrong);
    assert.equal(response.status, 401);
    assert.match(((await response.json()) as { message: string }).message, /^The operator token is not valid/);
    assert.deepEqual(response.headers.getSetCookie(), []);
  }
  const response = await other.signIn(service.operatorToken);
  assert.match(
    response.headers.getSetCookie()[0] ?? "",
    /^chorus_operator=os_\w{33}; HttpOnly; SameSite=Strict; Path=\/console\/operator; Max-Age=28800$/,
  );
  const shown = (await (await other.fetch(`${SIDE}/session`)).json()) as Record<string, string>;
  assert.match(shown.operator ?? "", /^tok_\w{16}$/);
  assert.deepEqual(Object.keys(shown), ["operator", "expires_at"]);
});

test("serves the operator's services, but no requests", async ({ browser }) => {
  const { workspace } = await browser.client(WorkspaceService).createWorkspace({ name: "by-operator" });
  assert.equal(workspace?.name, "by-operator");
  assert.ok((await browser.client(OperationsService).listWorkspaceStates({})).workspaces.length >= 2);
  assert.equal(await codeOf(browser.client(GenerationService).generate({ prompt: "a" })), "missing_scope");
});

test("keeps the sides apart", async ({ service, browser }) => {
  const { token } = await browser.client(WorkspaceService).createOwnerToken({ workspace: "default" });
  const owner = openBrowser(service.url);
  assert.equal((await owner.signIn(token)).status, 200);
  const [own, foreign] = [openBrowser(service.url), openBrowser(service.url, SIDE)];
  own.cookie = browser.cookie;
  foreign.cookie = owner.cookie;
  assert.equal(await codeOf(own.client(WorkspaceService).getWorkspace({ workspace: "default" })), "unauthenticated");
  assert.equal(await codeOf(foreign.client(WorkspaceService).listWorkspaces({})), "unauthenticated");
  // A cookie with the secret of the other side is no session either.
  foreign.cookie = owner.cookie.replace("chorus_session", "chorus_operator");
  assert.equal(await codeOf(foreign.client(WorkspaceService).listWorkspaces({})), "unauthenticated");
});

test("refuses a call or a sign-in that other pages could send", async ({ service, browser }) => {
  for (const headers of [{ origin: "https://evil.example" }, { "sec-fetch-site": "cross-site" }]) {
    const signIn = await browser.fetch(`${SIDE}/session`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ token: service.operatorToken }),
    });
    const call = await browser.fetch(`${SIDE}/rpc/chorus.admin.v1.WorkspaceService/ListWorkspaces`, {
      method: "POST",
      headers: { "content-type": "application/json", "connect-protocol-version": "1", ...headers },
      body: "{}",
    });
    assert.deepEqual([signIn.status, call.status], [403, 403]);
  }
});

test("ends at sign-out", async ({ service, browser }) => {
  const kept = browser.cookie;
  assert.equal((await browser.fetch(`${SIDE}/session`, { method: "DELETE" })).status, 204);
  browser.cookie = kept;
  assert.equal(await codeOf(browser.client(WorkspaceService).listWorkspaces({})), "unauthenticated");
  assert.equal((await fetch(`${service.url}${SIDE}`, { headers: { accept: "text/html" } })).status, 200);
});
