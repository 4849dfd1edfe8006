import assert from "node:assert/strict";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { test } from "vitest";
import { GenerateRequestSchema, Role } from "../../gen/chorus/v1/generation_pb.js";
import { createValueCounter } from "../../src/overload/value-count.ts";

/** Feeds the bytes to the counter in pieces that end at `cuts`. @returns the final count and the reported lengths */
function counted(bytes: Uint8Array, contentType: string, cuts: number[]): { count: number; lengths: number[] } {
  const lengths: number[] = [];
  const counter = createValueCounter(GenerateRequestSchema, contentType, (length) => lengths.push(length));
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  const counts = places.map((at, i) => counter(bytes.subarray(at, places[i + 1])));
  assert.deepEqual(
    counts,
    counts.toSorted((a, b) => a - b),
  );
  return { count: counts.at(-1) ?? 0, lengths };
}

function prefixed(...messages: Uint8Array[]): Uint8Array {
  return Buffer.concat(
    messages.flatMap((message) => {
      const prefix = Buffer.from([0x22, 0, 0, 0, 0]);
      prefix.writeUInt32BE(message.length, 1);
      return [prefix, message];
    }),
  );
}

const request = fc
  .record({
    prompt: fc.string({ maxLength: 300 }),
    messages: fc.array(fc.record({ role: fc.constantFrom(Role.USER, Role.ASSISTANT), content: fc.string() })),
    stopSequences: fc.array(fc.string()),
    temperature: fc.option(fc.double({ noNaN: true }), { nil: undefined }),
    maxTokens: fc.option(fc.integer(), { nil: undefined }),
    attachments: fc.array(fc.record({ name: fc.string(), data: fc.uint8Array() })),
    responseFormat: fc.option(
      fc.json().map((schema) => ({ format: { case: "jsonSchema", value: { schema } } })),
      {
        nil: undefined,
      },
    ),
  })
  .map((init) => create(GenerateRequestSchema, init as Parameters<typeof create<typeof GenerateRequestSchema>>[1]));

const cuts = fc.array(fc.nat(), { maxLength: 20 });

test("counts each field of a message and its nested messages once, for any split of the bytes", () => {
  fc.assert(
    fc.property(request, cuts, (message, places) => {
      const set = (fields: unknown[]) =>
        fields.filter((value) => value !== "" && value !== undefined && value !== 0).length;
      const expected =
        set([message.prompt]) +
        [message.temperature, message.maxTokens, message.responseFormat].filter((value) => value !== undefined).length +
        (message.responseFormat ? 2 : 0) +
        message.stopSequences.length +
        message.messages.reduce((sum, { role, content }) => sum + 1 + set([role, content]), 0) +
        message.attachments.reduce((sum, { name, data }) => sum + 1 + set([name]) + (data.length > 0 ? 1 : 0), 0);
      const bytes = toBinary(GenerateRequestSchema, message);
      assert.equal(counted(bytes, "application/proto", places).count, expected);
      const twice = counted(prefixed(bytes, bytes), "application/grpc+proto", places);
      assert.deepEqual(twice, { count: 2 * expected, lengths: [bytes.length, bytes.length] });
    }),
  );
});

test("counts opening brackets and separators of JSON outside strings, for any split of the bytes", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        request.map((message) => toJsonString(GenerateRequestSchema, message)),
      ),
      cuts,
      (text, places) => {
        const bare = text.replace(/"(?:[^"\\]|\\.)*"/g, "");
        const expected = [...bare].filter((character) => "[{,".includes(character)).length;
        const bytes = Buffer.from(text);
        assert.equal(counted(bytes, "application/json", places).count, expected);
        const { count, lengths } = counted(prefixed(bytes, bytes), "application/connect+json", places);
        assert.deepEqual([count, lengths], [2 * expected, [bytes.length, bytes.length]]);
      },
    ),
  );
});

test("terminates without an error for invalid bytes", () => {
  const types = ["application/proto", "application/json", "application/grpc", "application/connect+json"];
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 500 }), fc.constantFrom(...types), cuts, (bytes, type, places) => {
      assert.ok(counted(bytes, type, places).count <= bytes.length);
    }),
  );
});
