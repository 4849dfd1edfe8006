import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { Failure } from "../../../src/contract/failure.ts";
import { originOf, requireSameOrigin } from "../../../src/transport/console/origin.ts";

const of = (headers: Record<string, string>) => (name: string) => headers[name];

test("ignores forwarding headers without trusted proxies", () => {
  const headers = { "x-forwarded-for": "10.0.0.1", "x-forwarded-proto": "https", "x-forwarded-host": "evil.example" };
  assert.deepEqual(originOf(of(headers), 0, "192.0.2.7"), { source: "192.0.2.7", secure: false });
  const own = { ...headers, host: "chorus.example", origin: "http://chorus.example" };
  requireSameOrigin(of(own), 0);
  assert.throws(() => requireSameOrigin(of({ ...own, origin: "http://evil.example" }), 0), Failure);
});

test("uses the forwarding values that the outermost trusted proxy wrote", () => {
  const headers = { "x-forwarded-for": "1.1.1.1, 10.0.0.1, 10.0.0.2", "x-forwarded-proto": "https, http" };
  assert.deepEqual(originOf(of(headers), 1, "192.0.2.7"), { source: "10.0.0.2", secure: false });
  assert.deepEqual(originOf(of(headers), 2, "192.0.2.7"), { source: "10.0.0.1", secure: true });
  assert.deepEqual(originOf(of({}), 1, "192.0.2.7"), { source: "192.0.2.7", secure: false });
});

test("reduces an IPv6 address in any notation to its first 64 bits", () => {
  const source = (address: string) => originOf(of({}), 0, address).source;
  for (const same of ["2001:db8::1", "2001:0db8:0:0:ffff::", "2001:DB8:0:0:1:2:3:4"])
    assert.equal(source(same), "2001:db8:0:0::");
  assert.equal(source("::1"), "0:0:0:0::");
  assert.equal(source("::ffff:192.0.2.7"), "192.0.2.7");
  assert.equal(source("x".repeat(1_000)).length, 64);
  fc.assert(
    fc.property(
      fc.ipV6(),
      (address) => /^([0-9a-f]{1,4}:){4}:$/.test(source(address)) || /^[\d.]+$/.test(source(address)),
    ),
  );
});

test("leaves out the port that some proxies write behind the address", () => {
  const source = (address: string) => originOf(of({ "x-forwarded-for": address }), 1, "192.0.2.7").source;
  for (const same of ["1.2.3.4", "1.2.3.4:5678", "1.2.3.4:5679", "[::ffff:1.2.3.4]:443", "::ffff:1.2.3.4"])
    assert.equal(source(same), "1.2.3.4");
  for (const same of ["2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:443", "[2001:db8:0:0:ffff::]:51000"])
    assert.equal(source(same), "2001:db8:0:0::");
  for (const other of ["1.2.3.5:5678", "unknown", "_hidden:5678"]) assert.notEqual(source(other), "1.2.3.4");
});

test("accepts only requests from a page of the same host and port", () => {
  const passes = (headers: Record<string, string>) => {
    try {
      requireSameOrigin(of(headers), 0);
      return true;
    } catch {
      return false;
    }
  };
  const host = "chorus.example:8080";
  assert.ok(passes({ host, origin: "http://chorus.example:8080" }));
  assert.ok(passes({ host, origin: "http://chorus.example:8080", "sec-fetch-site": "same-origin" }));
  assert.ok(passes({ host: "Chorus.Example:443", origin: "https://chorus.example" }));
  assert.ok(passes({ host: "chorus.example", origin: "https://chorus.example" }));
  for (const headers of [
    { host },
    { host, origin: "" },
    { host, origin: "null" },
    { host, origin: "http://chorus.example" },
    { host, origin: "http://chorus.example:8081" },
    { host, origin: "http://chorus.example:8080.evil.example" },
    { host, origin: "http://sub.chorus.example:8080" },
    { host, origin: "http://chorus.example:8080", "sec-fetch-site": "cross-site" },
    { host, origin: "http://chorus.example:8080", "sec-fetch-site": "none" },
    { origin: "http://chorus.example:8080" },
    { host: "", origin: "http://chorus.example:8080" },
  ] as Record<string, string>[])
    assert.ok(!passes(headers), JSON.stringify(headers));
});
