import assert from "node:assert/strict";
import { connect } from "node:http2";
import { test } from "vitest";
import { createTelemetry } from "../../../src/telemetry/create.ts";
import { withMetrics } from "../../../src/transport/pages/prometheus.ts";
import { listenBoth } from "../../../src/transport/socket/listen.ts";

test("serves GET /metrics over HTTP/1.1 and HTTP/2, and passes other requests on", async (t) => {
  const telemetry = createTelemetry();
  telemetry.leaseTaken();
  const handler = withMetrics(telemetry, (_, response) => {
    response.writeHead(418);
    response.end();
  });
  const listener = await listenBoth(handler, "127.0.0.1", 0);
  t.onTestFinished(async () => {
    listener.destroy();
    await listener.close();
  });
  const found = await fetch(`${listener.url}/metrics?x=1`);
  assert.equal(found.status, 200);
  assert.match(found.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  assert.match(await found.text(), /^chorus_leases_taken_total 1$/m);
  for (const [method, path] of [
    ["POST", "/metrics"],
    ["GET", "/metrics/"],
    ["GET", "/"],
  ] as const) {
    assert.equal((await fetch(listener.url + path, { method })).status, 418, `${method} ${path}`);
  }
  const session = connect(listener.url);
  const stream = session.request({ ":path": "/metrics" });
  let text = "";
  for await (const chunk of stream) text += chunk;
  session.close();
  assert.match(text, /^chorus_leases_running 1$/m);
});
