import assert from "node:assert/strict";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe } from "vitest";
import type { Caller } from "../../../src/admission/authenticate.ts";
import { onAbort } from "../../../src/concurrency/abort.ts";
import { CallerGone } from "../../../src/contract/endings.ts";
import { Failure } from "../../../src/contract/failure.ts";
import { test as base } from "../../helpers/fixtures.ts";
import { head, openRaw } from "../../helpers/raw.ts";
import { listenRest } from "../../helpers/rest.ts";
import type { TestService } from "../../helpers/service.ts";
import { CALLER } from "../../helpers/services.ts";
import { until } from "../../helpers/until.ts";

const JSON_TYPE = { "Content-Type": "application/json" };

const test = base.extend("shared", { scope: "file" }, async ({ serviceOfFile: service }) => {
  const key = { "X-API-Key": service.apiKey };
  return { key };
});

describe("HTTP exchanges", () => {
  test("skips a byte order mark before the body", async ({ service }) => {
    assert.equal((await service.post("/v1/generate", '\ufeff{"prompt":"a"}')).status, 200);
  });

  test("closes connections that their callers close at once", async ({ service }) => {
    const { hostname, port } = new URL(service.url);
    // Without the service's half of the close, a connection would end with a 408 after the timeout of its headers.
    const answers = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const socket = connect(Number(port), hostname).end();
        let text = "";
        for await (const chunk of socket) text += chunk;
        return text;
      }),
    );
    assert.deepEqual(new Set(answers), new Set([""]));
  });

  test("answers Expect: 100-continue only for an acceptable request", async ({ service, shared: { key }, t }) => {
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
    // Unknown expectations are ignored.
    const odd = await openRaw(t, service.url);
    odd.send(head("GET", "/healthz", { Expect: "the unexpected" }));
    assert.equal((await odd.read()).status, 200);
  });

  test("sends a unique X-Request-Id with every response", async ({ service }) => {
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

  test("serves health without a key, and HEAD like GET without the body", async ({ service, shared: { key } }) => {
    for (const path of ["/healthz", "/readyz"]) {
      const got = await fetch(service.url + path);
      assert.equal(await got.text(), '{"status":"ok"}');
      const headOnly = await fetch(service.url + path, { method: "HEAD" });
      assert.equal(headOnly.status, 200);
      assert.equal(headOnly.headers.get("content-length"), "15");
      assert.equal(await headOnly.text(), "");
    }
    assert.equal((await fetch(`${service.url}/v1/quotas`, { method: "HEAD", headers: key })).status, 200);
  });

  test("routes unusual request targets", async ({ service, shared: { key }, t }) => {
    const body = '{"prompt":"a"}';
    const headers = { ...key, ...JSON_TYPE, "Content-Length": body.length };
    for (const target of [
      "/v1/generate?",
      "/v1/generate?model=x?y",
      "/v1/generate%3Astream",
      "/v1/generate%3astream",
      "/v1/%67enerate",
      "/%76%31/gener%61te%3Astre%61m?a=%3A",
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
      "/v1%2Fgenerate",
      "/v1/%2567enerate",
      "/v1/%6generate",
      "/v1/generat%",
      "/v1/generate%00",
      "/../v1/generate",
      "v1/generate",
    ]) {
      const raw = await openRaw(t, service.url);
      raw.send(head("OPTIONS", target));
      assert.ok([400, 404].includes((await raw.read()).status), target);
      raw.socket.destroy();
    }
  });

  test("refuses invalid HTTP with the flat error body", async ({ service, t }) => {
    for (const [text, status] of [
      ["nonsense\r\n\r\n", 400],
      ["GET /healthz HTTP/1.1\r\n\r\n", 400],
      ["GET /healthz HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", 400],
      ["GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\ncontent-type: a/b\r\n\r\n", 400],
      ["POST /v1/generate HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400],
      ["POST /v1/generate HTTP/1.1\r\nContent-Length: 9\r\n\r\n", 400],
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
      assert.deepEqual(rest, { code: "malformed_request" });
      assert.equal(response.headers.connection, "close");
      await raw.closed;
    }
    const old = await openRaw(t, service.url);
    old.send("GET /healthz HTTP/1.0\r\n\r\n");
    assert.equal((await old.read()).status, 200);
  });

  test("closes a connection after a refusal although the caller keeps its side open", async ({
    service,
    shared: { key },
    t,
  }) => {
    const post = { ...key, ...JSON_TYPE, "Content-Length": 9_000_000 };
    for (const [text, status] of [
      ["nonsense\r\n\r\n", 400],
      [head("POST", "/v1/generate", { ...post, "X-API-Key": "bad" }), 401],
      [head("POST", "/v1/generate", { ...post, "Content-Type": "a/b" }), 415],
      [head("POST", "/nowhere", post), 404],
      [head("GET", "/v1/quotas", post), 200],
    ] as const) {
      const raw = await openRaw(t, service.url, { allowHalfOpen: true });
      raw.send(text);
      const response = await raw.read();
      assert.equal(response.status, status);
      assert.equal(response.headers.connection, "close");
      // Writing fails as soon as the server has closed the connection.
      await until(() => raw.socket.destroyed || void raw.socket.write("x"));
    }
  });

  test("answers 400 to an invalid chunked body", async ({ service, shared: { key }, t }) => {
    const raw = await openRaw(t, service.url);
    raw.send(`${head("POST", "/v1/generate", { ...key, ...JSON_TYPE, "Transfer-Encoding": "chunked" })}zz\r\n`);
    assert.equal((await raw.read()).status, 400);
    await raw.closed;
  });

  test("keeps a connection alive through answers and errors without leaking listeners", async ({
    service,
    shared: { key },
    t,
  }) => {
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
      `${head("POST", "/v1/generate", { ...JSON_TYPE, "Content-Length": 14 })}{"prompt":"a"}`,
      `${head("POST", "/v1/generate", { ...key, "Content-Type": "a/b", "Content-Length": 14 })}{"prompt":"a"}`,
    ]) {
      raw.send(refused);
      assert.equal((await raw.read()).headers.connection, "keep-alive");
    }
    assert.doesNotMatch(service.output(), /MaxListeners|leak/i);
  });

  test("answers pipelined requests in order", async ({ service, shared: { key }, t }) => {
    const raw = await openRaw(t, service.url);
    raw.send(head("GET", "/v1/quotas", key) + head("GET", "/healthz") + head("GET", "/nowhere"));
    assert.deepEqual(
      [(await raw.read()).status, (await raw.read()).status, (await raw.read()).status],
      [200, 200, 404],
    );
  });
});

test("releases the body budget when the caller leaves during the key lookup", async ({ t }) => {
  const lookUp = Promise.withResolvers<Caller>();
  let lookups = 0;
  const server = await listenRest(t, {
    authorize: () => {
      lookups++;
      return lookUp.promise;
    },
  });
  const post = head("POST", "/v1/generate", { ...JSON_TYPE, Expect: "100-continue", "Content-Length": 60_000_000 });
  for (let i = 0; i < 5; i++) {
    const left = await openRaw(t, server.url);
    left.send(post);
    await until(() => lookups > i);
    left.socket.destroy();
  }
  await until(async () => (await server.connections()) === 0);
  lookUp.resolve(CALLER);
  const stays = await openRaw(t, server.url);
  stays.send(post);
  assert.equal((await stays.read()).status, 100);
});

test("answers 408 to a request that does not arrive in time, and closes its connection", async ({ t }) => {
  const server = await listenRest(t, {}, { headersTimeout: 50, requestTimeout: 200 });
  for (const text of ["", "GET /healthz HTTP/1.1\r\nHost: a\r\n", head("POST", "/nowhere", { "Content-Length": 9 })]) {
    const raw = await openRaw(t, server.url, { allowHalfOpen: true });
    raw.send(text);
    const response = await raw.read();
    assert.equal(response.status, text.startsWith("POST") ? 404 : 408);
    if (response.status === 408) assert.equal(JSON.parse(response.body).code, "malformed_request");
  }
  await until(async () => (await server.connections()) === 0);
});

test("closes the connection that has been idle for longest when there are too many", async ({ t }) => {
  const server = await listenRest(t, {}, { maxConnections: 3 });
  const [first, second, third] = [
    await openRaw(t, server.url),
    await openRaw(t, server.url),
    await openRaw(t, server.url),
  ];
  // The second has been idle for longest after this.
  for (const raw of [third, first]) {
    raw.send(head("GET", "/healthz"));
    assert.equal((await raw.read()).status, 200);
  }
  const fourth = await openRaw(t, server.url);
  await second.closed;
  for (const raw of [first, third, fourth]) {
    raw.send(head("GET", "/healthz"));
    assert.equal((await raw.read()).status, 200);
  }
});

test("refuses requests on a new connection while all others are busy", async ({ t }) => {
  let running = 0;
  const release = Promise.withResolvers<void>();
  const server = await listenRest(
    t,
    {
      generation: {
        async generateWhole() {
          running++;
          await release.promise;
          throw new Failure("timed_out");
        },
      },
    },
    { maxConnections: 2 },
  );
  const one = `${head("POST", "/v1/generate", { ...JSON_TYPE, "Content-Length": 14 })}{"prompt":"a"}`;
  const busy = [await openRaw(t, server.url), await openRaw(t, server.url)];
  for (const raw of busy) raw.send(one);
  await until(() => running === 2);
  const third = await openRaw(t, server.url);
  third.send(head("GET", "/healthz"));
  const refused = await third.read();
  assert.deepEqual([refused.status, refused.headers["retry-after"]], [503, "1"]);
  assert.equal(JSON.parse(refused.body).code, "overloaded");
  await third.closed;
  release.resolve();
  for (const raw of busy) assert.equal((await raw.read()).status, 504);
  const fourth = await openRaw(t, server.url);
  fourth.send(head("GET", "/healthz"));
  assert.equal((await fourth.read()).status, 200);
});

test("keeps connections for others while one workspace has most of them", async ({ t }) => {
  let running = 0;
  const server = await listenRest(
    t,
    {
      authorize: async (secret) => ({ ...CALLER, workspaceId: `${secret}` }),
      generation: {
        async generateWhole(_, { signal }) {
          running++;
          await new Promise<void>((resolve) => onAbort(signal, resolve));
          throw new CallerGone();
        },
      },
    },
    { maxConnections: 8 },
  );
  const post = async (workspace: string) => {
    const raw = await openRaw(t, server.url);
    raw.send(`${head("POST", "/v1/generate", { "X-API-Key": workspace, ...JSON_TYPE, "Content-Length": 2 })}{}`);
    return raw;
  };
  for (let i = 0; i < 6; i++) await post("a");
  await until(() => running === 6);
  assert.equal((await (await post("a")).read()).status, 503);
  await post("b");
  await until(() => running === 7);
});

test("ends a connection whose reader takes nothing of a response, whatever it is", async ({ t }) => {
  const server = await listenRest(t, {
    quotas: async () => ({ workspace: "x".repeat(30_000_000) }) as never,
  });
  const raw = await openRaw(t, server.url);
  raw.socket.pause();
  raw.send(head("GET", "/v1/quotas"));
  // The first call is before the connection is accepted, or while it is open.
  await until(async () => (await server.connections()) === 1);
  await until(async () => (await server.connections()) === 0);
});

test("closes a connection after its answer while the service drains", async ({ t }) => {
  const server = await listenRest(t, { draining: () => true });
  const raw = await openRaw(t, server.url);
  raw.send(head("GET", "/healthz"));
  assert.equal((await raw.read()).status, 200);
  await raw.closed;
});

test("keeps a connection whose request it refuses while the database is away", async ({ t }) => {
  const server = await listenRest(t, { ready: () => false });
  const raw = await openRaw(t, server.url);
  for (let i = 0; i < 2; i++) {
    raw.send(head("GET", "/readyz"));
    assert.equal((await raw.read()).status, 503);
  }
});

test("sends an error event without the cause for an unexpected error in a stream", async ({ t }) => {
  const server = await listenRest(t, {
    generation: {
      // biome-ignore lint/correctness/useYield: the stream fails before its first event
      async *generate(_, { facts }) {
        facts.admittedAt = performance.now();
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

function send(service: TestService, method: string, path: string, body?: string): Promise<Response> {
  const headers = { "X-API-Key": service.apiKey, ...JSON_TYPE };
  return fetch(service.url + path, { method, headers, ...(body === undefined ? {} : { body }) });
}
