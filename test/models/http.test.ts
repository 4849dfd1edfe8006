import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { describe, test, vi } from "vitest";
import { createHttpClient, type HttpOptions, type HttpRequest } from "../../src/models/http.ts";
import { ModelError } from "../../src/models/port/model-error.ts";
import type { HttpResponse } from "../../src/models/vendor-response.ts";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

interface Fixture {
  post(more?: Partial<HttpRequest>): Promise<HttpResponse>;
  /** Open connections. */
  sockets(): number;
  /** Connections opened so far. */
  opened(): number;
  seen: IncomingMessage[];
}

async function serving(
  handler: Handler,
  use: (fixture: Fixture) => Promise<void>,
  options: Partial<HttpOptions> = {},
): Promise<void> {
  const seen: IncomingMessage[] = [];
  let sockets = 0;
  let opened = 0;
  const server = createServer((request, response) => {
    seen.push(request);
    request.resume();
    response.on("error", () => {});
    handler(request, response);
  });
  server.on("connection", (socket) => {
    sockets++;
    opened++;
    socket.on("error", () => {});
    socket.on("close", () => sockets--);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/path?alt=sse`);
  const http = createHttpClient({ connectMs: 1_000, ...options });
  try {
    await use({ post: (more) => http.post(requestTo(url, more)), sockets: () => sockets, opened: () => opened, seen });
  } finally {
    await http.close();
    server.closeAllConnections();
    server.close();
  }
}

function requestTo(url: URL | string, more: Partial<HttpRequest> = {}): HttpRequest {
  const { signal } = new AbortController();
  const { origin, pathname, search } = new URL(url);
  return { origin, path: pathname + search, headers: {}, body: "{}", signal, streamed: true, ...more };
}

async function textOf(response: HttpResponse): Promise<string> {
  let text = "";
  for (let chunk = await response.read(); chunk !== undefined; chunk = await response.read()) text += chunk;
  return text;
}

const until = (condition: () => boolean) => vi.waitFor(() => assert.ok(condition()), { interval: 1, timeout: 60_000 });

/** Writes as long as the connection takes it, up to `size` bytes, and counts what it wrote. */
function flood(size = Number.POSITIVE_INFINITY): { handler: Handler; sent(): number } {
  let sent = 0;
  const block = Buffer.alloc(16_384, "x");
  const handler: Handler = (_, response) => {
    response.writeHead(200);
    const more = () => {
      while (sent < size && !response.destroyed) {
        sent += block.length;
        if (!response.write(block)) return;
      }
      response.end();
    };
    response.on("drain", more);
    more();
  };
  return { handler, sent: () => sent };
}

describe("requests", () => {
  test("sends method, path, query, headers and body, and reads status, headers and body", async () => {
    let received = "";
    const handler: Handler = (request, response) => {
      request.on("data", (chunk) => {
        received += chunk;
      });
      request.on("end", () => response.writeHead(418, { "x-a": ["1", "2"], "retry-after": "3" }).end('{"a":"ä"}'));
    };
    await serving(handler, async ({ post, seen }) => {
      const headers = { "content-type": "application/json", authorization: "Bearer k" };
      const response = await post({ headers, body: '{"b":"ß"}' });
      const { method, url, headers: sent } = seen[0] ?? assert.fail();
      assert.deepEqual([method, url, sent.authorization], ["POST", "/path?alt=sse", "Bearer k"]);
      assert.deepEqual([response.status, response.headers["retry-after"]], [418, "3"]);
      assert.deepEqual(response.headers["x-a"], ["1", "2"]);
      assert.equal(await textOf(response), '{"a":"ä"}');
      assert.equal(received, '{"b":"ß"}');
    });
  });

  test("follows no redirect", async () => {
    const handler: Handler = (_, response) => response.writeHead(302, { location: "/elsewhere" }).end();
    await serving(handler, async ({ post, seen }) => {
      assert.equal((await post()).status, 302);
      assert.equal(seen.length, 1);
    });
  });

  test("waits for the final response after an informational one", async () => {
    const handler: Handler = (_, response) => {
      response.writeEarlyHints({ link: "</a>; rel=preload" });
      response.end("final");
    };
    await serving(handler, async ({ post }) => {
      const response = await post();
      assert.equal(response.status, 200);
      assert.equal(await textOf(response), "final");
    });
  });

  test("refuses an unknown compression and closes its connection", async () => {
    const handler: Handler = (_, response) => response.writeHead(200, { "content-encoding": "lzma" }).write("x");
    await serving(handler, async ({ post, sockets }) => {
      await assert.rejects(post(), { name: "ModelError", retryable: false, message: /compressed/ });
      await until(() => sockets() === 0);
    });
  });

  test("closes the connection of broken compression, and keeps that of a body which ends too early", async () => {
    const headers = { "content-encoding": "gzip" };
    const broken: Handler = (_, response) => response.writeHead(200, headers).write("no gzip at all");
    await serving(broken, async ({ post, sockets }) => {
      await assert.rejects(textOf(await post()), { name: "ModelError", retryable: true, message: /decompressed/ });
      await until(() => sockets() === 0);
    });
    const cut: Handler = (_, response) => response.writeHead(200, headers).end(gzipSync("text").subarray(0, -9));
    await serving(cut, async ({ post, opened }) => {
      for (let i = 0; i < 3; i++)
        await assert.rejects(textOf(await post()), { name: "ModelError", retryable: true, message: /decompressed/ });
      assert.equal(opened(), 1);
    });
  });

  test("pauses a compressed body when nobody reads, and loses nothing", async () => {
    const size = 8 * 1024 * 1024;
    const whole = gzipSync(Buffer.alloc(size, "x"));
    const handler: Handler = (_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(whole);
    await serving(handler, async ({ post, opened }) => {
      const response = await post();
      await sleep(50);
      assert.ok(((await response.read())?.length ?? 0) < 1024 * 1024, "little is held");
      assert.ok((await textOf(response)).length > size - 1024 * 1024);
      // The rest of a body that is not needed.
      const left = await post();
      await left.read();
      left.finish();
      assert.equal(await textOf(await post()).then(({ length }) => length), size);
      assert.equal(opened(), 1);
    });
  });

  test("decodes UTF-8 whose bytes arrive apart, and bytes that are no UTF-8", async () => {
    const handler: Handler = async (_, response) => {
      for (const byte of Buffer.from("Zoë 🎈漢")) {
        response.write(Buffer.from([byte]));
        await sleep(1);
      }
      response.end(Buffer.from([0xff, 0xe2, 0x82]));
    };
    await serving(handler, async ({ post }) => assert.equal(await textOf(await post()), "Zoë 🎈漢\ufffd\ufffd"));
  });
});

describe("connections", () => {
  test("opens a connection for each request at a time, and uses them again", async () => {
    let waiting: ServerResponse[] = [];
    await serving(
      (_, response) => void waiting.push(response),
      async ({ post, opened }) => {
        for (const count of [70, 70, 1]) {
          const responses = Array.from({ length: count }, () => post());
          await vi.waitUntil(() => waiting.length === count, { timeout: 60_000 });
          for (const response of waiting) response.end("ok");
          waiting = [];
          for (const response of await Promise.all(responses)) {
            assert.equal(await response.read(), "ok");
            assert.equal(await response.read(), undefined);
          }
          // undici uses a connection again in the next turn of the event loop.
          await sleep(1);
        }
        assert.equal(opened(), 70);
      },
    );
  });

  test("keeps connections and bounds their number", async () => {
    let running = 0;
    let most = 0;
    const handler: Handler = (_, response) => {
      most = Math.max(most, ++running);
      setTimeout(() => {
        running--;
        response.end("x");
      }, 5);
    };
    await serving(
      handler,
      async ({ post, opened }) => {
        await Promise.all(Array.from({ length: 12 }, async () => textOf(await post())));
        assert.equal(most, 3);
        assert.equal(opened(), 3);
      },
      { connections: 3 },
    );
  });

  test("fails when there is no connection, or none in time", async () => {
    // Accepts connections and never answers the TLS handshake.
    const server = createTcpServer((socket) => socket.on("error", () => {}).resume());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const http = createHttpClient({ connectMs: 100 });
    const failure = async (address: string) => {
      const error = await http.post(requestTo(address)).catch((error: unknown) => error);
      assert.ok(error instanceof ModelError && error.retryable && error.blamesModel);
      return (error.cause as { code?: string }).code;
    };
    assert.equal(await failure(`https://127.0.0.1:${port}/`), "UND_ERR_CONNECT_TIMEOUT");
    await new Promise((resolve) => server.close(resolve));
    assert.equal(await failure(`http://127.0.0.1:${port}/`), "ECONNREFUSED");
    await http.close();
  });

  test("fails when the connection breaks, after what had arrived", async () => {
    const handler: Handler = (_, response) => {
      response.writeHead(200, { "content-length": "100" });
      response.write("x");
      setTimeout(() => response.destroy(), 5);
    };
    await serving(handler, async ({ post }) => {
      const response = await post();
      await sleep(50);
      assert.equal(await response.read(), "x");
      await assert.rejects(async () => response.read(), { name: "ModelError", retryable: true });
      await assert.rejects(async () => response.read(), { name: "ModelError", retryable: true });
    });
  });

  test("fails what is under way when it closes, and all later requests", async () => {
    const http = createHttpClient({ connectMs: 1_000 });
    const server = createServer(() => {});
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const pending = http.post(requestTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`));
    pending.catch(() => {});
    await sleep(20);
    await http.close();
    await assert.rejects(pending, ModelError);
    await assert.rejects(async () => http.post(requestTo("http://127.0.0.1:1/")));
    server.close();
  });
});

describe("bounds", () => {
  test("cuts off an endless body at its bound and closes the connection", async () => {
    for (const [streamed, options] of [
      [false, { maxBodyBytes: 1_000_000, maxStreamBytes: 1 }],
      [true, { maxBodyBytes: 1, maxStreamBytes: 1_000_000 }],
    ] as const) {
      const { handler, sent } = flood(10 * 1024 ** 3);
      await serving(
        handler,
        async ({ post, sockets }) => {
          const response = await post({ streamed });
          let length = 0;
          await assert.rejects(
            async () => {
              for (;;) length += (await response.read())?.length ?? assert.fail("has ended");
            },
            { name: "ModelError", retryable: false, message: /larger than 1000000 bytes/ },
          );
          assert.ok(length <= 1_000_000);
          await until(() => sockets() === 0);
          // Beside the bound, only what the buffers of the sockets hold.
          assert.ok(sent() < 20_000_000, `${sent()}`);
        },
        options,
      );
    }
  });

  test("reads a body up to its bound", async () => {
    const handler: Handler = (_, response) => response.end("x".repeat(5_000));
    await serving(handler, async ({ post }) => assert.equal((await textOf(await post())).length, 5_000), {
      maxBodyBytes: 10,
      maxStreamBytes: 5_000,
    });
  });

  test("pauses the socket when nobody reads, and loses nothing", async () => {
    const size = 16 * 1024 * 1024;
    const { handler, sent } = flood(size);
    await serving(handler, async ({ post }) => {
      const response = await post();
      // Until the buffers of the sockets are full.
      let before = 0;
      for (; before === 0 || sent() > before; await sleep(100)) before = sent();
      assert.ok(before < size);
      assert.ok(((await response.read())?.length ?? 0) < 1024 * 1024, "little is held");
      assert.ok((await textOf(response)).length > size - 1024 * 1024);
      assert.ok(sent() >= size);
    });
  });
});

describe("aborts", () => {
  const gone = new Error("gone");
  const hanging: Handler = (request, response) => {
    if (request.headers["x-headers"]) response.writeHead(200).write("data: x\n\n");
  };

  test("closes the connection before the headers", () =>
    serving(hanging, async ({ post, sockets, seen }) => {
      const caller = new AbortController();
      const pending = post({ signal: caller.signal });
      await until(() => seen.length === 1);
      caller.abort(gone);
      await assert.rejects(pending, gone);
      await until(() => sockets() === 0);
    }));

  test("closes the connection in the body", () =>
    serving(hanging, async ({ post, sockets }) => {
      const caller = new AbortController();
      const response = await post({ signal: caller.signal, headers: { "x-headers": "1" } });
      assert.equal(await response.read(), "data: x\n\n");
      const next = Promise.resolve(response.read());
      caller.abort(gone);
      await assert.rejects(next, gone);
      await assert.rejects(async () => response.read(), gone);
      await until(() => sockets() === 0);
    }));

  test("sends nothing for a call that was aborted before, or while it waited for a connection", async () => {
    const waiting: ServerResponse[] = [];
    await serving(
      (_, response) => void waiting.push(response),
      async ({ post, seen }) => {
        await assert.rejects(post({ signal: AbortSignal.abort(gone) }), gone);
        const first = post();
        await until(() => waiting.length === 1);
        const caller = new AbortController();
        const second = post({ signal: caller.signal });
        caller.abort(gone);
        await assert.rejects(second, gone);
        waiting[0]?.end("x");
        await textOf(await first);
        await sleep(20);
        assert.equal(seen.length, 1);
      },
      { connections: 1 },
    );
  });

  test("throws a reason that is no Error as it is", () =>
    serving(hanging, async ({ post, seen }) => {
      const caller = new AbortController();
      const pending = post({ signal: caller.signal });
      await until(() => seen.length === 1);
      caller.abort("why");
      assert.equal(await pending.catch((reason: unknown) => reason), "why");
    }));

  test("does nothing after the end of the body", async () => {
    await serving(
      (_, response) => void response.end("x"),
      async ({ post, opened }) => {
        const caller = new AbortController();
        const response = await post({ signal: caller.signal });
        assert.equal(await textOf(response), "x");
        caller.abort(gone);
        response[Symbol.dispose]();
        assert.equal(await response.read(), undefined);
        await textOf(await post());
        assert.equal(opened(), 1);
      },
      { connections: 1 },
    );
  });
});

describe("the rest of a body", () => {
  const beginning =
    (rest: (response: ServerResponse) => void): Handler =>
    (_, response) => {
      response.writeHead(200);
      response.write("data: [DONE]\n\n");
      rest(response);
    };

  test("closes the connection when the response is disposed before its end", () =>
    serving(
      beginning(() => {}),
      async ({ post, sockets }) => {
        const response = await post();
        await response.read();
        response[Symbol.dispose]();
        await until(() => sockets() === 0);
      },
    ));

  test("keeps the connection when the reader has finished and the rest is short", () =>
    serving(
      beginning((response) => void setTimeout(() => response.end("rest"), 20)),
      async ({ post, opened }) => {
        for (let i = 0; i < 3; i++) {
          const response = await post();
          await response.read();
          response.finish();
          response[Symbol.dispose]();
        }
        assert.equal(opened(), 1);
      },
      { connections: 1 },
    ));

  test("closes the connection when the body does not end within a second", () =>
    serving(
      beginning(() => {}),
      async ({ post, sockets }) => {
        const response = await post();
        await response.read();
        response.finish();
        const start = performance.now();
        await until(() => sockets() === 0);
        const took = performance.now() - start;
        assert.ok(took > 800 && took < 20_000, `${took}`);
      },
    ));

  test("closes the connection when the rest is long", async () => {
    const { handler, sent } = flood();
    await serving(handler, async ({ post, sockets }) => {
      const response = await post();
      await response.read();
      response.finish();
      await until(() => sockets() === 0);
      assert.ok(sent() < 20_000_000, `${sent()}`);
    });
  });

  test("still ends with the caller's abort", () =>
    serving(
      beginning(() => {}),
      async ({ post, sockets }) => {
        const caller = new AbortController();
        const response = await post({ signal: caller.signal });
        await response.read();
        response.finish();
        caller.abort(new Error("gone"));
        await until(() => sockets() === 0);
      },
    ));
});
