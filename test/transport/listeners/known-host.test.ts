import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { test } from "vitest";
import type { Lifetime } from "../../helpers/lifetime.ts";
import { head, openRaw } from "../../helpers/raw.ts";
import { startService } from "../../helpers/service.ts";

const QUOTAS = "/chorus.v1.GenerationService/Quotas?encoding=json&message=%7B%7D";

/** The status of a request with these headers, and the code of the failure, if any. */
async function status(t: Lifetime, url: string, path: string, headers: Record<string, string>): Promise<string> {
  const raw = await openRaw(t, url);
  const { Host: host = "127.0.0.1", ...others } = headers;
  raw.send(head("GET", path, others).replace(/^Host: .*$/m, `Host: ${host}`));
  const response = await raw.read();
  raw.socket.destroy();
  const [, code] = /"code":"(\w+)","requestId"/.exec(response.body) ?? [];
  return code ? `${response.status} ${code}` : `${response.status}`;
}

const FOREIGN = "403 foreign_origin";

test("accepts only its own names on a loopback address", async (t) => {
  const { rpcUrl, apiKey } = await startService(t, { env: { RPC_NAMES: "chorus.example.com, .svc.example.com" } });
  const hosts: [host: string, expected: string][] = [
    ["127.0.0.1:8081", "200"],
    ["[::1]:8081", "200"],
    ["localhost:8081", "200"],
    ["LOCALHOST.", "200"],
    ["chorus", "200"],
    ["chorus.default.svc:80", "200"],
    ["chorus.example.com:8081", "200"],
    ["a.svc.example.com", "200"],
    ["svc.example.com", FOREIGN],
    ["evil.example", FOREIGN],
    ["evil.example.:8081", FOREIGN],
    ["EVIL.example", FOREIGN],
    ["127.0.0.1.evil.example", FOREIGN],
    ["localhost.evil.example", FOREIGN],
    ["xn--80ak6aa92e.com", FOREIGN],
  ];
  for (const [host, expected] of hosts) {
    assert.equal(await status(t, rpcUrl, "/metrics", { Host: host }), expected, host);
    assert.equal(await status(t, rpcUrl, QUOTAS, { Host: host, "X-API-Key": apiKey }), expected, host);
  }
  const others: [headers: Record<string, string>, expected: string][] = [
    [{ Origin: "http://localhost:3000" }, "200"],
    [{ Origin: "https://evil.example" }, FOREIGN],
    [{ Origin: "null" }, FOREIGN],
    [{ "Sec-Fetch-Site": "cross-site" }, FOREIGN],
    [{ "Sec-Fetch-Site": "none" }, "200"],
  ];
  for (const [headers, expected] of others) assert.equal(await status(t, rpcUrl, "/metrics", headers), expected);

  const session = connectHttp2(rpcUrl);
  t.onTestFinished(() => session.destroy());
  const call = session.request({
    ":method": "POST",
    ":authority": "evil.example",
    ":path": "/chorus.v1.GenerationService/Generate",
    "content-type": "application/grpc",
  });
  call.end();
  const [trailers] = await once(call.resume(), "trailers");
  assert.equal(trailers["grpc-status"], "7");
});

test("accepts any name of programs on other addresses, but not for the metrics", async (t) => {
  const { rpcUrl, apiKey } = await startService(t, { env: { RPC_HOST: "0.0.0.0", RPC_NAMES: "chorus.example.com" } });
  const cases: [path: string, headers: Record<string, string>, expected: string][] = [
    [QUOTAS, { Host: "chorus.corp.example", "X-API-Key": apiKey }, "200"],
    [QUOTAS, { Host: "chorus.corp.example", Origin: "http://127.0.0.1" }, FOREIGN],
    [QUOTAS, { Host: "chorus.corp.example", "Sec-Fetch-Site": "same-origin" }, FOREIGN],
    ["/metrics", { Host: "chorus.corp.example" }, FOREIGN],
    ["/metrics", { Host: "chorus.example.com" }, "200"],
    ["/metrics", { Host: "10.1.2.3:8081" }, "200"],
  ];
  for (const [path, headers, expected] of cases)
    assert.equal(await status(t, rpcUrl, path, headers), expected, JSON.stringify(headers));
});
