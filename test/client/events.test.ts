import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { readEvents, type ServerSentEvent } from "../../src/client/events.ts";
import { codePoint } from "../helpers/code-point.ts";

async function read(bytes: Uint8Array, cuts: readonly number[]): Promise<ServerSentEvent[]> {
  const offsets = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const [i, from] of offsets.entries()) controller.enqueue(bytes.subarray(from, offsets[i + 1]));
      controller.close();
    },
  });
  return all(body);
}

async function all(body: ReadableStream<Uint8Array>): Promise<ServerSentEvent[]> {
  const events: ServerSentEvent[] = [];
  for await (const event of readEvents(body, () => undefined)) events.push(event);
  return events;
}

test("reads the same events for any split of the bytes and each kind of line end", async () => {
  const event = fc.record({ name: fc.constantFrom("delta", "done", ""), text: fc.string({ unit: codePoint }) });
  const cuts = fc.array(fc.nat(2_000), { maxLength: 20 });
  const end = fc.constantFrom("\n", "\r\n", "\r");
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 5 }), cuts, end, async (list, at, eol) => {
      const text = list
        .map(
          ({ name, text }) =>
            `: note${eol}event: ${name}${eol}data: ${JSON.stringify({ text })}${eol}id: 1${eol}${eol}`,
        )
        .join("");
      const found = await read(new TextEncoder().encode(text), at);
      const wellFormed = list.map(({ name, text }) => ({ name, data: JSON.stringify({ text }) }));
      assert.deepEqual(found, wellFormed);
    }),
    { numRuns: 200 },
  );
});

test("joins data lines and drops an unfinished event", async () => {
  const text = "data:a\ndata: b\n\nevent: delta\ndata: c\n";
  assert.deepEqual(await read(new TextEncoder().encode(text), []), [{ name: "", data: "a\nb" }]);
});

test("limits the size of an event", async () => {
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(1_048_576).fill(97)),
  });
  await assert.rejects(all(body), RangeError);
});
