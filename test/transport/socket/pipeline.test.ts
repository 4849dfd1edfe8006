import assert from "node:assert/strict";
import type { Server } from "node:http";
import { setImmediate as tick } from "node:timers/promises";
import { test } from "vitest";
import { onAbort } from "../../../src/concurrency/abort.ts";
import { CallerGone } from "../../../src/contract/endings.ts";
import { Failure } from "../../../src/contract/failure.ts";
import type { RequestContext } from "../../../src/generate/request-context.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";
import { head, openRaw } from "../../helpers/raw.ts";
import { listenRest } from "../../helpers/rest.ts";
import { until } from "../../helpers/until.ts";

const JSON_TYPE = { "Content-Type": "application/json" };

test("aborts the request of a closed connection and never runs one that waits behind it", async (t) => {
  const calls: RequestContext[] = [];
  const server = await listenRest(t, {
    generation: {
      async generateWhole(_, call) {
        calls.push(call);
        await new Promise<void>((resolve) => onAbort(call.signal, resolve));
        throw new CallerGone();
      },
    },
  });
  const others = ["", post(), `${post()}POST /v1`, "POST /v1", "garbage\r\n\r\n", post().repeat(50).slice(0, -20)];
  for (const [i, behind] of others.entries()) {
    const raw = await openRaw(t, server.url);
    raw.send(post() + behind);
    await until(() => calls.length === i + 1);
    assert.ok(!calls[i]?.signal.aborted);
    raw.socket.destroy();
    await until(() => calls[i]?.signal.aborted);
    await until(async () => (await server.connections()) === 0);
  }
  assert.equal(calls.length, others.length);
});

test("runs pipelined requests with bodies one at a time, in their order", async (t) => {
  const prompts: string[] = [];
  let running = 0;
  let most = 0;
  const server = await listenRest(t, {
    generation: {
      async generateWhole(request) {
        prompts.push("prompt" in request ? request.prompt : "");
        most = Math.max(most, ++running);
        await tick();
        running--;
        throw new Failure("insufficient_credit");
      },
    },
  });
  const raw = await openRaw(t, server.url);
  const sent = Array.from({ length: 20 }, (_, i) => `{"prompt":"${i + 10}"}`);
  const requests = sent.map((body) => head("POST", "/v1/generate", { ...JSON_TYPE, "Content-Length": 15 }) + body);
  // The end of the last one arrives later.
  const text = requests.join("");
  raw.send(text.slice(0, -5));
  for (let i = 0; i < 19; i++) assert.equal((await raw.read()).status, 402);
  raw.send(text.slice(-5));
  const response = await raw.read();
  assert.deepEqual([response.status, response.headers.connection], [402, "keep-alive"]);
  assert.deepEqual(
    prompts,
    sent.map((body) => JSON.parse(body).prompt),
  );
  assert.equal(most, 1);
});

/** A request with a prompt of `length` letters. */
function post(length = 1): string {
  const body = `{"prompt":"${"a".repeat(length)}"}`;
  return head("POST", "/v1/generate", { ...JSON_TYPE, "Content-Length": body.length }) + body;
}

/** A listener whose requests last until `release` is called. */
async function listenHeld(t: Lifetime, timeouts: Partial<Server> = {}) {
  const held = Promise.withResolvers<void>();
  let begun = 0;
  const { url } = await listenRest(
    t,
    {
      generation: {
        async generateWhole() {
          begun++;
          await held.promise;
          throw new Failure("insufficient_credit");
        },
      },
    },
    timeouts,
  );
  const raw = await openRaw(t, url);
  /** Sends bytes whose first request begins. */
  const begin = async (text: string) => {
    raw.send(text);
    await until(() => begun === 1);
  };
  /** Ends the requests, and reads the responses until the connection ends. */
  const release = async () => {
    held.resolve();
    const statuses: number[] = [];
    for (;;) {
      const response = await raw.read().catch(() => undefined);
      if (!response) return statuses;
      statuses.push(response.status);
    }
  };
  return { url, raw, begin, release };
}

test("answers a request before it refuses the bytes behind it", async (t) => {
  const chunked = `${head("POST", "/v1/generate", { ...JSON_TYPE, "Transfer-Encoding": "chunked" })}zz\r\n`;
  for (const [behind, expected] of [
    ["garbage\r\n\r\n", [402, 400]],
    [`${post()}garbage\r\n\r\n`, [402, 402, 400]],
    [`${post()}${chunked}`, [402, 402, 400]],
    [chunked, [402, 400]],
  ] as const) {
    const { raw, begin, release } = await listenHeld(t);
    await begin(post() + behind);
    raw.send("further bytes");
    assert.deepEqual(await release(), expected);
  }
});

/** Resolves after the server has searched for late requests. */
async function lateRequestsFound(t: Lifetime, url: string): Promise<void> {
  const raw = await openRaw(t, url);
  raw.send("GET /");
  assert.equal((await raw.read()).status, 408);
}

test("answers requests before it refuses one behind them that does not arrive in time", async (t) => {
  const { url, begin, release } = await listenHeld(t, { headersTimeout: 50, requestTimeout: 50 });
  await begin(`${post()}${post()}POST /v1/gen`);
  await lateRequestsFound(t, url);
  assert.deepEqual(await release(), [402, 402, 408]);
});

test("answers the requests that it keeps although the one after them is cut off", async (t) => {
  const { url, begin, release } = await listenHeld(t, { headersTimeout: 50, requestTimeout: 50 });
  await begin(post().repeat(50).slice(0, -20));
  await lateRequestsFound(t, url);
  assert.deepEqual(await release(), Array(33).fill(402));
});

test("keeps few requests with large bodies", async (t) => {
  const { raw, begin, release } = await listenHeld(t);
  await begin(post(50_000).repeat(33));
  await until(() => raw.socket.writableLength === 0);
  const { length } = await release();
  assert.ok(length >= 2 && length <= 5, `${length} were answered`);
});
