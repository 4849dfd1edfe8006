import assert from "node:assert/strict";
import { test } from "vitest";
import { ModelError } from "../../src/models/port/model-error.ts";
import { createInternalErrors } from "../../src/telemetry/internal-errors.ts";
import { createLog, errorFacts } from "../../src/telemetry/log.ts";

const HOSTILE = {
  get field(): never {
    throw new TypeError("secret");
  },
};

test("writes one JSON line per record, with the time in ISO format", () => {
  const lines: string[] = [];
  createLog("info", { write: (line) => lines.push(line) }).info({ request_id: "req_1" }, "request");
  assert.match(
    lines.join(),
    /^\{"level":30,"time":"\d{4}-\d\d-\d\dT[\d:.]+Z","request_id":"req_1","msg":"request"\}\n$/,
  );
});

test("counts a record that cannot be turned into a line, and writes the next one", () => {
  const lines: string[] = [];
  const errors = createInternalErrors();
  const log = createLog("info", { write: (line) => lines.push(line) }, errors);
  log.info(HOSTILE, "a");
  log.child({}, { serializers: { cause: () => HOSTILE.field } }).warn({ cause: 1 }, "b");
  log.info("c");
  assert.equal(errors.counts.log, 2);
  assert.match(lines.join(), /^[^\n]*"msg":"c"\}\n$/);
});

test("does not throw when its output throws", () => {
  const errors = createInternalErrors();
  const output = {
    write() {
      throw new Error("closed");
    },
  };
  const log = createLog("info", output, errors);
  log.info("a");
  log.fatal("b");
  assert.equal(errors.counts.log, 2);
});

test("reads name, code, status, place and causes of an error, and no message", () => {
  const cause = Object.assign(new RangeError("secret"), { code: "E_RANGE", statusCode: 503 });
  const facts = errorFacts(new TypeError("secret\n    at secret (secret.ts:1:1)", { cause })) as Record<
    string,
    unknown
  >;
  assert.equal(facts.name, "TypeError");
  assert.match(String(facts.at), /log\.test\.ts/);
  const inner = facts.cause as Record<string, unknown>;
  assert.deepEqual([inner.name, inner.code, inner.status], ["RangeError", "E_RANGE", 503]);
  const refused = errorFacts(new ModelError("secret", { retryable: false, status: 401 })) as { status?: unknown };
  assert.equal(refused.status, 401);
  assert.doesNotMatch(JSON.stringify(facts), /secret/);
});

test("reads an error of any form", () => {
  const circle = new Error("a");
  circle.cause = circle;
  assert.equal(JSON.stringify(errorFacts(circle)).match(/"name":"Error"/g)?.length, 6);
  const unreadable = Object.defineProperty(new Error("a"), "code", { get: () => HOSTILE.field });
  assert.deepEqual(errorFacts(unreadable), { name: "unreadable error" });
  assert.deepEqual(errorFacts(Object.assign(new Error("a"), { stack: 7 })), { name: "unreadable error" });
  assert.deepEqual([errorFacts(undefined), errorFacts("secret")], [{ name: "undefined" }, { name: "string" }]);
});
