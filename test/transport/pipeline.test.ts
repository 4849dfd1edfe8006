import assert from "node:assert/strict";
import { setImmediate as tick } from "node:timers/promises";
import { test } from "vitest";
import { onAbort } from "../../src/abort.ts";
import { Failure } from "../../src/failure.ts";
import { CallerGone, type RequestContext } from "../../src/service/request-context.ts";
import { head, openRaw } from "../helpers/raw.ts";
import { listenRest } from "../helpers/rest.ts";
import { until } from "../helpers/until.ts";

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
  const raw = await openRaw(t, server.url);
  const one = `${head("POST", "/v1/generate", { ...JSON_TYPE, "Content-Length": 14 })}{"prompt":"a"}`;
  raw.send(one + one);
  await until(() => calls.length === 1);
  assert.ok(calls.every(({ signal }) => !signal.aborted));
  raw.socket.destroy();
  await until(() => calls.every(({ signal }) => signal.aborted));
  await until(async () => (await server.connections()) === 0);
  assert.equal(calls.length, 1);
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
