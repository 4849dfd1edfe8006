import assert from "node:assert/strict";
import * as fc from "fast-check";
import { test } from "vitest";
import { safe } from "../../src/cli/print.ts";

test("escapes terminal control characters and keeps all other text", () => {
  assert.equal(safe("\u001b[31mred\u001b]0;title\u0007"), "\\u001b[31mred\\u001b]0;title\\u0007");
  assert.equal(safe("a\rb\bc\u007f\u009b31m\u0000"), "a\\u000db\\u0008c\\u007f\\u009b31m\\u0000");
  assert.equal(safe("admin\u202etxt.exe\u2066"), "admin\\u202etxt.exe\\u2066");
  assert.equal(safe("Zoë 語 👩‍🔧\n\tx"), "Zoë 語 👩‍🔧\n\tx");
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const clean = safe(text);
      assert.doesNotMatch(clean, /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/u);
      assert.equal(safe(clean), clean);
    }),
  );
});

test("keeps the value of a JSON document", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      assert.equal(JSON.parse(safe(JSON.stringify({ text }, null, 2))).text, text);
    }),
  );
});
