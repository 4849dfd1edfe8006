import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "vitest";

test("types the data of each event of a stream by the name of the event", async () => {
  const text = await readFile(new URL("../../../gen/openapi/openapi.json", import.meta.url), "utf8");
  const { paths, components } = JSON.parse(text);
  const stream = paths["/v1/generate:stream"].post.responses[200].content["text/event-stream"];
  const types: Record<string, { $ref: string }> = stream["x-event-types"];
  for (const name of ["delta", "trace", "done", "error"]) {
    const [, schema = ""] = /^#\/components\/schemas\/(\w+)$/.exec(types[name]?.$ref ?? "") ?? [];
    assert.equal(components.schemas[schema]?.type, "object", name);
  }
  const known = stream.schema.contentSchema.anyOf.map(({ $ref }: { $ref: string }) => $ref);
  assert.deepEqual(
    Object.values(types)
      .map(({ $ref }) => $ref)
      .toSorted(),
    known.toSorted(),
  );
  const { value } = stream.examples.events;
  const shown = [...value.matchAll(/^event: (\w+)$/gm)].map(([, name = ""]) => name);
  assert.ok(shown.length > 0 && shown.every((name) => name in types));
});
