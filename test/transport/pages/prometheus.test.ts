import assert from "node:assert/strict";
import { connect } from "node:http2";
import { test } from "vitest";
import { serveRpc } from "../../helpers/rpc.ts";

test("serves GET /metrics over HTTP/1.1 and HTTP/2, and no other requests", async (t) => {
  const listener = await serveRpc(t, {});
  const found = await fetch(`${listener.url}/metrics?x=1`);
  assert.equal(found.status, 200);
  assert.match(found.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  assert.match(await found.text(), /^chorus_leases_taken_total 0$/m);
  for (const [method, path] of [
    ["POST", "/metrics"],
    ["GET", "/metrics/"],
    ["GET", "/"],
  ] as const) {
    assert.equal((await fetch(listener.url + path, { method })).status, 404, `${method} ${path}`);
  }
  const session = connect(listener.url);
  const stream = session.request({ ":path": "/metrics" });
  let text = "";
  for await (const chunk of stream) text += chunk;
  session.close();
  assert.match(text, /^chorus_leases_running 0$/m);
});
