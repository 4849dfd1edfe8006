import assert from "node:assert/strict";
import { setImmediate as tick } from "node:timers/promises";
import { vi } from "vitest";
import { onAbort } from "../../../src/concurrency/abort.ts";
import { CallerGone } from "../../../src/contract/endings.ts";
import type { RequestContext } from "../../../src/generate/request-context.ts";
import { test } from "../../helpers/fixtures.ts";
import type { Lifetime } from "../../helpers/lifetime.ts";
import { head, openRaw } from "../../helpers/raw.ts";
import { listenRest } from "../../helpers/rest.ts";
import { serveRpc } from "../../helpers/rpc.ts";
import { until } from "../../helpers/until.ts";

const SERVICE = "/chorus.v1.GenerationService";

function post(path: string, headers: Record<string, string> = {}, body = '{"prompt":"a"}'): string {
  return head("POST", path, { "Content-Type": "application/json", ...headers, "Content-Length": body.length }) + body;
}

test("answers a caller that closes its side after the request, then closes the connection", async ({ service, t }) => {
  const key = { "X-API-Key": service.apiKey };
  const quotas = post(`${SERVICE}/Quotas`, key, "{}");
  const cases: [url: string, text: string, statuses: number[]][] = [
    [service.url, head("GET", "/healthz"), [200]],
    [service.url, head("GET", "/v1/quotas", key), [200]],
    [service.url, head("GET", "/v1/metrics", key), [200]],
    [service.url, head("GET", "/nowhere"), [404]],
    [service.url, post("/v1/generate"), [401]],
    [service.url, head("GET", "/v1/quotas", key).repeat(3), [200, 200, 200]],
    [service.url, `${head("GET", "/v1/quotas", key)}GET /v1`, [200]],
    [service.rpcUrl, quotas, [200]],
    [service.rpcUrl, quotas + quotas, [200, 200]],
    [service.rpcUrl, post("/nowhere"), [404]],
    [service.rpcUrl, post("/grpc.health.v1.Health/Check", {}, "{}"), [200]],
    [service.rpcUrl, head("GET", "/metrics"), [200]],
    [service.rpcUrl, post(`${SERVICE}/Generate`), [401]],
  ];
  for (const [url, text, statuses] of cases) {
    const raw = await openRaw(t, url);
    raw.socket.end(text);
    const found: number[] = [];
    for (const _ of statuses) found.push((await raw.read()).status);
    assert.deepEqual(found, statuses, text);
    await raw.closed;
  }
});

/** Services whose answers last until the caller leaves. `calls` are the requests that have begun. */
function endless() {
  const calls: RequestContext[] = [];
  const untilGone = async (context: RequestContext) => {
    calls.push(context);
    await new Promise<void>((resolve) => onAbort(context.signal, resolve));
    throw new CallerGone();
  };
  const generation = {
    generateWhole: (_: unknown, context: RequestContext) => untilGone(context),
    // biome-ignore lint/correctness/useYield: the stream fails before its first event
    async *generate(_: unknown, context: RequestContext) {
      await untilGone(context);
    },
  };
  return { calls, services: { generation } };
}

/** Sends a request and closes this side once it runs. @returns what arrives after that */
async function leave(t: Lifetime, url: string, text: string, calls: RequestContext[]): Promise<string> {
  calls.length = 0;
  const raw = await openRaw(t, url);
  let received = "";
  raw.socket.on("data", (data) => {
    received += data;
  });
  raw.send(text);
  await until(() => calls.length === 1);
  assert.equal(calls[0]?.signal.aborted, false);
  raw.socket.end();
  await until(() => calls[0]?.signal.aborted);
  await raw.closed;
  return received;
}

test("takes a caller that closes its side for gone while an answer is generated", async ({ t }) => {
  const { calls, services } = endless();
  const rest = await listenRest(t, services);
  const rpc = await serveRpc(t, services);
  const envelope = "\u0000\u0000\u0000\u0000\u0002{}";
  // A stream may have sent its headers.
  for (const [url, text] of [
    [rest.url, post("/v1/generate")],
    [rest.url, post("/v1/generate:stream")],
    [rest.url, post("/v1/generate") + head("GET", "/healthz")],
    [rpc.url, post(`${SERVICE}/Generate`)],
    [rpc.url, post(`${SERVICE}/StreamGenerate`, { "Content-Type": "application/connect+json" }, envelope)],
  ] as const)
    assert.doesNotMatch(await leave(t, url, text, calls), /event: |\{/, text);
});

test("closes a half-closed connection whose response takes longer than ten seconds", async ({ t }) => {
  let begun = 0;
  const { url } = await listenRest(t, {
    quotas: () => {
      begun++;
      return new Promise(() => undefined);
    },
  });
  const raw = await openRaw(t, url);
  raw.send(head("GET", "/v1/quotas"));
  await until(() => begun === 1);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  t.onTestFinished(() => void vi.useRealTimers());
  raw.socket.end();
  while (vi.getTimerCount() === 0) await tick();
  vi.advanceTimersByTime(9_999);
  assert.equal(raw.socket.destroyed, false);
  vi.advanceTimersByTime(1);
  await raw.closed;
});
