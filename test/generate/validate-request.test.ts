import assert from "node:assert/strict";
import { describe } from "vitest";
import { test as base } from "../helpers/fixtures.ts";

const SCHEMA = { type: "object", properties: { a: { type: "string" } }, required: ["a"], additionalProperties: false };
const FORMAT = { type: "json_schema", schema: SCHEMA };
const SHAPES = ["text", "extract", "summary", "recommendation", "tradeoffs", "decision"];
const PATHS = ["/v1/generate", "/v1/generate:stream"];
const turn = (role: string, content = "a") => ({ role, content });
const file = { name: "a.txt", media_type: "text/plain", data: "aGk=" };

const test = base
  .extend("script", { scope: "file" }, { text: '{"a":"b"}' })
  .extend("shared", { scope: "file" }, async ({ serviceOfFile: service, vendorOfFile: vendor }) => {
    /** Sends a body to both endpoints and expects the same refusal, no call of a vendor and no record. */
    const refuses = async (body: unknown, field: string, message: RegExp, code = "invalid_request", paths = PATHS) => {
      for (const path of paths) {
        const calls = vendor.calls.length;
        const response = await service.post(path, body);
        const text = await response.text();
        assert.equal(response.status, 422, `${JSON.stringify(body).slice(0, 200)}: ${text}`);
        const failure = JSON.parse(text);
        assert.deepEqual(Object.keys(failure), ["code", "message", "request_id", "field"]);
        assert.deepEqual([failure.code, failure.field], [code, field]);
        assert.match(failure.message, message);
        assert.equal(vendor.calls.length, calls);
      }
    };
    const takes = async (body: unknown, paths = PATHS) => {
      for (const path of paths) {
        const response = await service.post(path, body);
        const text = await response.text();
        assert.equal(response.status, 200, `${JSON.stringify(body).slice(0, 200)}: ${text}`);
      }
    };
    return { refuses, takes };
  });

describe("validates requests", () => {
  test("requires exactly one of prompt and messages, and not empty", async ({ shared: { refuses, takes } }) => {
    const either = /exactly one of prompt and messages/;
    for (const body of [
      {},
      { prompt: "" },
      { messages: [] },
      { prompt: null },
      { prompt: "", messages: [] },
      { system: "a" },
    ]) {
      await refuses(body, "prompt", either);
    }
    await refuses({ prompt: "a", messages: [turn("user")] }, "prompt", either);
    await refuses({ messages: [turn("user", ""), turn("assistant", "")] }, "messages", /must have content/);
    await takes({ prompt: "a", messages: [] });
    await takes({ prompt: null, messages: [turn("user")] });
    await takes({ messages: [turn("user", ""), turn("user")] });
    await takes({ messages: [turn("system")] });
    await takes({ prompt: " " });
  });

  test("limits the prompt to 200,000 code points, and neither system text nor stop sequences", async ({
    shared: { refuses, takes },
  }) => {
    const emoji = "😀".repeat(200_000);
    await takes({ prompt: emoji, system: "é".repeat(200_001) }, ["/v1/generate"]);
    await takes({ prompt: "a", stop_sequences: [emoji, "b".repeat(100_000)] });
    await refuses({ prompt: `${emoji}a` }, "prompt", /200,000 characters/);
    await refuses({ prompt: "a".repeat(200_001) }, "prompt", /200,000 characters/);
    await takes({ messages: [turn("user", "a ".repeat(150_000))] }, ["/v1/generate"]);
  });

  test("limits a request to 40 messages, 5 attachments and 4 stop sequences", async ({
    shared: { refuses, takes },
  }) => {
    const times = <T>(count: number, item: T) => Array.from({ length: count }, () => item);
    await takes({ messages: times(40, turn("user")) });
    await refuses({ messages: times(41, turn("user")) }, "messages", /40 items/);
    await takes({ prompt: "a", attachments: times(5, file) });
    await refuses({ prompt: "a", attachments: times(6, file) }, "attachments", /5 files/);
    await takes({ prompt: "a", stop_sequences: ["w", "x", "y", "z"] });
    await refuses({ prompt: "a", stop_sequences: ["v", "w", "x", "y", "z"] }, "stop_sequences", /4 strings/);
  });

  test("refuses an empty stop sequence", async ({ shared: { refuses } }) => {
    await refuses({ prompt: "a", stop_sequences: ["x", ""] }, "stop_sequences[1]", /empty/);
  });

  test("requires a known type and content of an attachment", async ({ shared: { refuses, takes } }) => {
    for (const media_type of ["text/markdown", "TEXT/CSV", "application/json", "text/html", "application/xml"]) {
      await takes({ prompt: "a", attachments: [{ ...file, media_type }] }, ["/v1/generate"]);
    }
    // A known type, which is then checked against the bytes.
    for (const media_type of ["application/pdf", "image/png", "image/jpeg", "image/webp", "image/gif", "IMAGE/PNG"]) {
      const attachments = [{ ...file, media_type }];
      await refuses({ prompt: "a", attachments }, "attachments[0].media_type", /but the content is not of this type/);
    }
    await takes({ prompt: "a", attachments: [{ media_type: "text/plain", data: "aGk=" }] });
    await refuses(
      { prompt: "a", attachments: [file, { ...file, media_type: "video/mp4" }] },
      "attachments[1].media_type",
      /must be one of/,
    );
    await refuses({ prompt: "a", attachments: [{ ...file, data: "" }] }, "attachments[0].data", /empty/);
    const messages = [turn("user"), turn("assistant"), turn("user")];
    await takes({ messages, attachments: [{ ...file, message: 0 }, file] }, ["/v1/generate"]);
    for (const message of [-1, 1, 3])
      await refuses({ messages, attachments: [{ ...file, message }] }, "attachments[0].message", /the role "user"/);
    await refuses({ prompt: "a", attachments: [{ ...file, message: 0 }] }, "attachments[0].message", /leave it out/);
    await refuses(
      { prompt: "a", attachments: [{ ...file, name: "x".repeat(256) }] },
      "attachments[0].name",
      /255 characters/,
    );
  });

  test("limits max_tokens to 1 to 32,000 and temperature to 0.0 to 2.0", async ({ shared: { refuses, takes } }) => {
    for (const max_tokens of [1, 2.0, 32_000]) await takes({ prompt: "a", max_tokens });
    for (const max_tokens of [0, -1, 32_001, 2 ** 31, 2 ** 32 + 5, -(2 ** 40), 1e300])
      await refuses({ prompt: "a", max_tokens }, "max_tokens", /1 to 32000|1 to 32,000/);
    for (const max_tokens of [1.5, "1", true, [1], {}])
      await refuses({ prompt: "a", max_tokens }, "max_tokens", /whole number/);
    for (const temperature of [0, -0, 0.7, 2]) await takes({ prompt: "a", temperature });
    for (const temperature of [-0.001, 2.001, 1e308])
      await refuses({ prompt: "a", temperature }, "temperature", /0\.0 to 2\.0/);
    await refuses('{"prompt":"a","temperature":1e999}', "temperature", /number/);
  });

  test("gives the path of a field with a wrong type", async ({ shared: { refuses } }) => {
    await refuses({ prompt: 5 }, "prompt", /string/);
    await refuses(
      { messages: [turn("user"), { role: "function", content: "a" }] },
      "messages[1].role",
      /"system", "user", "assistant"/,
    );
    await refuses({ messages: [{ role: "user", content: ["a"] }] }, "messages[0].content", /string/);
    await refuses({ messages: [{ role: "user" }] }, "messages[0].content", /required/);
    await refuses({ prompt: "a", effort: "max" }, "effort", /"auto", "low", "medium", "high"/);
    await refuses({ prompt: "a", output_shape: "json" }, "output_shape", /"auto", "text", "extract"/);
    await refuses({ prompt: "a", response_format: "text" }, "response_format", /object/);
    await refuses({ prompt: "a", response_format: { type: "xml" } }, "response_format.type", /"text", "json_schema"/);
    await refuses({ prompt: "a", web_search: "yes" }, "web_search", /true or false/);
    await refuses({ prompt: "a", stop_sequences: [1] }, "stop_sequences[0]", /string/);
  });

  test("checks fields first, then their combination, then the schema", async ({ shared: { refuses } }) => {
    const bad = { type: "json_schema", schema: { type: "array" } };
    await refuses({ prompt: "a", temperature: 3, output_shape: "text", response_format: bad }, "temperature", /2\.0/);
    await refuses(
      { prompt: "a", output_shape: "text", response_format: bad },
      "output_shape",
      /auto/,
      "invalid_request",
      ["/v1/generate"],
    );
    await refuses(
      { prompt: "a", response_format: bad },
      "response_format.schema",
      /object/,
      "invalid_response_schema",
      ["/v1/generate"],
    );
  });

  test("refuses other values of output_shape than auto with a JSON Schema", async ({ shared: { refuses, takes } }) => {
    await takes({ prompt: "a", response_format: FORMAT }, ["/v1/generate"]);
    await takes({ prompt: "a", response_format: FORMAT, output_shape: "auto" }, ["/v1/generate"]);
    await takes({ prompt: "a", response_format: FORMAT, output_shape: null, stop_sequences: null, continue: null }, [
      "/v1/generate",
    ]);
    for (const output_shape of SHAPES) {
      await refuses(
        { prompt: "a", response_format: FORMAT, output_shape },
        "output_shape",
        /"auto"/,
        "invalid_request",
        ["/v1/generate"],
      );
    }
  });

  test("refuses stop_sequences and continue with a JSON Schema", async ({ shared: { refuses, takes } }) => {
    const only = ["/v1/generate"];
    await refuses(
      { prompt: "a", response_format: FORMAT, stop_sequences: ["x"] },
      "stop_sequences",
      /beside a JSON Schema/,
      "invalid_request",
      only,
    );
    await refuses(
      { prompt: "a", response_format: FORMAT, continue: true },
      "continue",
      /beside a JSON Schema/,
      "invalid_request",
      only,
    );
    const messages = [turn("user"), turn("assistant")];
    await refuses(
      { messages, response_format: FORMAT, continue: true },
      "continue",
      /beside a JSON Schema/,
      "invalid_request",
      only,
    );
    await takes({ prompt: "a", response_format: FORMAT, stop_sequences: [], continue: false }, only);
  });

  test("refuses to stream with a JSON Schema", async ({ shared: { refuses } }) => {
    for (const more of [{}, { output_shape: "extract" }, { stop_sequences: ["x"] }, { continue: true }]) {
      const body = { prompt: "a", response_format: FORMAT, ...more };
      await refuses(body, "response_format", /\/v1\/generate/, "structured_output_streaming_not_supported", [
        "/v1/generate:stream",
      ]);
    }
    const invalid = { prompt: "a", response_format: { type: "json_schema", schema: { type: "array" } } };
    await refuses(invalid, "response_format", /stream/, "structured_output_streaming_not_supported", [
      "/v1/generate:stream",
    ]);
  });

  test("gives path and keyword of a JSON Schema that is missing or unsupported", async ({ shared: { refuses } }) => {
    const only = ["/v1/generate"];
    const code = "invalid_response_schema";
    for (const schema of [undefined, null]) {
      await refuses(
        { prompt: "a", response_format: { type: "json_schema", schema } },
        "response_format.schema",
        /required/,
        code,
        only,
      );
    }
    for (const schema of [true, "{}", 5, []]) {
      await refuses(
        { prompt: "a", response_format: { type: "json_schema", schema } },
        "response_format.schema",
        /object/,
        code,
        only,
      );
    }
    const nested = { ...SCHEMA, properties: { a: { type: "array", items: { type: "string", pattern: "x" } } } };
    await refuses(
      { prompt: "a", response_format: { type: "json_schema", schema: nested } },
      "response_format.schema.properties.a.items",
      /"pattern"/,
      code,
      only,
    );
  });

  test('gives a text answer for response_format {"type":"text"}, and refuses it with a JSON shape', async ({
    service,
    shared: { refuses, takes },
  }) => {
    const response_format = { type: "text" };
    for (const output_shape of [undefined, "auto", "text"]) {
      const response = await service.post("/v1/generate", {
        prompt: "a",
        response_format,
        output_shape,
        stop_sequences: ["x"],
      });
      assert.equal(response.status, 200);
      assert.ok(!("structured" in ((await response.json()) as object)));
    }
    for (const output_shape of SHAPES.slice(1)) {
      await refuses({ prompt: "a", response_format, output_shape }, "output_shape", /JSON/);
    }
    // Only json_schema has a schema.
    await takes({ prompt: "a", response_format: { type: "text", schema: { type: "nonsense" } } });
  });

  test("requires an assistant's message at the end for continue", async ({ vendor, shared: { refuses, takes } }) => {
    const needs = /last one has the role "assistant"/;
    await refuses({ prompt: "a", continue: true }, "continue", needs);
    await refuses({ messages: [turn("assistant"), turn("user")], continue: true }, "continue", needs);
    await refuses({ messages: [turn("assistant"), turn("system")], continue: true }, "continue", needs);
    await takes({ prompt: "a", continue: false });
    const messages = [turn("user", "Count."), turn("assistant", "one, two,")];
    for (const [more, expected] of [
      [{ continue: true }, /Continue your last message exactly/],
      [{}, /Go on/],
    ] as const) {
      const sent = vendor.calls.length;
      await takes({ messages, ...more });
      const { body } = vendor.calls[sent] ?? assert.fail("not sent");
      assert.match(body, /one, two,/);
      assert.match(body, expected);
    }
    await takes({ messages, continue: true, stop_sequences: ["five"], output_shape: "extract" });
  });

  test("passes lone surrogates and control characters as text", async ({ vendor, shared: { takes } }) => {
    const sent = vendor.calls.length;
    await takes('{"prompt":"a\\ud800b\\u0000c\\u2028d"}', ["/v1/generate"]);
    assert.match(vendor.calls[sent]?.body ?? "", /a\ufffdb\\u0000c(\u2028|\\u2028)d/);
  });
});
