import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { Failure } from "../../../src/contract/failure.ts";
import { checkSchema } from "../../../src/engine/structured/check-schema.ts";

const ROOT = "response_format.schema";

/** A root whose property `p` is the given schema. */
const withProperty = (schema: unknown) => `{"type":"object","properties":{"p":${JSON.stringify(schema)}}}`;

function accepts(schema: unknown): void {
  checkSchema(typeof schema === "string" ? schema : JSON.stringify(schema));
}

function refuses(schema: unknown, field: string, message: RegExp): void {
  assert.throws(
    () => accepts(schema),
    (error) => {
      assert.ok(error instanceof Failure);
      assert.equal(error.kind, "invalid_response_schema");
      assert.equal(error.field, field);
      assert.match(error.message, message);
      return true;
    },
    JSON.stringify(schema)?.slice(0, 200),
  );
}

/** An object nested so that its innermost node is at the given level. */
function nested(level: number): unknown {
  let schema: unknown = { type: "string" };
  for (let at = level - 1; at >= 1; at -= 1) {
    schema = at % 2 ? { type: "object", properties: { a: schema } } : { type: "array", items: schema };
  }
  return schema;
}

describe("checkSchema accepts", () => {
  const properties: Record<string, unknown> = {
    types: { type: "object", properties: {} },
    list: { type: "array", items: { type: "integer" }, minItems: 0, maxItems: 3 },
    nullable: { type: ["string", "null"], minLength: 1, maxLength: 5, enum: ["a", null] },
    simple: { type: ["string", "number", "integer", "boolean", "null"], const: true, minimum: 0 },
    number: { type: "number", minimum: -1.5, maximum: 2e3, enum: [1, 1.5] },
    integer: { type: "integer", const: 7 },
    flag: { type: "boolean", enum: [true] },
    nothing: { type: "null", const: null },
    object: { type: "object", properties: { a: { type: "string" } }, required: ["a"], additionalProperties: false },
    open: { type: "object", additionalProperties: true, required: [] },
    unsatisfiable: { type: "string", minLength: 5, maxLength: 3 },
  };
  for (const [name, schema] of Object.entries(properties)) it(name, () => accepts(withProperty(schema)));

  it("the annotations with any value", () => {
    for (const note of [
      "description",
      "title",
      "default",
      "examples",
      "deprecated",
      "readOnly",
      "writeOnly",
      "$comment",
    ]) {
      for (const value of ["x", 1, null, { $ref: "#" }, [[[[[[[[[[[[1]]]]]]]]]]]]]) {
        accepts({ type: "object", [note]: value });
        accepts(withProperty({ type: "string", [note]: value }));
      }
    }
  });

  it("both dialects at the root", () => {
    for (const dialect of ["draft/2020-12", "draft-07"]) {
      for (const scheme of ["http", "https"]) {
        for (const end of ["", "#"])
          accepts({ $schema: `${scheme}://json-schema.org/${dialect}/schema${end}`, type: "object" });
      }
    }
  });

  it("integers by value, and numbers of any size", () => {
    accepts('{"type":"object","properties":{"p":{"type":"string","minLength":1.0,"maxLength":1e2}}}');
    accepts('{"type":"object","properties":{"p":{"type":"array","items":{"type":"null"},"maxItems":1e400}}}');
    accepts(
      '{"type":"object","properties":{"p":{"type":"integer","enum":[1.0,1e400,-0,123456789012345678901234567890]}}}',
    );
  });

  it("any property name", () => {
    const names = ["__proto__", "constructor", "toString", "", "a b", "10", 'q"', "ü", "$ref", "type", "properties"];
    const members = names.map((name) => `${JSON.stringify(name)}:{"type":"string"}`);
    accepts(`{"type":"object","properties":{${members.join(",")}},"required":${JSON.stringify(names)}}`);
  });

  it("ten levels, and 32 KiB without white space", () => {
    accepts(nested(10));
    const text = (size: number) => `{"type":"object","title":"${"é".repeat((size - 28) / 2)}"}`;
    assert.equal(Buffer.byteLength(text(32_768)), 32_768);
    accepts(text(32_768).replaceAll(",", " ,\n  "));
    refuses(text(32_770), ROOT, /32768 bytes \(32 KiB\)/);
  });

  it("the last of duplicate names, as in the rest of a body", () => {
    accepts('{"type":"array","type":"object"}');
    refuses('{"type":"object","type":"array"}', ROOT, /"object"/);
  });
});

describe("checkSchema refuses", () => {
  it("every other keyword, by name and path", () => {
    const unsupported = [
      ..."$ref $defs oneOf anyOf allOf not if then else pattern format patternProperties uniqueItems multipleOf".split(
        " ",
      ),
      ..."exclusiveMinimum exclusiveMaximum minProperties maxProperties definitions $id $anchor $vocabulary".split(" "),
      ..."prefixItems contains propertyNames dependentRequired unevaluatedProperties contentEncoding nullable".split(
        " ",
      ),
      ..."Type x-internal __proto__ constructor toString".split(" "),
    ];
    for (const keyword of unsupported) {
      const node = `{"type":"object",${JSON.stringify(keyword)}:1}`;
      const message = new RegExp(`"${keyword.replaceAll("$", "\\$")}" is not supported`);
      refuses(node, ROOT, message);
      refuses(`{"type":"object","properties":{"a":${node}}}`, `${ROOT}.properties.a`, message);
    }
  });

  it("a root that is not one object", () => {
    refuses({ type: "array", items: { type: "string" } }, ROOT, /"object"/);
    refuses({ type: ["object"] }, ROOT, /"object"/);
    refuses({ properties: {} }, ROOT, /"type" is missing/);
    for (const root of ["[]", "true", "1", '"object"', "null"]) refuses(root, ROOT, /must be an object/);
    for (const root of ["", "{", "{'type':'object'}"]) refuses(root, ROOT, /must be one JSON object/);
  });

  it("a node with a missing or invalid type", () => {
    const p = `${ROOT}.properties.p`;
    refuses(withProperty({}), p, /"type" is missing/);
    for (const schema of [true, false, null, [], "string"]) refuses(withProperty(schema), p, /declares its "type"/);
    for (const type of ["text", "String", 1, null, {}]) refuses(withProperty({ type }), p, /"type" must be one of/);
    for (const type of [[], ["object", "null"], ["array"], ["string", "string"], ["string", 1], [["string"]]]) {
      refuses(withProperty({ type }), p, /A list as "type"/);
    }
  });

  it("a keyword with a wrong value or beside another type", () => {
    const cases: [schema: unknown, message: RegExp][] = [
      [{ type: "object", properties: [] }, /"properties" must be an object/],
      [{ type: "string", properties: {} }, /"properties" belongs to type object/],
      [{ type: "object", required: "a" }, /"required" must be a list/],
      [{ type: "object", required: ["a"] }, /"required" names "a"/],
      [{ type: "object", required: [1], properties: {} }, /as strings/],
      [{ type: "object", properties: { a: { type: "null" } }, required: ["a", "a"] }, /"required" names "a"/],
      [{ type: "object", required: ["toString"], properties: {} }, /"required" names "toString"/],
      [{ type: "object", additionalProperties: { type: "string" } }, /"additionalProperties" must be true or false/],
      [{ type: "object", additionalProperties: null }, /"additionalProperties" must be true or false/],
      [{ type: "array" }, /must declare "items"/],
      [{ type: "string", items: { type: "string" } }, /"items" belongs to type array/],
      [{ type: "string", enum: [] }, /"enum" must be a list of at least one/],
      [{ type: "string", enum: "a" }, /"enum" must be a list/],
      [{ type: "string", enum: ["a", 1] }, /"enum" takes/],
      [{ type: "string", enum: [["a"]] }, /"enum" takes/],
      [{ type: "object", const: {} }, /"const" takes/],
      [{ type: "integer", const: 1.5 }, /"const" takes/],
      [{ type: "boolean", const: "true" }, /"const" takes/],
      [{ type: "string", const: null }, /"const" takes/],
      [{ type: "number", minLength: 1 }, /"minLength" belongs to type string/],
      [{ type: "string", minLength: -1 }, /"minLength" must be an integer of at least 0/],
      [{ type: "string", maxLength: 1.5 }, /"maxLength" must be an integer/],
      [{ type: "string", maxLength: "5" }, /"maxLength" must be an integer/],
      [{ type: "string", minimum: 1 }, /"minimum" belongs to type number or integer/],
      [{ type: "number", maximum: "1" }, /"maximum" must be a number/],
      [{ type: "number", minimum: null }, /"minimum" must be a number/],
      [{ type: "string", minItems: 1 }, /"minItems" belongs to type array/],
      [{ type: "array", items: { type: "string" }, maxItems: -1 }, /"maxItems" must be an integer/],
      [
        { type: "string", $schema: "https://json-schema.org/draft/2020-12/schema" },
        /"\$schema" may stand at the root only/,
      ],
    ];
    for (const [schema, message] of cases) refuses(withProperty(schema), `${ROOT}.properties.p`, message);
    const tuple = { type: "array", items: [{ type: "string" }] };
    refuses(withProperty(tuple), `${ROOT}.properties.p.items`, /declares its "type"/);
    for (const dialect of ["https://json-schema.org/draft/2019-09/schema", "http://json-schema.org/schema#", 7, null]) {
      refuses({ $schema: dialect, type: "object" }, ROOT, /"\$schema" must name/);
    }
  });

  it("an eleventh level", () => {
    refuses(nested(11), `${ROOT}${".properties.a.items".repeat(5)}`, /deeper than 10 levels/);
  });

  it("the first violation in the text, with any name in the path", () => {
    refuses(
      '{"type":"object","properties":{"items":{"type":"array","items":{"type":"string","format":"date"}},"b":{}}}',
      `${ROOT}.properties.items.items`,
      /"format"/,
    );
    refuses('{"type":"object","properties":{"a \\"b":{}}}', `${ROOT}.properties["a \\"b"]`, /"type"/);
    refuses('{"type":"object","properties":{"__proto__":{}}}', `${ROOT}.properties.__proto__`, /"type"/);
  });

  it("hostile schemas quickly, with a short message", () => {
    const start = process.cpuUsage();
    refuses(`${'{"type":"object","properties":{"a":'.repeat(100_000)}`, ROOT, /too large/);
    refuses(`{"type":"object","default":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, ROOT, /deeper than 512/);
    const keys = Array.from({ length: 4000 }, (_, i) => `"k${i}":1`).join(",");
    refuses(`{"type":"object",${keys}}`, ROOT, /too large|not supported/);
    refuses(`{"type":"object","${"x".repeat(30_000)}":1}`, ROOT, /^.{1,300}$/);
    refuses(`{"type":"object","title":"${"x".repeat(5_000_000)}"}`, ROOT, /too large/);
    assert.ok(process.cpuUsage(start).user < 1_000_000);
  });
});

it("names an unsupported keyword even when the type is missing too", () => {
  refuses('{"type":"object","properties":{"a":{"$ref":"#"}}}', `${ROOT}.properties.a`, /"\$ref" is not supported/);
});
