import assert from "node:assert/strict";
import { test } from "vitest";
import { Breaker, type BreakerOptions } from "../../src/concurrency/breaker.ts";

function fixture(options: BreakerOptions = {}) {
  let now = 0;
  const breaker = new Breaker({ minRequests: 4, windowMs: 1_000, cooldownMs: 100, clock: () => now, ...options });
  const begin = (workspace: string) => breaker.begin({ workspace });
  return {
    breaker,
    begin,
    /** Reports new requests of a workspace. */
    report(workspace: string, result: "ok" | "failed" | "unknown", requests = 1) {
      for (let i = 0; i < requests; i++) begin(workspace)?.end(result);
    },
    wait: (ms: number) => {
      now += ms;
    },
  };
}

/** A circuit that has just opened by failures of workspaces a and b. */
function opened(options: BreakerOptions = {}) {
  const all = fixture(options);
  all.report("a", "failed", 2);
  all.report("b", "failed", 2);
  assert.equal(all.breaker.isClosed, false);
  return all;
}

test("opens when half of the requests failed, also without the workspace that failed most", () => {
  const { breaker, report } = fixture();
  report("a", "failed");
  report("b", "failed");
  report("c", "ok");
  assert.equal(breaker.isClosed, true, "too few requests");
  report("c", "ok");
  report("a", "failed");
  report("a", "failed");
  assert.equal(breaker.isClosed, true, "without a, one of three has failed");
  report("b", "failed");
  assert.equal(breaker.isClosed, false);
  assert.equal(breaker.failedShare, 5 / 7);
});

test("stays closed while less than half of the requests fail", () => {
  const { breaker, report } = fixture();
  for (const workspace of ["a", "b", "c"]) {
    report(workspace, "ok", 11);
    report(workspace, "failed", 10);
  }
  assert.equal(breaker.isClosed, true);
});

test("stays closed when the requests of one workspace fail and another uses the server", () => {
  const { breaker, report } = fixture();
  report("good", "ok");
  report("bad", "failed", 1_000);
  report("good", "failed");
  report("bad", "failed", 1_000);
  assert.equal(breaker.isClosed, true);
});

test("opens for a workspace that alone used the server lately", () => {
  const { breaker, report, wait } = fixture();
  report("a", "ok");
  report("b", "failed");
  wait(299_999);
  report("b", "failed", 4);
  assert.equal(breaker.isClosed, true);
  wait(2);
  report("b", "failed");
  assert.equal(breaker.isClosed, false);
});

test("counts several failed calls of one request once", () => {
  const { breaker } = fixture();
  const request = { workspace: "a" };
  for (let i = 0; i < 10; i++) breaker.begin(request)?.end("failed");
  const attempt = breaker.begin({ workspace: "a" });
  for (let i = 0; i < 10; i++) attempt?.end("failed");
  assert.equal(breaker.isClosed, true);
});

test("does not count calls that say nothing about the server", () => {
  const { breaker, report } = fixture();
  report("a", "unknown", 10);
  report("a", "failed", 3);
  assert.equal(breaker.isClosed, true);
  assert.equal(breaker.failedShare, 1);
});

test("forgets requests after the window", () => {
  const { breaker, report, wait } = fixture();
  report("a", "failed", 3);
  wait(1_000);
  report("b", "ok");
  assert.equal(breaker.failedShare, 0.75, "the previous half counts");
  wait(1_000);
  report("b", "ok");
  assert.equal(breaker.failedShare, 0);
  wait(2_000);
  report("b", "failed");
  assert.equal(breaker.failedShare, 1);
});

test("lets one probe through after the cool-down, and closes when it succeeds", () => {
  const { breaker, begin, wait } = opened();
  wait(99);
  assert.equal(begin("a"), undefined);
  wait(1);
  const probe = begin("a");
  assert.ok(probe);
  assert.equal(begin("b"), undefined, "only one probe");
  probe.end("ok");
  assert.equal(breaker.isClosed, true);
  assert.equal(breaker.failedShare, 0, "the window begins anew");
});

test("stays open for another cool-down when the probe fails, and then prefers another workspace", () => {
  const { begin, report, wait } = opened();
  wait(100);
  report("a", "failed");
  wait(99);
  assert.equal(begin("b"), undefined);
  wait(1);
  assert.equal(begin("a"), undefined);
  begin("b")?.end("unknown");
  wait(100);
  assert.ok(begin("a"), "twice the cool-down has passed");
});

test("allows another probe when a probe ends without a result", () => {
  const { begin, report, wait } = opened();
  wait(100);
  report("a", "unknown");
  assert.ok(begin("a"));
});

test("is not changed by a call from before it opened", () => {
  const { breaker, begin, report, wait } = fixture();
  const [early, late] = [begin("a"), begin("a")];
  report("a", "failed", 4);
  wait(60);
  early?.end("failed");
  late?.end("ok");
  assert.equal(breaker.isClosed, false);
  wait(40);
  assert.ok(begin("a"), "the cool-down is not extended");
});

test("passes a forced call while it is open, and closes when that succeeds", () => {
  const { breaker } = opened();
  breaker.begin({ workspace: "a" }, true)?.end("failed");
  assert.equal(breaker.isClosed, false);
  breaker.begin({ workspace: "a" }, true)?.end("ok");
  assert.equal(breaker.isClosed, true);
});

test("opens by one workspace also after calls of the service itself, which count as well", () => {
  const { breaker, report } = fixture();
  report("a", "ok");
  report("", "ok");
  report("a", "failed", 2);
  assert.equal(breaker.isClosed, false);
});

test("closes at once when it is reset", () => {
  const { breaker, begin } = opened();
  assert.equal(begin("a"), undefined);
  breaker.reset();
  assert.equal(breaker.failedShare, 0);
  begin("a")?.end("failed");
  assert.equal(breaker.isClosed, true);
});

test("stores a bounded number of workspaces", () => {
  const { breaker, report } = fixture();
  for (let i = 0; i < 1_000; i++) report(`w${i}`, i < 256 ? "ok" : "failed");
  assert.equal(breaker.failedShare, 0);
});
