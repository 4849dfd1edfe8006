import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { describeFormats } from "../../../src/engine/structured/describe-formats.ts";

function described(schema: object) {
  const { schema: text, paths } = describeFormats(JSON.stringify(schema), "schema");
  return { schema: JSON.parse(text), paths };
}

const DATE = { type: "string", format: "date" };
const DESCRIBED = { type: "string", description: "Format: date." };

describe("describeFormats", () => {
  it("moves formats into descriptions, wherever a schema can stand", () => {
    const { schema, paths } = described({
      $defs: { Day: DATE },
      properties: { "a b": { ...DATE, description: "When." }, c: { anyOf: [DATE, { items: DATE }] } },
    });
    assert.deepEqual(schema, {
      $defs: { Day: DESCRIBED },
      properties: {
        "a b": { type: "string", description: "When.\nFormat: date." },
        c: { anyOf: [DESCRIBED, { items: DESCRIBED }] },
      },
    });
    const places = ["$defs.Day", 'properties["a b"]', "properties.c.anyOf[0]", "properties.c.anyOf[1].items"];
    assert.deepEqual(
      paths,
      places.map((place) => `schema.${place}`),
    );
  });

  it("leaves a text without formats, and what only looks like one, as it is written", () => {
    const name = { properties: { format: { type: "string", default: DATE, enum: ["format"] } }, examples: [DATE] };
    for (const text of [`{ "type" : "object" }`, JSON.stringify(name, null, 1), `{"format": 5}`])
      assert.deepEqual(describeFormats(text, "schema"), { schema: text, paths: [] });
  });
});
