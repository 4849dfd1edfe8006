import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "vitest";
import { type Listener, listen, listenBoth } from "../../src/transport/listen.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { openRaw } from "../helpers/raw.ts";
import { until } from "../helpers/until.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

type Start = (limit: { most: number; onRefused(): void }) => Promise<Listener>;

const STARTS: Record<string, Start> = {
  "the public listener": (limit) =>
    listen(
      createServer((_, response) => response.end("served")),
      "127.0.0.1",
      0,
      limit,
    ),
  "the internal listener": (limit) => listenBoth((_, response) => response.end("served"), "127.0.0.1", 0, limit),
};

async function startListener(t: Lifetime, start: Start, most: number) {
  let refused = 0;
  const listener = await start({ most, onRefused: () => (refused += 1) });
  t.onTestFinished(async () => {
    const closed = listener.close();
    listener.destroy();
    await closed;
  });
  return { url: listener.url, refused: () => refused };
}

for (const [name, start] of Object.entries(STARTS)) {
  test(`${name} refuses connections beyond its limit with 503, and serves again when one has closed`, async (t) => {
    const { url, refused } = await startListener(t, start, 2);
    const served = [await openRaw(t, url), await openRaw(t, url)];
    for (const each of served) {
      each.send(GET);
      assert.equal((await each.read()).body, "served");
    }
    const extra = await openRaw(t, url);
    extra.send(GET);
    const { status, headers, body } = await extra.read();
    assert.deepEqual([status, headers["retry-after"], JSON.parse(body).code], [503, "1", "overloaded"]);
    await extra.closed;
    assert.equal(refused(), 1);
    served[0]?.send(GET);
    assert.equal((await served[0]?.read())?.body, "served");

    served[1]?.socket.destroy();
    await until(async () => {
      const next = await openRaw(t, url);
      next.send(GET);
      return (await next.read()).status === 200;
    });
  });

  test(`${name} closes connections that come faster than they can be refused`, async (t) => {
    const { url, refused } = await startListener(t, start, 1);
    const first = await openRaw(t, url);
    first.send(GET);
    await first.read();
    const others = await Promise.all(Array.from({ length: 100 }, () => openRaw(t, url)));
    await Promise.all(others.map(({ closed }) => closed));
    await until(() => refused() === 100);
    first.send(GET);
    assert.equal((await first.read()).body, "served");
    first.socket.end();
    await once(first.socket, "close");
  });
}
