import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { errorAt } from "../../console/src/playground/json-error.ts";
import { placeOf } from "../../console/src/playground/json-place.ts";
import { refusalOf } from "../../console/src/playground/schema-check.ts";

test("the line that the gate refuses is found", () => {
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
  assert.deepEqual([refusalOf(schema)?.line, refusalOf(schema)?.path], [6, 'properties["a b"]']);
  assert.equal(refusalOf(schema.replace('      "format"', '      "description"')), undefined);
  assert.equal(refusalOf(schema.replace('{"type": "number"}', "{}"))?.line, 6);
  assert.equal(
    refusalOf(schema.replace('      "format": "email"\n', '      "minLength": 1\n').replace('"number"', '"numbre"'))
      ?.line,
    8,
  );
  assert.equal(refusalOf('{\n"type":\n"array"}')?.line, 1);
  assert.equal(refusalOf("")?.line, 1);
  assert.equal(refusalOf('{\n"type": }')?.line, 2);
  assert.equal(refusalOf("[]")?.line, 1);
  assert.equal(refusalOf("[".repeat(100_000))?.line, 1);
});

test("text is JSON just when JSON.parse takes it, and breaks within what it has", () => {
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
      const at = errorAt(text);
      assert.equal(at === undefined, parses(text), text);
      assert.ok(at === undefined || (at >= 0 && at <= text.length));
    }),
  );
});

test("a member is found where it stands, the last of its name", () => {
  const text = '{"a": [{"b": 1}], "b": {"c": "}", "c": 2}, "a": {"b\\u0063": [1, {"d": 2}]}}';
  assert.equal(placeOf(text, []), 0);
  assert.equal(placeOf(text, ["b", "c"]), text.lastIndexOf('"c"'));
  assert.equal(placeOf(text, ["a", "bc"]), text.indexOf('"b\\u0063"'));
  assert.equal(placeOf(text, ["a", "b"]), undefined);
  assert.equal(placeOf(text, ["d"]), undefined);
});
