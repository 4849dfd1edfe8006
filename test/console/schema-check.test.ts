import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { jsonErrorAt } from "../../console/src/playground/json-error.ts";
import { offsetOf } from "../../console/src/playground/json-offset.ts";
import { schemaProblem } from "../../console/src/playground/schema-check.ts";

test("finds the line of an unsupported schema", () => {
  const schema = `{
  "type": "object",
  "properties": {
    "a b": {
      "type": "string",
      "format": "email"
    },
    "n": {"type": "number"}
  }
}`;
  assert.deepEqual([schemaProblem(schema)?.line, schemaProblem(schema)?.path], [6, 'properties["a b"]']);
  assert.equal(schemaProblem(schema.replace('      "format"', '      "description"')), undefined);
  assert.equal(schemaProblem(schema.replace('{"type": "number"}', "{}"))?.line, 6);
  assert.equal(
    schemaProblem(schema.replace('      "format": "email"\n', '      "minLength": 1\n').replace('"number"', '"numbre"'))
      ?.line,
    8,
  );
  assert.equal(schemaProblem('{\n"type":\n"array"}')?.line, 1);
  assert.equal(schemaProblem("")?.line, 1);
  assert.equal(schemaProblem('{\n"type": }')?.line, 2);
  assert.equal(schemaProblem("[]")?.line, 1);
  assert.equal(schemaProblem("[".repeat(100_000))?.line, 1);
});

test("reports an error position exactly when JSON.parse fails", () => {
  const parses = (text: string): boolean => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  };
  const broken = fc
    .tuple(fc.json({ maxDepth: 3 }), fc.nat(), fc.constantFrom("", "}", ",", '"', "\\", "1", "-", "."))
    .map(
      ([json, at, piece]) => json.slice(0, at % (json.length + 1)) + piece + json.slice((at % (json.length + 1)) + 1),
    );
  fc.assert(
    fc.property(broken, (text) => {
      const at = jsonErrorAt(text);
      assert.equal(at === undefined, parses(text), text);
      assert.ok(at === undefined || (at >= 0 && at <= text.length));
    }),
  );
});

test("finds the position of a member, the last one of a repeated name", () => {
  const text = '{"a": [{"b": 1}], "b": {"c": "}", "c": 2}, "a": {"b\\u0063": [1, {"d": 2}]}}';
  assert.equal(offsetOf(text, []), 0);
  assert.equal(offsetOf(text, ["b", "c"]), text.lastIndexOf('"c"'));
  assert.equal(offsetOf(text, ["a", "bc"]), text.indexOf('"b\\u0063"'));
  assert.equal(offsetOf(text, ["a", "b"]), undefined);
  assert.equal(offsetOf(text, ["d"]), undefined);
});
