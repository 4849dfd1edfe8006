import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe } from "vitest";
import { ActivityService, ActorKindSchema, Outcome } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { CreditService } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { KeyService } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { UsageService } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { WorkspaceService } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { FailureDetailSchema } from "../../../gen/chorus/v1/failure_pb.js";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import { createSecret } from "../../../src/admission/secret.ts";
import { wordOf } from "../../../src/contract/json-names.ts";
import { openBrowser } from "../../helpers/browser.ts";
import { test as base, OFFLINE } from "../../helpers/fixtures.ts";
import { fixture } from "../../helpers/lifetime.ts";
import { openRaw } from "../../helpers/raw.ts";
import { listenRest } from "../../helpers/rest.ts";
import { transportWith } from "../../helpers/rpc.ts";
import { startService, type TestService } from "../../helpers/service.ts";

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

function operator({ rpcUrl, operatorToken }: TestService) {
  const transport = transportWith(rpcUrl, operatorToken);
  return {
    workspaces: createClient(WorkspaceService, transport),
    credits: createClient(CreditService, transport),
    keys: createClient(KeyService, transport),
  };
}

async function refused(
  call: Promise<unknown>,
): Promise<{ code: string; failure: string | undefined; message: string }> {
  const error = await call.then(
    () => assert.fail("the call succeeded"),
    (reason: unknown) => ConnectError.from(reason),
  );
  const failure = error.findDetails(FailureDetailSchema)[0]?.code;
  return { code: Code[error.code] ?? "", failure, message: error.rawMessage };
}

const test = base
  .extend("env", { scope: "file" }, OFFLINE)
  /** A public listener that serves a folder of pages. */
  .extend(
    "pages",
    { scope: "file" },
    fixture(async (t) => {
      const parent = await mkdtemp(join(tmpdir(), "chorus-console-"));
      t.onTestFinished(() => rm(parent, { recursive: true, force: true }));
      const folder = join(parent, "dist");
      await mkdir(join(folder, "assets"), { recursive: true });
      await writeFile(join(parent, "secret.txt"), "secret");
      await symlink(join(parent, "secret.txt"), join(folder, "link.txt"));
      await writeFile(join(folder, "index.html"), "<!doctype html><title>console</title>");
      await writeFile(join(folder, "favicon.svg"), "<svg/>");
      const script = "export const a = 1;\n".repeat(100);
      await writeFile(join(folder, "assets/main-abc.js"), script);
      await writeFile(join(folder, "assets/main-abc.js.br"), "packed with brotli");
      await writeFile(join(folder, "assets/own-abc.css"), "a{}");
      await writeFile(join(folder, "assets/own-abc.css.gz"), gzipSync("a{}/*own*/"));
      const { url } = await listenRest(t, {}, { folder });
      const get = (path: string, headers: Record<string, string> = {}) =>
        fetch(url + path, { headers: { "accept-encoding": "identity", ...headers } });
      return { script, url, get };
    }),
  )
  /** A workspace with an owner and 100 credits, and a rival workspace with one key, for each test. */
  .extend("acme", async ({ service }) => {
    const { workspaces, credits, keys } = operator(service);
    const suffix = randomUUID().slice(0, 8);
    const [name, rival] = [`acme-${suffix}`, `rival-${suffix}`];
    await workspaces.createWorkspace({ name });
    await workspaces.createWorkspace({ name: rival });
    await credits.grant({ workspace: name, amount: "100", reference: "start" });
    const rivalKey = await keys.createKey({ workspace: rival, name: "theirs" });
    const { token } = await workspaces.createOwnerToken({ workspace: name });
    return { name, rival, rivalKey, token, workspaces };
  })
  /** A browser that has not signed in. */
  .extend("visitor", ({ service }) => openBrowser(service.url))
  /** A browser signed in as the owner of `acme`. */
  .extend("browser", async ({ service, acme }) => {
    const browser = openBrowser(service.url);
    assert.equal((await browser.signIn(acme.token)).status, 200);
    return browser;
  });

describe("the console's sign-in, sessions and services", () => {
  test("refuses to sign in with a wrong token, another kind of secret or a wrong body", async ({
    service,
    visitor: browser,
    acme: { token },
  }) => {
    for (const [wrong, status] of [
      ["nonsense", 401],
      [service.operatorToken, 401],
      [`${token.slice(0, -1)}${token.endsWith("0") ? "1" : "0"}`, 401],
      ["", 422],
    ] as const) {
      const response = await browser.signIn(wrong);
      assert.equal(response.status, status);
      assert.deepEqual(response.headers.getSetCookie(), []);
    }
    const post = (body: string, headers: Record<string, string>) =>
      browser.fetch("/console/session", { method: "POST", body, headers });
    const good = JSON.stringify({ token });
    assert.equal((await post(good, { "content-type": "text/plain" })).status, 415);
    assert.equal((await post(`token=${token}`, { "content-type": "application/x-www-form-urlencoded" })).status, 415);
    assert.equal((await post("[]", { "content-type": "application/json" })).status, 400);
    assert.equal((await post(" ".repeat(5_000), { "content-type": "application/json" })).status, 413);
    for (const foreign of [
      { origin: "https://evil.example" },
      { origin: "null" },
      { origin: "" },
      { origin: service.rpcUrl },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
    ]) {
      const response = await post(good, { "content-type": "application/json", ...foreign });
      assert.equal(response.status, 403, JSON.stringify(foreign));
      assert.equal(((await response.json()) as { code: string }).code, "foreign_origin");
    }
  });

  test("signs in with the owner token and sets an HttpOnly, same-site cookie", async ({
    visitor: browser,
    acme: { name, token },
  }) => {
    assert.equal((await browser.fetch("/console/session")).status, 401);
    const response = await browser.signIn(token);
    assert.equal(response.status, 200);
    const body = (await response.json()) as { workspace: string; expires_at: string };
    assert.equal(body.workspace, name);
    assert.ok(Math.abs(Date.parse(body.expires_at) - Date.now() - 8 * 3_600_000) < 60_000);
    const [cookie = ""] = response.headers.getSetCookie();
    assert.match(
      cookie,
      /^chorus_session=cs_[0-9A-Za-z]{33}; HttpOnly; SameSite=Strict; Path=\/console; Max-Age=28800$/,
    );
    assert.equal(((await (await browser.fetch("/console/session")).json()) as typeof body).workspace, name);
  });

  test("signs in with a link, once", async ({ service, acme: { name, workspaces } }) => {
    const { path, expiresAt } = await workspaces.createSignInLink({ workspace: name });
    const [first, second] = [openBrowser(service.url), openBrowser(service.url)];
    const link = path.replace("/console#sign-in=", "");
    assert.equal((await first.signIn(link)).status, 200);
    assert.equal((await first.client(WorkspaceService).getWorkspace({})).workspace?.name, name);
    const again = await second.signIn(link);
    assert.equal(again.status, 401);
    assert.match(((await again.json()) as { message: string }).message, /used before or has expired/);
    assert.ok(Number(expiresAt?.seconds) * 1_000 > Date.now());
    assert.equal((await refused(first.client(WorkspaceService).createSignInLink({}))).failure, "missing_scope");
  });

  test("serves the owner's services to the session and refuses those of operators", async ({
    browser,
    acme: { name },
  }) => {
    const { workspace } = await browser.client(WorkspaceService).getWorkspace({});
    assert.equal(workspace?.name, name);
    assert.equal(workspace?.granted, "100");
    const { quotas } = await browser.client(UsageService).getQuotas({});
    assert.equal(quotas?.workspace, name);
    assert.deepEqual(await refused(browser.client(CreditService).grant({ amount: "1", reference: "x" })), {
      code: "PermissionDenied",
      failure: "missing_scope",
      message: "Only an operator may do this; the console is for owners.",
    });
    assert.equal((await refused(browser.client(WorkspaceService).listWorkspaces({}))).code, "PermissionDenied");
  });

  test("treats another workspace like one that does not exist", async ({ browser, acme: { rival, rivalKey } }) => {
    const calls = [
      (workspace: string) => browser.client(WorkspaceService).getWorkspace({ workspace }),
      (workspace: string) => browser.client(WorkspaceService).getNextTier({ workspace }),
      (workspace: string) => browser.client(ActivityService).listGenerations({ workspace }),
      (workspace: string) => browser.client(ActivityService).listAudit({ workspace }),
      (workspace: string) => browser.client(UsageService).getUsage({ workspace }),
      (workspace: string) => browser.client(UsageService).getQuotas({ workspace }),
      (workspace: string) => browser.client(UsageService).getPerformance({ workspace }),
      (workspace: string) => browser.client(UsageService).listTopKeys({ workspace }),
      (workspace: string) => browser.client(KeyService).listKeys({ workspace }),
      (workspace: string) => browser.client(CreditService).listLedger({ workspace }),
    ];
    for (const call of calls) {
      const existing = await refused(call(rival));
      const missing = await refused(call("nobody"));
      assert.equal(existing.code, "NotFound");
      assert.deepEqual({ ...existing, message: existing.message.replace(rival, "nobody") }, missing);
    }
    const revoke = (id: string) => refused(browser.client(KeyService).revokeKey({ id }));
    assert.deepEqual(await revoke(rivalKey.key?.id ?? ""), await revoke("key_0"));
    const { generations } = await browser.client(ActivityService).listGenerations({ keyId: rivalKey.key?.id ?? "" });
    assert.deepEqual(generations, []);
  });

  test("refuses a call that lacks the headers of the console's page", async ({ service, browser, acme: { token } }) => {
    const path = "/console/rpc/chorus.admin.v1.KeyService/CreateKey";
    const send = (headers: Record<string, string>, init: RequestInit = {}) =>
      browser.fetch(path, {
        method: "POST",
        body: "{}",
        ...init,
        headers: { "content-type": "application/json", "connect-protocol-version": "1", ...headers },
      });
    const before = (await browser.client(KeyService).listKeys({})).keys.length;
    assert.equal((await send({ origin: "https://evil.example" })).status, 403);
    assert.equal((await send({ origin: "" })).status, 403);
    assert.equal((await send({ "sec-fetch-site": "same-site" })).status, 403);
    assert.equal((await send({ "connect-protocol-version": "" })).status, 400);
    assert.equal((await send({ "content-type": "application/x-www-form-urlencoded" })).status, 415);
    assert.equal((await send({ "content-type": "text/plain" })).status, 415);
    assert.equal((await send({ "content-type": "application/grpc-web+proto" })).status, 415);
    assert.equal((await send({ cookie: "" })).status, 401);
    assert.equal(
      (await send({ cookie: "", "x-api-key": service.apiKey, authorization: `Bearer ${token}` })).status,
      401,
    );
    const read = await browser.fetch(
      "/console/rpc/chorus.admin.v1.KeyService/ListKeys?connect=v1&encoding=json&message=%7B%7D",
    );
    assert.equal(read.status, 405);
    assert.equal(read.headers.get("allow"), "POST");
    assert.equal((await browser.client(KeyService).listKeys({})).keys.length, before);
    assert.equal((await send({})).status, 200);
  });

  test("gives a key made in JSON only the scopes that are named, and refuses other members", async ({ browser }) => {
    const create = (body: object) =>
      browser.fetch("/console/rpc/chorus.admin.v1.KeyService/CreateKey", {
        method: "POST",
        headers: { "content-type": "application/json", "connect-protocol-version": "1" },
        body: JSON.stringify(body),
      });
    const response = await create({ scopes: ["metrics"] });
    assert.equal(response.status, 200);
    assert.deepEqual(((await response.json()) as { key: { scopes: string[] } }).key.scopes, ["SCOPE_METRICS"]);
    for (const body of [{ scopes: ["SCOPE_METRICZ"] }, { scope: ["metrics"] }])
      assert.equal((await create(body)).status, 400);
  });

  test("accepts the cookie only for the console", async ({ service, browser }) => {
    for (const path of ["/v1/quotas", "/v1/metrics"]) assert.equal((await browser.fetch(path)).status, 401);
    const response = await fetch(`${service.rpcUrl}/chorus.admin.v1.KeyService/ListKeys`, {
      method: "POST",
      headers: { "content-type": "application/json", "connect-protocol-version": "1", cookie: browser.cookie },
      body: "{}",
    });
    assert.equal(response.status, 401);
  });

  test("charges and counts playground requests under the console's key", async ({ browser }) => {
    const prompt = "What is 17 * 23 + 4?";
    let text = "";
    let credit = 0;
    for await (const { event } of browser
      .client(GenerationService)
      .streamGenerate({ prompt, intelligenceTrace: true })) {
      if (event.case === "delta") text += event.value.text;
      if (event.case === "done") credit = event.value.usage?.credits ?? 0;
    }
    assert.match(text, /395/);
    assert.ok(credit > 0);
    const response = await browser.client(GenerationService).generate({ prompt });
    assert.match(response.answer, /395/);
    const { workspace } = await browser.client(WorkspaceService).getWorkspace({});
    assert.equal(Number(workspace?.granted).toFixed(6), (100 - credit - (response.usage?.credits ?? 0)).toFixed(6));

    const { keys } = await browser.client(KeyService).listKeys({ withUse: true });
    const own = keys.find((key) => key.console);
    assert.equal(own?.name, "console");
    assert.equal(own?.use?.requests, 2n);
    assert.ok(own?.use?.lastUsedAt);
    const { generations } = await browser.client(ActivityService).listGenerations({ keyId: own?.id ?? "" });
    assert.deepEqual(
      generations.map(({ requestId, keyName, outcome, streamed }) => ({ requestId, keyName, outcome, streamed })),
      [
        { requestId: response.requestId, keyName: "console", outcome: Outcome.OK, streamed: false },
        { requestId: generations[1]?.requestId, keyName: "console", outcome: Outcome.OK, streamed: true },
      ],
    );
    assert.ok((generations[0]?.modelCalls ?? 0) >= 1);
    assert.equal(
      (await refused(browser.client(KeyService).revokeKey({ id: own?.id ?? "" }))).failure,
      "invalid_request",
    );
    const { entries } = await browser.client(ActivityService).listAudit({});
    assert.deepEqual(
      entries.map(({ actorKind, action }) => `${wordOf(ActorKindSchema, actorKind)} ${action}`),
      ["owner session.start", "operator owner_token.create", "operator credit.grant", "operator workspace.create"],
    );
  });

  test("returns a script in a key's name as JSON data", async ({ browser }) => {
    const name = `<script>alert(1)</script>=cmd|' /C calc'!A0`;
    await browser.client(KeyService).createKey({ name });
    const { keys } = await browser.client(KeyService).listKeys({ search: "<SCRIPT" });
    assert.deepEqual(
      keys.map((key) => key.name),
      [name],
    );
    const { entries } = await browser.client(ActivityService).listAudit({ pageSize: 1 });
    assert.equal(JSON.parse(entries[0]?.details ?? "").name, name);
    const raw = await browser.fetch("/console/rpc/chorus.admin.v1.KeyService/ListKeys", {
      method: "POST",
      headers: { "content-type": "application/json", "connect-protocol-version": "1" },
      body: "{}",
    });
    assert.equal(raw.headers.get("content-type"), "application/json");
    assert.equal(raw.headers.get("x-content-type-options"), "nosniff");
  });

  test("sends the Content-Security-Policy with every response of the console", async ({ browser }) => {
    const answers = [
      await browser.fetch("/console"),
      await browser.fetch("/console/assets/none.js"),
      await browser.fetch("/console/session"),
      await browser.fetch("/console/session", { method: "PUT" }),
      await browser.fetch("/console/session", { method: "POST" }),
      await browser.fetch("/console/rpc/none", { method: "POST" }),
      await browser.fetch("/console/rpc/chorus.admin.v1.KeyService/ListKeys", { method: "POST" }),
      await browser.fetch("/console/rpc/chorus.admin.v1.KeyService/ListKeys", {
        method: "POST",
        headers: { "content-type": "application/json", "connect-protocol-version": "1" },
        body: "{}",
      }),
    ];
    for (const { headers, url, status } of answers) {
      assert.equal(headers.get("content-security-policy"), POLICY, `${status} ${url}`);
      assert.equal(headers.get("x-content-type-options"), "nosniff");
      assert.equal(headers.get("referrer-policy"), "no-referrer");
      assert.ok(headers.get("cache-control"), `${status} ${url}`);
    }
    assert.equal((await browser.fetch("/consoles")).headers.get("content-security-policy"), null);
  });

  test("ends the session on sign-out, and all sessions of an owner token when it is replaced", async ({
    service,
    browser,
    acme: { name, token, workspaces },
  }) => {
    const other = openBrowser(service.url);
    assert.equal((await other.signIn(token)).status, 200);
    const kept = browser.cookie;
    const out = await browser.fetch("/console/session", { method: "DELETE" });
    assert.equal(out.status, 204);
    assert.match(out.headers.getSetCookie()[0] ?? "", /^chorus_session=; .*Max-Age=0/);
    browser.cookie = kept;
    assert.equal((await refused(browser.client(KeyService).listKeys({}))).code, "Unauthenticated");
    assert.equal(
      (await browser.fetch("/console/session", { method: "DELETE" })).status,
      204,
      "a second sign-out has no effect",
    );

    assert.equal((await other.client(WorkspaceService).getWorkspace({})).workspace?.name, name);
    await workspaces.createOwnerToken({ workspace: name });
    assert.equal((await refused(other.client(WorkspaceService).getWorkspace({}))).code, "Unauthenticated");
    assert.equal((await other.signIn(token)).status, 401);
  });

  test("limits failed attempts to sign in, and accepts a valid token from the same address", async ({ t }) => {
    // Needs a separate service, because the limit is per service.
    const service = await startService(t);
    const browser = openBrowser(service.url);
    let last = await browser.signIn("nonsense");
    for (let i = 0; i < 20 && last.status === 401; i++) last = await browser.signIn("nonsense");
    assert.equal(last.status, 429);
    const body = (await last.json()) as { limit: string; retry_after_ms: number };
    assert.equal(body.limit, "sign_in_attempts");
    assert.equal(Number(last.headers.get("retry-after")), Math.ceil(body.retry_after_ms / 1_000));
    const { token } = await operator(service).workspaces.createOwnerToken({ workspace: "default" });
    const unknown = createSecret("ow_");
    assert.equal((await browser.signIn(unknown)).status, 429);
    assert.equal((await browser.signIn(token)).status, 200);
  });

  test("stores and logs no secret", async ({ service, database: { pool }, browser, acme: { token } }) => {
    const [row] = await pool.query<{ text: string }>(
      "select (select string_agg(s::text, ' ') from sessions s) || " +
        "(select string_agg(a::text, ' ') from audit a) as text",
    );
    for (const secret of [token, browser.cookie.replace("chorus_session=", "")]) {
      assert.equal(secret.length, 36);
      assert.ok(!row?.text.includes(secret));
      assert.ok(!service.output().includes(secret));
    }
  });
});

test("takes the caller's address and protocol from trusted proxies", async ({ t }) => {
  const service = await startService(t, { env: { CHORUS_TRUSTED_PROXIES: "1" } });
  const { workspaces } = operator(service);
  const { token } = await workspaces.createOwnerToken({ workspace: "default" });
  const browser = openBrowser(service.url);
  const signIn = (headers: Record<string, string>, text = token) =>
    browser.fetch("/console/session", {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ token: text }),
    });
  const proxied = {
    origin: "https://chorus.example",
    "x-forwarded-host": "chorus.example",
    "x-forwarded-proto": "https",
  };
  const response = await signIn(proxied);
  assert.equal(response.status, 200);
  assert.match(response.headers.getSetCookie()[0] ?? "", /; Secure$/);
  assert.equal((await signIn({ ...proxied, origin: "https://evil.example" })).status, 403);
  const from = async (address: string) =>
    (await signIn({ "x-forwarded-for": address }, `${address} is no token`)).status;
  for (let i = 0; i < 10; i++) assert.equal(await from(`10.0.0.${i}, 2001:db8::${i}`), 401);
  assert.equal(await from("10.0.0.99, 2001:db8::ffff"), 429, "one IPv6 network is one source");
  assert.equal(await from("10.0.0.99, 2001:db9::1"), 401);
});

test("leads a browser from / to the console, and tells a program where the API is", async ({ service: { url } }) => {
  const page = await fetch(url, { redirect: "manual", headers: { accept: "text/html,*/*;q=0.8" } });
  assert.deepEqual([page.status, page.headers.get("location"), page.headers.get("vary")], [302, "/console", "Accept"]);
  const program = await fetch(url);
  assert.equal(program.status, 404);
  const { code, message } = (await program.json()) as { code: string; message: string };
  assert.equal(code, "not_found");
  for (const path of ["/v1", "/docs", "/console"]) assert.ok(message.includes(path));
});

describe("serves the files of the console's folder only", () => {
  test("serves the page at every path of the console", async ({ pages: { url, get } }) => {
    for (const path of ["/console", "/console/", "/console/keys", "/console/activity/gen_1?x=1"]) {
      const response = await get(path);
      assert.equal(response.status, 200, path);
      assert.equal(response.headers.get("cache-control"), "no-store");
      assert.equal(response.headers.get("content-type"), "text/html; charset=utf-8");
      assert.equal(response.headers.get("content-security-policy"), POLICY);
      assert.match(await response.text(), /<title>console/);
    }
    assert.equal((await fetch(`${url}/console`, { method: "POST" })).status, 405);
    assert.equal(await (await fetch(`${url}/console`, { method: "HEAD" })).text(), "");
  });

  test("caches assets permanently and other files by ETag", async ({ pages: { script, get } }) => {
    const asset = await get("/console/assets/main-abc.js");
    assert.equal(asset.headers.get("cache-control"), "public, max-age=31536000, immutable");
    assert.equal(asset.headers.get("content-type"), "text/javascript; charset=utf-8");
    assert.equal(await asset.text(), script);
    const icon = await get("/console/favicon.svg");
    assert.equal(icon.headers.get("cache-control"), "no-cache");
    const tag = icon.headers.get("etag") ?? "";
    const again = await get("/console/favicon.svg", { "if-none-match": `"other", W/${tag}` });
    assert.equal(again.status, 304);
    assert.equal(again.headers.get("content-security-policy"), POLICY);
  });

  test("sends compressed files when the caller accepts them", async ({ pages: { url }, t }) => {
    const raw = await openRaw(t, url);
    const read = async (path: string, accepted: string) => {
      raw.send(`GET ${path} HTTP/1.1\r\nHost: test\r\nAccept-Encoding: ${accepted}\r\n\r\n`);
      const { headers, body } = await raw.read();
      assert.equal(headers.vary, "Accept-Encoding");
      return { encoding: headers["content-encoding"], etag: headers.etag, body };
    };
    const uncompressed = await read("/console/assets/main-abc.js", "identity");
    const compressed = await read("/console/assets/main-abc.js", "gzip, br");
    assert.equal(compressed.encoding, "br");
    assert.equal(compressed.body, "packed with brotli");
    assert.notEqual(compressed.etag, uncompressed.etag);
    assert.equal((await read("/console/assets/main-abc.js", "gzip, br;q=0")).encoding, "gzip");
    assert.equal((await read("/console/assets/main-abc.js", "")).encoding, undefined);
    const own = await fetch(`${url}/console/assets/own-abc.css`, { headers: { "accept-encoding": "gzip" } });
    assert.equal(await own.text(), gunzipSync(gzipSync("a{}/*own*/")).toString());
  });

  test("returns 404 for missing files and for paths outside the folder", async ({ pages: { url }, t }) => {
    const raw = await openRaw(t, url);
    for (const path of [
      "/console/assets/none.js",
      "/console/none.css",
      "/console/link.txt",
      "/console/assets/main-abc.js.br",
      "/console/../secret.txt",
      "/console/..%2fsecret.txt",
      "/console/%2e%2e/secret.txt",
      "/console/assets/../../secret.txt",
      "/console/..\\secret.txt",
      "/console//etc/passwd.",
      "/console/assets/%00.js",
    ]) {
      raw.send(`GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`);
      const { status, body } = await raw.read();
      assert.equal(status, 404, path);
      assert.ok(!body.includes("secret\n") && !/^secret/.test(body));
    }
  });
});

test("explains how to build the console when it is missing", async ({ t }) => {
  const { url } = await listenRest(t, {});
  const response = await fetch(`${url}/console`);
  assert.equal(response.status, 404);
  assert.equal(response.headers.get("content-security-policy"), POLICY);
  assert.match(await response.text(), /npm run prepare/);
});
