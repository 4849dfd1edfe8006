import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Code } from "@connectrpc/connect";
import { test } from "vitest";
import { FAILURES, Failure, toFailure } from "../../src/contract/failure.ts";

test("docs/failures.md lists the failures of the code", () => {
  const doc = readFileSync(resolve(import.meta.dirname, "../../docs/failures.md"), "utf8");
  const documented = [...doc.matchAll(/^\| (\d{3}) \| (\S+) \| (\w+) \|/gm)].map(
    ([, http, code, connect]) => `${http} ${code} ${connect}`,
  );
  const snake = (code: Code) => (Code[code] ?? "").replace(/\B[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
  const coded = Object.values(FAILURES).map(
    (row) => `${row.http} ${"code" in row ? row.code : "–"} ${snake(row.connect)}`,
  );
  assert.deepEqual(documented.toSorted(), coded.toSorted());
});

test("wraps any other error as internal and hides its cause", () => {
  const failure = toFailure(new Error("secret detail"));
  assert.equal(failure.kind, "internal");
  assert.doesNotMatch(failure.message, /secret/);
  assert.equal(toFailure(failure), failure);
  assert.equal(new Failure("internal").row.http, 500);
});
