import assert from "node:assert/strict";
import { describe } from "vitest";
import { Scope } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { WorkspaceKind } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { adminOf } from "../../helpers/admin.ts";
import { draining } from "../../helpers/draining.ts";
import { test as base } from "../../helpers/fixtures.ts";
import { head, openRaw } from "../../helpers/raw.ts";
import { startService } from "../../helpers/service.ts";
import { until } from "../../helpers/until.ts";

const JSON_TYPE = { "Content-Type": "application/json" };

const test = base.extend("shared", { scope: "file" }, async ({ serviceOfFile: service, database: { pool } }) => {
  const { keys } = adminOf(pool);
  const key = { "X-API-Key": service.apiKey };
  const secretOf = async (scopes: Scope[]) => {
    const { key, secret } = await keys.createKey({ workspace: "default", scopes });
    return { id: key?.id ?? "", secret };
  };
  return { keys, key, secretOf };
});

describe("failures over REST", () => {
  test("400 when the body is not a JSON object or not UTF-8", async ({ service, shared: { key } }) => {
    const post = (body: Buffer<ArrayBuffer>) =>
      fetch(`${service.url}/v1/generate`, { method: "POST", headers: { ...key, ...JSON_TYPE }, body });
    const bodies = [
      "",
      " ",
      "{",
      "[]",
      "[{}]",
      "1",
      "null",
      '"text"',
      '{"prompt":"a"}{',
      "{'prompt':'a'}",
      '{"prompt":"a",}',
    ];
    for (const body of bodies) {
      const failure = await expectFailure(await service.post("/v1/generate", body), 400, "invalid_json");
      assert.deepEqual(Object.keys(failure), ["code", "message", "request_id"], body);
    }
    for (const [body, place] of [
      ["{'prompt':'a'}", "line 1, column 2"],
      ['{"prompt":"a"', "line 1, column 14"],
      ['{\n  "prompt": "secret",\n}', "line 3, column 1"],
    ] as const) {
      const { message } = await expectFailure(await service.post("/v1/generate", body), 400, "invalid_json");
      assert.ok(message.includes(place) && !message.includes("secret"), message);
    }
    for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf5, 0x80, 0x80, 0x80]]) {
      const body = Buffer.concat([Buffer.from('{"prompt":"a'), Buffer.from(bytes), Buffer.from('"}')]);
      const failure = await expectFailure(await post(body), 400, "invalid_json");
      assert.match(failure.message, /UTF-8/);
    }
    const utf16 = Buffer.from('\ufeff{"prompt":"a"}', "utf16le");
    await expectFailure(await post(utf16), 400, "invalid_json");
  });

  test("401 with the same message for every kind of bad key", async ({
    service,
    database: { pool },
    shared: { keys, secretOf },
    t,
  }) => {
    const revoked = await secretOf([Scope.GENERATE]);
    await keys.revokeKey({ id: revoked.id });
    const expired = await secretOf([Scope.GENERATE]);
    await pool.query("update api_keys set expires_at = now() - interval '1 second' where id = $1", [expired.id]);
    const bad: Record<string, string>[] = [
      {},
      { "X-API-Key": "" },
      { "X-API-Key": "ck_unknown" },
      { "X-API-Key": `${service.apiKey}x` },
      { "X-API-Key": "x".repeat(10_000) },
      { "X-API-Key": revoked.secret },
      { "X-API-Key": expired.secret },
      { Authorization: service.apiKey },
      { Authorization: `Basic ${service.apiKey}` },
      { Authorization: `Bearer ${service.apiKey}x` },
      { Authorization: `Bearer ${service.operatorToken}` },
      // X-API-Key takes precedence.
      { Authorization: `Bearer ${service.apiKey}`, "X-API-Key": "ck_unknown" },
    ];
    const seen = new Set<string>();
    for (const headers of bad) {
      for (const [method, path] of [
        ["POST", "/v1/generate"],
        ["POST", "/v1/generate:stream"],
        ["GET", "/v1/quotas"],
        ["GET", "/v1/metrics"],
      ] as const) {
        const body = method === "POST" ? { body: '{"prompt":"a"}' } : {};
        const response = await fetch(service.url + path, { method, headers: { ...JSON_TYPE, ...headers }, ...body });
        const { request_id: _, ...failure } = await expectFailure(response, 401, "unauthenticated");
        assert.equal(response.headers.get("www-authenticate"), "Bearer");
        seen.add(JSON.stringify(failure));
      }
    }
    assert.equal(seen.size, 1);
    // Two keys are refused even if both are valid.
    const twice = await openRaw(t, service.url);
    twice.send(
      `GET /v1/quotas HTTP/1.1\r\nHost: a\r\nX-API-Key: ${service.apiKey}\r\nX-API-Key: ${service.apiKey}\r\n\r\n`,
    );
    assert.equal((await twice.read()).status, 401);
  });

  test("accepts a key as a bearer token, unless X-API-Key has another", async ({ service }) => {
    const bearer = { authorization: `Bearer ${service.apiKey}` };
    for (const headers of [
      bearer,
      { authorization: `bearer ${service.apiKey}` },
      // RFC 9110 allows several spaces.
      { authorization: `Bearer   ${service.apiKey}` },
      { ...bearer, "x-api-key": "" },
      { authorization: "Bearer ck_unknown", "x-api-key": service.apiKey },
    ]) {
      const body = '{"prompt":"a"}';
      for (const path of ["/v1/generate", "/v1/generate:stream"]) {
        const response = await fetch(service.url + path, {
          method: "POST",
          headers: { ...JSON_TYPE, ...headers } as Record<string, string>,
          body,
        });
        assert.equal(response.status, 200, `${path}: ${await response.text()}`);
      }
      for (const path of ["/v1/quotas", "/v1/metrics"])
        assert.equal((await fetch(service.url + path, { headers: headers as Record<string, string> })).status, 200);
    }
  });

  test("403 names the scope that the key lacks", async ({ service, shared: { secretOf } }) => {
    const metricsOnly = await secretOf([Scope.METRICS]);
    const generateOnly = await secretOf([Scope.GENERATE]);
    for (const [method, path, { secret }, scope] of [
      ["POST", "/v1/generate", metricsOnly, "generate"],
      ["POST", "/v1/generate:stream", metricsOnly, "generate"],
      ["GET", "/v1/quotas", generateOnly, "metrics"],
      ["GET", "/v1/metrics", generateOnly, "metrics"],
    ] as const) {
      const response = await fetch(service.url + path, { method, headers: { "X-API-Key": secret } });
      const failure = await expectFailure(response, 403, "missing_scope");
      assert.match(failure.message, new RegExp(`"${scope}"`));
    }
    // A key without scopes has all scopes.
    const all = await secretOf([]);
    assert.equal((await service.get("/v1/quotas", { "x-api-key": all.secret })).status, 200);
    assert.equal((await service.post("/v1/generate", { prompt: "a" }, { "x-api-key": all.secret })).status, 200);
  });

  test("404 and 405 before the key is checked", async ({ service }) => {
    for (const path of [
      "/v1",
      "/v1/",
      "/v1/generate/",
      "/v1//generate",
      "/v1/model",
      "/V1/generate",
      "/v1/generate:other",
      "/metrics",
    ]) {
      await expectFailure(await fetch(service.url + path, { method: "POST" }), 404, "not_found");
    }
    for (const [method, path, allow] of [
      ["POST", "/", "GET, HEAD"],
      ["GET", "/v1/generate", "POST"],
      ["HEAD", "/v1/generate", "POST"],
      ["PUT", "/v1/generate:stream", "POST"],
      ["OPTIONS", "/v1/generate", "POST"],
      ["POST", "/v1/quotas", "GET, HEAD"],
      ["DELETE", "/v1/metrics", "GET, HEAD"],
      ["POST", "/healthz", "GET, HEAD"],
    ] as const) {
      const response = await fetch(service.url + path, { method });
      assert.equal(response.headers.get("allow"), allow, `${method} ${path}`);
      if (method === "HEAD") assert.equal(response.status, 405);
      else {
        const { message } = await expectFailure(response, 405, "method_not_allowed");
        assert.match(message, allow === "POST" ? /Use POST\.$/ : /Use GET or HEAD\.$/);
      }
    }
  });

  test("415 for any type except application/json in UTF-8", async ({ service, shared: { key } }) => {
    const post = (headers: Record<string, string>) =>
      fetch(`${service.url}/v1/generate`, {
        method: "POST",
        headers: { ...key, ...headers },
        body: Buffer.from('{"prompt":"a"}'),
      });
    for (const headers of [
      {},
      { "Content-Type": "text/plain" },
      { "Content-Type": "application/x-www-form-urlencoded" },
      { "Content-Type": "application/jsonp" },
      { "Content-Type": "application/json; charset=latin1" },
      { ...JSON_TYPE, "Content-Encoding": "gzip" },
      { ...JSON_TYPE, "Content-Encoding": "identity, br" },
    ]) {
      const response = await post(headers);
      await expectFailure(response, 415, "unsupported_media_type");
      assert.equal(response.headers.get("accept-encoding"), "Content-Encoding" in headers ? "identity" : null);
    }
    for (const headers of [
      { "Content-Type": "Application/JSON" },
      { "Content-Type": "application/json;charset=UTF-8" },
      { "Content-Type": 'application/json ; charset="utf-8"' },
      // The name that many programs write.
      { "Content-Type": "application/json; charset=utf8" },
      { ...JSON_TYPE, "Content-Encoding": "Identity" },
    ]) {
      assert.equal((await post(headers)).status, 200, JSON.stringify(headers));
    }
  });

  test("502 upstream_failed when every model failed, without the vendor's message", async ({ service, vendor }) => {
    vendor.always({ status: 400, error: { message: "marker-of-the-vendor" } });
    for (const path of ["/v1/generate", "/v1/generate:stream"]) {
      const response = await service.post(path, { prompt: "a" });
      assert.equal(response.headers.get("retry-after"), "1");
      const failure = await expectFailure(response, 502, "upstream_failed");
      assert.deepEqual(Object.keys(failure), ["code", "message", "request_id", "retry_after_ms"]);
      assert.doesNotMatch(JSON.stringify(failure), /marker/);
    }
    vendor.always({});
  });

  test("500 does not reveal its cause, and the service keeps running", async ({ service, database: { pool } }) => {
    await pool.query("alter table generations rename column shape to away");
    await pool.query("alter table settlement_log rename column workspace_id to away");
    const failure = await expectFailure(await service.post("/v1/generate", { prompt: "a" }), 500, "internal");
    assert.doesNotMatch(failure.message, /shape|workspace_id|column|relation/);
    await pool.query("alter table generations rename column away to shape");
    await pool.query("alter table settlement_log rename column away to workspace_id");
    assert.equal((await service.post("/v1/generate", { prompt: "a" })).status, 200);
  });

  test("checks path and method, key, credit, size, type, body and fields in this order", async ({
    service,
    database: { pool },
    shared: { key },
    t,
  }) => {
    const { workspaces, keys } = adminOf(pool);
    await workspaces.createWorkspace({ name: "poor", kind: WorkspaceKind.PERSONAL });
    const { secret } = await keys.createKey({ workspace: "poor" });
    const poor = { "X-API-Key": secret };
    const huge = { "Content-Length": "67108865" };
    const bad = { "X-API-Key": "bad" };
    const text = { "Content-Type": "text/plain" };
    const rows: [target: string, headers: Record<string, string>, status: number][] = [
      ["/v1/nothing", { ...bad, ...huge }, 404],
      ["/v1/quotas", { ...bad, ...huge }, 405],
      ["/v1/generate", { ...bad, ...huge, ...text }, 401],
      ["/v1/generate", { ...poor, ...huge, ...text }, 402],
      ["/v1/generate:stream", { ...poor, ...text, "Content-Length": "1000000" }, 402],
      ["/v1/chat/completions", { ...poor, ...huge, ...text }, 402],
      ["/v1/generate", { ...key, ...huge, ...text }, 413],
      ["/v1/generate", { ...key, ...text, "Content-Length": "1000000" }, 415],
    ];
    for (const [target, headers, status] of rows) {
      const raw = await openRaw(t, service.url);
      raw.send(head("POST", target, headers));
      const response = await raw.read();
      assert.equal(response.status, status, response.body);
      assert.equal(response.headers.connection, "close");
      if (!target.includes("chat"))
        assert.equal(JSON.parse(response.body).request_id, response.headers["x-request-id"]);
      raw.socket.destroy();
    }
    await expectFailure(
      await service.post("/v1/generate", "{", { "content-type": "text/plain" }),
      415,
      "unsupported_media_type",
    );
    await expectFailure(await service.post("/v1/generate", "{"), 400, "invalid_json");
  });

  test("504 without text before the deadline, 503 while draining", async ({
    vendor,
    database: { url: databaseUrl },
    t,
  }) => {
    const env = {
      ...vendor.env,
      CHORUS_DEADLINES_MS: '{"low":150,"medium":60000,"high":60000}',
      CHORUS_DRAIN_MS: "2000",
    };
    const other = await startService(t, { databaseUrl, env });
    vendor.always({ end: "silent" });
    for (const path of ["/v1/generate", "/v1/generate:stream"]) {
      const failure = await expectFailure(await other.post(path, { prompt: "a" }), 504, "timed_out");
      assert.deepEqual(Object.keys(failure), ["code", "message", "request_id"]);
    }
    const before = vendor.calls.length;
    const running = other.post("/v1/generate", { prompt: "a", effort: "high" });
    await until(() => vendor.calls.length > before);
    const stopped = other.stop("SIGTERM");
    await draining(other.url);
    for (const path of ["/v1/generate", "/v1/generate:stream"]) {
      const response = await other.post(path, { prompt: "a" });
      assert.equal(response.headers.get("retry-after"), "1");
      const failure = await expectFailure(response, 503, "overloaded");
      assert.deepEqual(Object.keys(failure), ["code", "message", "request_id", "retry_after_ms"]);
      assert.equal(failure.retry_after_ms, 1000);
    }
    // A request without text at the end of the drain fails with 503, so that its caller retries elsewhere.
    const cut = await running;
    assert.equal(cut.headers.get("retry-after"), "1");
    await expectFailure(cut, 503, "overloaded");
    assert.equal(await stopped, 0);
    vendor.always({});
  });
});

/** Checks the status, the flat body and the headers of a failure. */
async function expectFailure(
  response: Response,
  status: number,
  code: string,
): Promise<{ message: string; [name: string]: unknown }> {
  const text = await response.text();
  assert.equal(response.status, status, text);
  assert.equal(response.headers.get("content-type"), "application/json; charset=utf-8");
  assert.equal(response.headers.get("cache-control"), "no-store");
  const failure = JSON.parse(text);
  assert.equal(failure.code, code, text);
  assert.equal(failure.request_id, response.headers.get("x-request-id"));
  assert.equal(typeof failure.message, "string");
  return failure;
}
