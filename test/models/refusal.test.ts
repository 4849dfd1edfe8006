import assert from "node:assert/strict";
import { APICallError } from "@ai-sdk/provider";
import { test } from "vitest";
import { refusalOf } from "../../src/models/refusal.ts";
import { call } from "./fake-model.ts";

const FULL = call({ temperature: 1, stopSequences: ["x"], maxOutputTokens: 1, responseFormat: { type: "json" } });

function refusal(message: string, param?: string, statusCode = 400) {
  const data = param === undefined ? undefined : { error: { message, param } };
  return refusalOf(new APICallError({ message, url: "u", requestBodyValues: {}, statusCode, data }), FULL);
}

test("the vendors' own words", () => {
  const cases: [message: string, param: string | undefined, expected: ReturnType<typeof refusalOf>][] = [
    [
      "Unsupported parameter: 'stop' is not supported with this model.",
      "stop",
      { option: "stopSequences", always: true },
    ],
    [
      "Unsupported value: 'temperature' does not support 0.2 with this model.",
      "temperature",
      { option: "temperature", always: true },
    ],
    ["max_tokens is too large: 99999.", "max_tokens", { option: "maxOutputTokens", always: false }],
    [
      "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.",
      "max_tokens",
      { option: "maxOutputTokens", always: false },
    ],
    ["temperature: range: 0..1", undefined, { option: "temperature", always: false }],
    ["`temperature` is deprecated for this model.", undefined, { option: "temperature", always: true }],
    ["'response_format.type' must be 'json_schema' or 'text'", undefined, { option: "responseFormat", always: false }],
    ["Invalid schema for response_format 'answer'", "response_format", { option: "responseFormat", always: false }],
    ["Request contains an invalid argument.", undefined, { option: undefined, always: false }],
    ["The temperature of the prompt is too long", "messages", { option: undefined, always: false }],
  ];
  for (const [message, param, expected] of cases) assert.deepEqual(refusal(message, param), expected, message);
});

test("only options that the call has, only refusals", () => {
  const error = new APICallError({ message: "temperature", url: "u", requestBodyValues: {}, statusCode: 422 });
  assert.equal(refusalOf(error, call())?.option, undefined);
  assert.equal(refusal("temperature", undefined, 500), undefined);
  assert.equal(refusalOf(new Error("temperature"), FULL), undefined);
});
