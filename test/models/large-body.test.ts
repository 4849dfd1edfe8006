import assert from "node:assert/strict";
import fc from "fast-check";
import { expect, test } from "vitest";
import { LargeParts } from "../../src/models/large-body.ts";
import type { Prompt } from "../../src/models/port/model.ts";

/** A body as a wire format writes it. */
const write = ({ system, messages }: Prompt) =>
  JSON.stringify({
    system,
    messages: messages.map(({ text, images = [] }) => [
      text,
      ...images.map(({ data }) => `data:${Buffer.from(data).toString("base64")}`),
    ]),
  });

const unit = fc.constantFrom("a", '"', "\n", "ß", "東", "😀", "\ud800", "\udc00", "\u2028", "\\");
const text = fc
  .tuple(fc.array(unit, { minLength: 1, maxLength: 4 }), fc.constantFrom(1, 9_000, 30_000, 70_001))
  .map(([units, count]) => units.join("").repeat(count));
const image = fc
  .tuple(fc.uint8Array({ minLength: 1, maxLength: 3 }), fc.constantFrom(1, 60_000, 400_001))
  .map(([bytes, count]) => ({ mediaType: "image/png", data: Buffer.from(bytes).toString("latin1").repeat(count) }))
  .map(({ mediaType, data }) => ({ mediaType, data: Buffer.from(data, "latin1") }));
const prompt: fc.Arbitrary<Prompt> = fc.record({
  system: text,
  messages: fc.array(
    fc.record({
      role: fc.constantFrom("user" as const, "assistant" as const),
      text,
      images: fc.array(image, { maxLength: 2 }),
    }),
    { maxLength: 2 },
  ),
});

test("writes the same body as without slices, in UTF-8", async () => {
  await fc.assert(
    fc.asyncProperty(prompt, async (prompt) => {
      const parts = new LargeParts();
      const body = await parts.fill(write(parts.mark(prompt)));
      const bytes = typeof body === "string" ? Buffer.from(body) : Buffer.concat(body);
      assert.ok(bytes.equals(Buffer.from(write(prompt))));
    }),
    { numRuns: 40 },
  );
});

test("leaves a small prompt as it is, and marks equal prompts in the same way", () => {
  const parts = new LargeParts();
  const small: Prompt = { system: "s", messages: [{ role: "user", text: "t" }] };
  assert.equal(parts.mark(small), small);
  const large: Prompt = { system: "s".repeat(100_000), messages: [] };
  expect(parts.mark(large)).toEqual(parts.mark(large));
  assert.ok(write(parts.mark(large)).length < 10_000);
});
