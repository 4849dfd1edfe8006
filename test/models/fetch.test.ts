import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { createFetch, type FetchOptions } from "../../src/models/fetch.ts";
import { until } from "../helpers/until.ts";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

interface Fixture {
  post(init?: RequestInit): Promise<Response>;
  sockets(): number;
  seen: IncomingMessage[];
}

async function serving(
  handler: Handler,
  use: (fixture: Fixture) => Promise<void>,
  options: Partial<FetchOptions> = {},
): Promise<void> {
  const seen: IncomingMessage[] = [];
  let sockets = 0;
  const server = createServer((request, response) => {
    seen.push(request);
    request.resume();
    handler(request, response);
  });
  server.on("connection", (socket) => {
    sockets++;
    socket.on("error", () => {});
    socket.on("close", () => sockets--);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const { fetch, close } = createFetch({ connectMs: 1_000, ...options });
  try {
    const post = (init: RequestInit = {}) =>
      fetch(`http://127.0.0.1:${port}/path?alt=sse`, { method: "POST", body: "{}", ...init });
    await use({ post, sockets: () => sockets, seen });
  } finally {
    await close();
    server.closeAllConnections();
    server.close();
  }
}

async function bytesOf(response: Response): Promise<Buffer> {
  const reader = response.body?.getReader();
  assert.ok(reader);
  const chunks: Uint8Array[] = [];
  for (let next = await reader.read(); !next.done; next = await reader.read()) chunks.push(next.value);
  return Buffer.concat(chunks);
}

test("a request and its response", async () => {
  let received = "";
  const handler: Handler = (request, response) => {
    request.on("data", (chunk) => {
      received += chunk;
    });
    request.on("end", () =>
      response.writeHead(418, "Teapot", { "x-a": ["1", "2"], "content-type": "application/json" }).end('{"a":"ä"}'),
    );
  };
  await serving(handler, async ({ post, seen }) => {
    const response = await post({
      headers: { "content-type": "application/json", authorization: "Bearer k" },
      body: '{"b":"ß"}',
    });
    assert.equal(received, '{"b":"ß"}');
    const { method, url, headers } = seen[0] ?? assert.fail();
    assert.deepEqual([method, url, headers.authorization], ["POST", "/path?alt=sse", "Bearer k"]);
    assert.equal(headers["accept-encoding"], undefined);
    assert.deepEqual([response.ok, response.status, response.statusText], [false, 418, "Teapot"]);
    assert.equal(response.headers.get("content-type"), "application/json");
    assert.equal(response.headers.get("nothing"), null);
    assert.equal(Object.fromEntries([...response.headers])["x-a"], "1,2");
    assert.equal((await bytesOf(response)).toString(), '{"a":"ä"}');
  });
});

test("a redirect is not followed", async () => {
  const handler: Handler = (_, response) => response.writeHead(302, { location: "/elsewhere" }).end();
  await serving(handler, async ({ post, seen }) => {
    const response = await post();
    assert.deepEqual([response.ok, response.status], [false, 302]);
    await bytesOf(response);
    assert.equal(seen.length, 1);
  });
});

test("connections are kept and bounded", async () => {
  let open = 0;
  let most = 0;
  const handler: Handler = (_, response) => {
    most = Math.max(most, ++open);
    setTimeout(() => {
      open--;
      response.end("x");
    }, 5);
  };
  await serving(
    handler,
    async ({ post, sockets }) => {
      await Promise.all(Array.from({ length: 12 }, async () => bytesOf(await post())));
      assert.equal(most, 3);
      assert.equal(sockets(), 3);
    },
    { connections: 3 },
  );
});

test("a whole body beyond the limit is refused and its connection closed", async () => {
  const handler: Handler = (_, response) => {
    response.on("error", () => {});
    response.writeHead(200, { "content-type": "application/json" });
    const more = () => {
      while (!response.destroyed && response.write("x".repeat(1_000)));
    };
    response.on("drain", more);
    more();
  };
  await serving(
    handler,
    async ({ post, sockets }) => {
      await assert.rejects(async () => bytesOf(await post()), { name: "BodyTooLargeError" });
      await until(() => sockets() === 0);
    },
    { maxBodyBytes: 50_000 },
  );
});

test("a streamed body has a limit of its own", async () => {
  const handler: Handler = (_, response) =>
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" }).end("x".repeat(5_000));
  await serving(handler, async ({ post }) => assert.equal((await bytesOf(await post())).length, 5_000), {
    maxBodyBytes: 10,
  });
  const limits = { maxBodyBytes: 10_000, maxStreamBytes: 4_000 };
  await serving(
    handler,
    ({ post }) => assert.rejects(async () => bytesOf(await post()), { name: "BodyTooLargeError" }),
    limits,
  );
});

test("nobody reads: the sender is held back, and nothing is lost", async () => {
  const size = 8 * 1024 * 1024;
  let sent = 0;
  const handler: Handler = (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const more = () => {
      while (sent < size) {
        sent += 16_384;
        if (!response.write(Buffer.alloc(16_384, 120))) return;
      }
      response.end();
    };
    response.on("drain", more);
    more();
  };
  await serving(handler, async ({ post }) => {
    const response = await post();
    // Time for the buffers to fill.
    await sleep(100);
    assert.ok(sent < size, "the socket's own buffers are all that fills");
    assert.equal((await bytesOf(response)).length, size);
  });
});

test("an abort closes the connection: before the headers, and in the body", async () => {
  const handler: Handler = (request, response) => {
    if (request.headers["x-headers"])
      response.writeHead(200, { "content-type": "text/event-stream" }).write("data: x\n\n");
  };
  await serving(handler, async ({ post, sockets, seen }) => {
    const gone = new Error("gone");
    const early = new AbortController();
    const pending = post({ signal: early.signal });
    await until(() => seen.length === 1);
    early.abort(gone);
    await assert.rejects(pending, gone);
    await until(() => sockets() === 0);

    const late = new AbortController();
    const response = await post({ signal: late.signal, headers: { "x-headers": "1" } });
    const reader = response.body?.getReader();
    assert.equal((await reader?.read())?.done, false);
    const next = reader?.read();
    late.abort(gone);
    await assert.rejects(async () => next, gone);
    await assert.rejects(async () => reader?.read(), gone);
    await until(() => sockets() === 0);
  });
});

test("an abort before the start, and one while waiting for a connection, send nothing", async () => {
  const waiting: ServerResponse[] = [];
  await serving(
    (_, response) => void waiting.push(response),
    async ({ post, seen }) => {
      const gone = new Error("gone");
      await assert.rejects(post({ signal: AbortSignal.abort(gone) }), gone);
      const first = post();
      await until(() => waiting.length === 1);
      const controller = new AbortController();
      const second = post({ signal: controller.signal });
      controller.abort(gone);
      await assert.rejects(second, gone);
      waiting[0]?.end("x");
      await bytesOf(await first);
      // Time for a second request that must not come.
      await sleep(20);
      assert.equal(seen.length, 1);
    },
    { connections: 1 },
  );
});

test("a reason that is no Error is thrown as it is", async () => {
  await serving(
    () => {},
    async ({ post, seen }) => {
      const controller = new AbortController();
      const pending = post({ signal: controller.signal });
      await until(() => seen.length === 1);
      controller.abort("why");
      assert.equal(await pending.catch((reason) => reason), "why");
    },
  );
});

test("cancelling a body that is not at its end ends the request; at its end it does nothing", async () => {
  const ended: string[] = [];
  const handler: Handler = (request, response) => {
    response.on("close", () => ended.push(response.writableFinished ? "answered" : "aborted"));
    response.write("x");
    if (!request.headers["x-hang"]) response.end();
  };
  await serving(handler, async ({ post, sockets }) => {
    const whole = await post();
    await bytesOf(whole);
    await whole.body?.cancel();
    const hanging = await post({ headers: { "x-hang": "1" } });
    await hanging.body?.cancel();
    await until(() => ended.length === 2);
    assert.deepEqual(ended, ["answered", "aborted"]);
    await bytesOf(await post());
    assert.ok(sockets() > 0);
  });
});

test("a connection that breaks is an error of the body", async () => {
  const handler: Handler = (_, response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("x");
    setTimeout(() => response.destroy(), 5);
  };
  await serving(handler, ({ post }) => assert.rejects(async () => bytesOf(await post())));
});

test("no connection, and none in time, are errors", async () => {
  // Accepts, but never answers the TLS handshake.
  const server = createTcpServer((socket) => socket.on("error", () => {}).resume());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const { fetch, close } = createFetch({ connectMs: 100 });
  await assert.rejects(fetch(`https://127.0.0.1:${port}/`, { body: "" }), { code: "UND_ERR_CONNECT_TIMEOUT" });
  await new Promise((resolve) => server.close(resolve));
  await assert.rejects(fetch(`http://127.0.0.1:${port}/`, { body: "" }), { code: "ECONNREFUSED" });
  await close();
});

test("closing ends what is under way", async () => {
  const { fetch, close } = createFetch({ connectMs: 1_000 });
  let asked = 0;
  const server = createServer(() => void asked++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const pending = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { body: "" });
  pending.catch(() => {});
  await until(() => asked === 1);
  await close();
  await assert.rejects(pending);
  await assert.rejects(fetch("http://127.0.0.1:1/", { body: "" }));
  server.close();
});
