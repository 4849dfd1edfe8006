import assert from "node:assert/strict";
import { test as base } from "../helpers/fixtures.ts";
import { readEvents } from "../helpers/service.ts";
import { startVendor, type VendorCall } from "../helpers/vendors.ts";

/** A service whose models speak OpenAI's Responses API. */
const test = base.extend("vendorOfFile", { scope: "file" }, async ({ script }, { onCleanup }) => {
  const vendor = await startVendor("responses", script);
  onCleanup(() => vendor.close());
  return vendor;
});

const LOW = { prompt: "What is the weather in Oslo?", effort: "low" };
const WEATHER = { name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } } } };
const CALL = { name: "get_weather", arguments: '{"city":"Oslo"}' };

interface Answer {
  answer?: string;
  finish_reason?: string;
  structured?: unknown;
  code?: string;
  tool_calls?: unknown[];
  usage?: { input_tokens?: number; output_tokens?: number; cached_tokens?: number };
}

const read = async (response: Response) => (await response.json()) as Answer;

test("lets models reason in a call with tools, at each level, and keeps nothing at the vendor", async ({
  service,
  vendor,
}) => {
  // Like gpt-6-astra.
  vendor.always(({ json }) => {
    const { effort } = (json.reasoning ?? {}) as { effort?: string };
    const message = `Unsupported value: '${effort}' is not supported with the 'gpt-6-astra' model.`;
    const error = { message, type: "invalid_request_error", param: "reasoning.effort", code: "unsupported_value" };
    return effort === "none" || effort === "minimal" ? { status: 400, error } : { text: [], calls: [CALL] };
  });
  for (const effort of ["low", "medium", "high"]) {
    const { finish_reason, tool_calls } = await read(
      await service.post("/v1/generate", { ...LOW, effort, tools: [WEATHER] }),
    );
    assert.deepEqual([finish_reason, tool_calls?.length], ["tool_calls", 1], effort);
  }
  const efforts = vendor.calls.map(({ json }) => (json.reasoning as { effort?: string } | undefined)?.effort);
  assert.deepEqual([...new Set(efforts)], ["low", "medium"]);
  assert.ok(vendor.calls.every(({ json, path }) => json.store === false && json.tools && path === "/v1/responses"));
});

test("answers with strict JSON, and with any", async ({ service, vendor }) => {
  const schema = {
    type: "object",
    properties: { a: { type: "integer" } },
    required: ["a"],
    additionalProperties: false,
  };
  // As OpenAI demands it of any JSON: words of the instructions do not count.
  const says = ({ json }: VendorCall) => /json/i.test(JSON.stringify(json.input));
  const message = "Response input messages must contain the word 'json' in some form to use 'text.format'";
  vendor.always((call) =>
    says(call) ? { text: ['{"a"', ":1}"] } : { status: 400, error: { message, param: "text.format" } },
  );
  for (const [shape, type] of [
    [{ response_format: { type: "json_schema", schema } }, "json_schema"],
    [{ output_shape: "extract" }, "json_object"],
  ] as const) {
    const { structured, code } = await read(await service.post("/v1/generate", { ...LOW, ...shape }));
    assert.deepEqual([structured, code], [{ a: 1 }, undefined]);
    assert.match(vendor.calls.at(-1)?.body ?? "", new RegExp(`"text":\\{"format":\\{"type":"${type}"`));
  }
  assert.equal(vendor.calls.length, 2);
});

test("ends an answer before a stop sequence, which the vendor does not get", async ({ service, vendor }) => {
  vendor.always({ text: ["It rains. ST", "OP No."] });
  const request = { ...LOW, stop_sequences: ["STOP"] };
  const whole = await read(await service.post("/v1/generate", request));
  assert.deepEqual([whole.answer, whole.finish_reason], ["It rains. ", "stop"]);
  const events = await readEvents(await service.post("/v1/generate:stream", request));
  const text = events.map(({ event, data }) => (event === "delta" ? data.text : "")).join("");
  assert.deepEqual([text, events.at(-1)?.data.finish_reason], ["It rains. ", "stop"]);
  assert.ok(vendor.calls.every(({ body }) => !body.includes("STOP")));
});

test("bills its own count of the tokens, with the cached ones that the vendor reports", async ({ service, vendor }) => {
  vendor.always({ text: "It rains.", thinking: "Hm.", usage: { input: 900, cached: 4, output: 500, thoughts: 490 } });
  const { usage } = await read(await service.post("/v1/generate", LOW));
  const { data } = (await readEvents(await service.post("/v1/generate:stream", LOW))).at(-1) ?? {};
  for (const { input_tokens, output_tokens, cached_tokens } of [usage ?? {}, (data as Answer | undefined)?.usage ?? {}])
    assert.deepEqual([input_tokens, output_tokens, cached_tokens], [7, 3, 4]);
});

test("tries again after a failure that passes, and names those that do not", async ({ service, vendor }) => {
  const failed = (code: string) => {
    const response = { status: "failed", error: { code, message: "scripted" }, output: [] };
    return ({ streamed }: VendorCall) => ({
      raw: streamed ? `data: ${JSON.stringify({ type: "response.failed", response })}\n\n` : JSON.stringify(response),
    });
  };
  for (const path of ["/v1/generate", "/v1/generate:stream"]) {
    vendor.reset();
    vendor.reply(failed("server_error"));
    assert.equal((await service.post(path, LOW)).status, 200);
    for (const [code, status, named] of [
      ["invalid_prompt", 422, "content_refused"],
      ["context_length_exceeded", 422, "request_too_long"],
    ] as const) {
      vendor.always(failed(code));
      const response = await service.post(path, LOW);
      assert.deepEqual([response.status, (await read(response)).code], [status, named], path);
    }
  }
});
