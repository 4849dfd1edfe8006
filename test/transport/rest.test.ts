import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { type Caller, createKeys } from "../../src/admission/keys.ts";
import { type Call, CallerGone } from "../../src/service/call.ts";
import type { Services } from "../../src/service/services.ts";
import { createRestServer } from "../../src/transport/rest.ts";
import { testDatabase } from "../helpers/database.ts";
import { head, openRaw } from "../helpers/raw.ts";
import { startService, type TestService } from "../helpers/service.ts";
import { startVendor } from "../helpers/vendors.ts";

const JSON_TYPE = { "Content-Type": "application/json" };

test("the public facade", async (t) => {
  const vendor = await startVendor("openai");
  t.after(() => vendor.close());
  const { url: databaseUrl, pool } = await testDatabase(t);
  const service = await startService(t, { databaseUrl, env: vendor.env });
  const keys = createKeys(pool);
  const key = { "X-API-Key": service.apiKey };
  const secretOf = async (scopes: string[], expiresAt?: Date) =>
    keys.create({ workspace: "default", scopes, ...(expiresAt ? { expiresAt } : {}) });

  await t.test("400: the body is no JSON object, or not UTF-8", async () => {
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
    for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf5, 0x80, 0x80, 0x80]]) {
      const body = Buffer.concat([Buffer.from('{"prompt":"a'), Buffer.from(bytes), Buffer.from('"}')]);
      const failure = await expectFailure(await send(service, "POST", "/v1/generate", body), 400, "invalid_json");
      assert.match(failure.message, /UTF-8/);
    }
    const utf16 = Buffer.from('\ufeff{"prompt":"a"}', "utf16le");
    await expectFailure(await send(service, "POST", "/v1/generate", utf16), 400, "invalid_json");
  });

  await t.test("a byte order mark before the body is skipped", async () => {
    assert.equal((await service.post("/v1/generate", '\ufeff{"prompt":"a"}')).status, 200);
  });

  await t.test("401: one wording for every kind of bad key", async () => {
    const revoked = await secretOf(["generate"]);
    await keys.revoke(revoked.id);
    const expired = await secretOf(["generate"], new Date(Date.now() + 60_000));
    await pool.query("update api_keys set expires_at = now() - interval '1 second' where id = $1", [expired.id]);
    const bad: Record<string, string>[] = [
      {},
      { "X-API-Key": "" },
      { "X-API-Key": "ck_unknown" },
      { "X-API-Key": `${service.apiKey}x` },
      { "X-API-Key": "x".repeat(10_000) },
      { "X-API-Key": revoked.secret },
      { "X-API-Key": expired.secret },
      { Authorization: `Bearer ${service.apiKey}` },
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
        seen.add(JSON.stringify(failure));
      }
    }
    assert.equal(seen.size, 1);
    // Two keys are no key, even if each of them is good.
    const twice = await openRaw(t, service.url);
    twice.send(
      `GET /v1/quotas HTTP/1.1\r\nHost: a\r\nX-API-Key: ${service.apiKey}\r\nX-API-Key: ${service.apiKey}\r\n\r\n`,
    );
    assert.equal((await twice.read()).status, 401);
  });

  await t.test("403 names the scope that the key lacks", async () => {
    const metricsOnly = await secretOf(["metrics"]);
    const generateOnly = await secretOf(["generate"]);
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
    // A key without named scopes has them all.
    const all = await secretOf([]);
    assert.equal((await service.get("/v1/quotas", { "x-api-key": all.secret })).status, 200);
    assert.equal((await service.post("/v1/generate", { prompt: "a" }, { "x-api-key": all.secret })).status, 200);
  });

  await t.test("404 and 405 come before the key is looked at", async () => {
    for (const path of [
      "/",
      "/v1",
      "/v1/",
      "/v1/generate/",
      "/v1//generate",
      "/v1/models",
      "/V1/generate",
      "/v1/generate:other",
      "/metrics",
    ]) {
      await expectFailure(await fetch(service.url + path, { method: "POST" }), 404, "not_found");
    }
    for (const [method, path, allow] of [
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
      else await expectFailure(response, 405, "method_not_allowed");
    }
  });

  await t.test("415: anything but plain application/json in UTF-8", async () => {
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
      await expectFailure(await post(headers), 415, "unsupported_media_type");
    }
    for (const headers of [
      { "Content-Type": "Application/JSON" },
      { "Content-Type": "application/json;charset=UTF-8" },
      { "Content-Type": 'application/json ; charset="utf-8"' },
      { ...JSON_TYPE, "Content-Encoding": "Identity" },
    ]) {
      assert.equal((await post(headers)).status, 200, JSON.stringify(headers));
    }
  });

  await t.test("502 upstream_failed when every model failed, with nothing of what the vendor said", async () => {
    vendor.always({ status: 400, error: { message: "marker-of-the-vendor" } });
    for (const path of ["/v1/generate", "/v1/generate:stream"]) {
      const failure = await expectFailure(await service.post(path, { prompt: "a" }), 502, "upstream_failed");
      assert.deepEqual(Object.keys(failure), ["code", "message", "request_id"]);
      assert.doesNotMatch(JSON.stringify(failure), /marker/);
    }
    vendor.always({});
  });

  await t.test("500 says nothing of its cause, and the service goes on", async () => {
    await pool.query("alter table generations rename column shape to away");
    const failure = await expectFailure(await service.post("/v1/generate", { prompt: "a" }), 500, "internal");
    assert.doesNotMatch(failure.message, /shape|column|relation/);
    await pool.query("alter table generations rename column away to shape");
    assert.equal((await service.post("/v1/generate", { prompt: "a" })).status, 200);
  });

  await t.test("checks run in the order: path and method, key, size, type, body, fields", async () => {
    const huge = { "Content-Length": "67108865" };
    const bad = { "X-API-Key": "bad" };
    const text = { "Content-Type": "text/plain" };
    const rows: [target: string, headers: Record<string, string>, status: number][] = [
      ["/v1/nothing", { ...bad, ...huge }, 404],
      ["/v1/quotas", { ...bad, ...huge }, 405],
      ["/v1/generate", { ...bad, ...huge, ...text }, 401],
      ["/v1/generate", { ...key, ...huge, ...text }, 413],
      ["/v1/generate", { ...key, ...text, "Content-Length": "1000000" }, 415],
    ];
    for (const [target, headers, status] of rows) {
      const raw = await openRaw(t, service.url);
      raw.send(head("POST", target, headers));
      const response = await raw.read();
      assert.equal(response.status, status, response.body);
      assert.equal(response.headers.connection, "close");
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

  await t.test("Expect: 100-continue is answered only when the body is wanted", async () => {
    const expect = { ...key, ...JSON_TYPE, Expect: "100-continue" };
    const good = await openRaw(t, service.url);
    good.send(head("POST", "/v1/generate", { ...expect, "Content-Length": 14 }));
    assert.equal((await good.read()).status, 100);
    good.send('{"prompt":"a"}');
    assert.equal((await good.read()).status, 200);

    for (const [headers, status] of [
      [{ ...expect, "X-API-Key": "bad", "Content-Length": 14 }, 401],
      [{ ...expect, "Content-Length": 67_108_865 }, 413],
      [{ ...expect, "Content-Type": "text/plain", "Content-Length": 14 }, 415],
    ] as const) {
      const raw = await openRaw(t, service.url);
      raw.send(head("POST", "/v1/generate", headers));
      assert.equal((await raw.read()).status, status);
    }
    // An expectation that means nothing to the service is no reason to refuse.
    const odd = await openRaw(t, service.url);
    odd.send(head("GET", "/healthz", { Expect: "the unexpected" }));
    assert.equal((await odd.read()).status, 200);
  });

  await t.test("every response carries its own X-Request-Id", async () => {
    const seen = new Set<string>();
    for (const [method, path, body] of [
      ["GET", "/healthz"],
      ["GET", "/readyz"],
      ["GET", "/v1/quotas"],
      ["GET", "/v1/metrics"],
      ["GET", "/nowhere"],
      ["POST", "/v1/generate", '{"prompt":"a"}'],
      ["POST", "/v1/generate:stream", '{"prompt":"a"}'],
      ["POST", "/v1/generate", "{}"],
    ] as const) {
      const response = await send(service, method, path, body);
      const id = response.headers.get("x-request-id") ?? "";
      assert.match(id, /^req_[0-9a-f]{32}$/);
      const text = await response.text();
      if (path.startsWith("/v1/generate") || path === "/nowhere")
        assert.match(text, new RegExp(`"request_id":"${id}"`));
      seen.add(id);
    }
    assert.equal(seen.size, 8);
  });

  await t.test("health needs no key, and HEAD is GET without the body", async () => {
    for (const path of ["/healthz", "/readyz"]) {
      const got = await fetch(service.url + path);
      assert.equal(await got.text(), '{"status":"ok"}');
      const asked = await fetch(service.url + path, { method: "HEAD" });
      assert.equal(asked.status, 200);
      assert.equal(asked.headers.get("content-length"), "15");
      assert.equal(await asked.text(), "");
    }
    assert.equal((await fetch(`${service.url}/v1/quotas`, { method: "HEAD", headers: key })).status, 200);
  });

  await t.test("odd request targets find their method", async () => {
    const body = '{"prompt":"a"}';
    const headers = { ...key, ...JSON_TYPE, "Content-Length": body.length };
    for (const target of [
      "/v1/generate?",
      "/v1/generate?model=x?y",
      "/v1/generate%3Astream",
      "/v1/generate%3astream",
      "http://elsewhere.example/v1/generate",
      "http://elsewhere.example:81/v1/generate:stream?a=b",
    ]) {
      const raw = await openRaw(t, service.url);
      raw.send(head("POST", target, headers) + body);
      assert.equal((await raw.read()).status, 200, target);
      raw.socket.destroy();
    }
    for (const target of [
      "*",
      "//",
      "http://",
      "http://[",
      "/%",
      "/%00",
      "/v1/generate#x",
      "/../v1/generate",
      "v1/generate",
    ]) {
      const raw = await openRaw(t, service.url);
      raw.send(head("OPTIONS", target));
      assert.ok([400, 404].includes((await raw.read()).status), target);
      raw.socket.destroy();
    }
  });

  await t.test("what is no HTTP is refused with the flat body as well", async () => {
    for (const [text, status] of [
      ["nonsense\r\n\r\n", 400],
      [`GET /healthz HTTP/1.1\r\nHost: a\r\n${"X-Many: 1\r\n".repeat(5_000)}\r\n`, 431],
      [`GET /healthz HTTP/1.1\r\nHost: a\r\nX-Long: ${"x".repeat(100_000)}\r\n\r\n`, 431],
      [`POST /v1/generate HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n`, 400],
      [`POST /v1/generate HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n`, 400],
    ] as const) {
      const raw = await openRaw(t, service.url);
      raw.send(text);
      const response = await raw.read();
      assert.equal(response.status, status, text.slice(0, 60));
      const { message, request_id, ...rest } = JSON.parse(response.body);
      assert.equal(typeof message, "string");
      assert.equal(request_id, response.headers["x-request-id"]);
      assert.deepEqual(rest, {});
      await raw.closed;
    }
  });

  await t.test("a broken body after the head ends the exchange with 400", async () => {
    const raw = await openRaw(t, service.url);
    raw.send(`${head("POST", "/v1/generate", { ...key, ...JSON_TYPE, "Transfer-Encoding": "chunked" })}zz\r\n`);
    assert.equal((await raw.read()).status, 400);
    await raw.closed;
  });

  await t.test("a connection lives through answers and refusals, without leaving listeners behind", async () => {
    const raw = await openRaw(t, service.url);
    for (let i = 0; i < 30; i++) {
      const body = i % 3 === 0 ? "{}" : '{"prompt":"a"}';
      raw.send(
        head("POST", i % 2 ? "/v1/generate" : "/v1/generate:stream", {
          ...key,
          ...JSON_TYPE,
          "Content-Length": body.length,
        }) + body,
      );
      const response = await raw.read();
      assert.equal(response.status, i % 3 === 0 ? 422 : 200);
      assert.equal(response.headers.connection, "keep-alive");
    }
    for (const refused of [
      head("GET", "/nowhere"),
      head("GET", "/v1/quotas"),
      head("POST", "/v1/generate", { ...key, ...JSON_TYPE, "Content-Length": 0 }),
    ]) {
      raw.send(refused);
      assert.equal((await raw.read()).headers.connection, "keep-alive");
    }
    assert.doesNotMatch(service.output(), /MaxListeners|leak/i);
  });

  await t.test("pipelined requests are answered in their order", async () => {
    const raw = await openRaw(t, service.url);
    raw.send(head("GET", "/v1/quotas", key) + head("GET", "/healthz") + head("GET", "/nowhere"));
    assert.deepEqual(
      [(await raw.read()).status, (await raw.read()).status, (await raw.read()).status],
      [200, 200, 404],
    );
  });

  await t.test("504 when there is no text before the deadline, 503 while draining", async (t) => {
    const other = await startService(t, {
      env: { ...vendor.env, CHORUS_DEADLINES_MS: '{"low":150,"medium":60000,"high":60000}', CHORUS_DRAIN_MS: "300" },
    });
    vendor.always({ end: "silent" });
    for (const path of ["/v1/generate", "/v1/generate:stream"]) {
      const failure = await expectFailure(await other.post(path, { prompt: "a" }), 504, "timed_out");
      assert.deepEqual(Object.keys(failure), ["code", "message", "request_id"]);
    }
    // A connection on which a request has begun outlives the end of the listener.
    const raw = await openRaw(t, other.url);
    raw.send("POST /v1/generate HTTP/1.1\r\n");
    const ready = await openRaw(t, other.url);
    ready.send("GET /readyz HTTP/1.1\r\n");
    const before = vendor.calls.length;
    const running = other.post("/v1/generate", { prompt: "a", effort: "high" });
    await until(() => vendor.calls.length > before);
    const stopped = other.stop("SIGTERM");
    await until(async () => !(await fetch(`${other.url}/healthz`).catch(() => undefined)));
    raw.send(
      `Host: a\r\nX-API-Key: ${other.apiKey}\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{"prompt":"a"}`,
    );
    ready.send("Host: a\r\n\r\n");
    const refused = await raw.read();
    assert.equal(refused.status, 503);
    assert.equal(refused.headers["retry-after"], "1");
    const { request_id: _, message: __, ...rest } = JSON.parse(refused.body);
    assert.deepEqual(rest, { code: "overloaded", retry_after_ms: 1000 });
    assert.equal((await ready.read()).status, 503);
    // What had no text when the time was up is refused, so that the caller tries elsewhere.
    await expectFailure(await running, 503, "overloaded");
    assert.equal(await stopped, 0);
    vendor.always({});
  });
});

test("a caller who leaves while its key is looked up leaves no room taken", async (t) => {
  const lookUp = Promise.withResolvers<Caller>();
  let asked = 0;
  const server = await listen(t, {
    authorize: () => {
      asked++;
      return lookUp.promise;
    },
  });
  const post = head("POST", "/v1/generate", { ...JSON_TYPE, Expect: "100-continue", "Content-Length": 60_000_000 });
  for (let i = 0; i < 5; i++) {
    const left = await openRaw(t, server.url);
    left.send(post);
    await until(() => asked > i);
    left.socket.destroy();
  }
  await until(async () => (await server.connections()) === 0);
  lookUp.resolve(CALLER);
  const stays = await openRaw(t, server.url);
  stays.send(post);
  assert.equal((await stays.read()).status, 100);
});

test("every request of a connection learns when it closes, also one that waits for its turn", async (t) => {
  const calls: Call[] = [];
  const server = await listen(t, {
    generation: {
      async generateWhole(_, call) {
        calls.push(call);
        await once(call.signal, "abort");
        throw new CallerGone();
      },
    },
  });
  const raw = await openRaw(t, server.url);
  const one = `${head("POST", "/v1/generate", { ...JSON_TYPE, "Content-Length": 14 })}{"prompt":"a"}`;
  raw.send(one + one);
  await until(() => calls.length === 2);
  assert.ok(calls.every(({ signal }) => !signal.aborted));
  raw.socket.destroy();
  await until(() => calls.every(({ signal }) => signal.aborted));
});

test("a connection ends with its answer while the service drains", async (t) => {
  const server = await listen(t, { ready: () => false });
  const raw = await openRaw(t, server.url);
  raw.send(head("GET", "/healthz"));
  assert.equal((await raw.read()).status, 200);
  await raw.closed;
});

test("an unknown error after the head of a stream is an error event that says nothing of its cause", async (t) => {
  const server = await listen(t, {
    generation: {
      // biome-ignore lint/correctness/useYield: it fails before its first event
      async *generate() {
        await sleep(30);
        throw new Error("marker");
      },
    },
  });
  const raw = await openRaw(t, server.url);
  raw.send(`${head("POST", "/v1/generate:stream", { ...JSON_TYPE, "Content-Length": 14 })}{"prompt":"a"}`);
  const { status, body } = await raw.read();
  assert.equal(status, 200);
  assert.match(body, /^event: error\ndata: \{"code":"internal",/);
  assert.doesNotMatch(body + server.log(), /marker/);
  assert.match(server.log(), /"failure":"internal"/);
});

const CALLER: Caller = { workspaceId: "ws_1", workspace: "default", keyId: "key_1", scopes: ["generate", "metrics"] };

/** The facade over services of which only `given` exist. */
async function listen(
  t: TestContext,
  given: Partial<Omit<Services, "generation">> & { generation?: Partial<Services["generation"]> },
) {
  let lines = "";
  const write = (line: string) => {
    lines += line;
  };
  const log = pino({ level: "trace" }, { write });
  const services = { authorize: async () => CALLER, ready: () => true, ...given } as Services;
  const stream = { headersMs: 5, keepAliveMs: 1_000, stallMs: 1_000 };
  const server = createRestServer(services, { bodyBudgetBytes: 64 * 1024 * 1024, stream }, log);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    log: () => lines,
    connections: () =>
      new Promise<number>((resolve, reject) => {
        server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
      }),
  };
}

/** Checks status, flat body and headers of a failure. */
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

function send(service: TestService, method: string, path: string, body?: string | Buffer): Promise<Response> {
  return fetch(service.url + path, {
    method,
    headers: { "X-API-Key": service.apiKey, ...JSON_TYPE },
    ...(body === undefined ? {} : { body: body as Buffer<ArrayBuffer> }),
  });
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(5);
}
