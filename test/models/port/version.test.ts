import assert from "node:assert/strict";
import { test } from "vitest";
import { isVersionOf } from "../../../src/models/port/version.ts";

test("knows a model and its dated versions", () => {
  const versions = [
    ["gpt-4o", "gpt-4o"],
    ["gpt-4o-2024-08-06", "gpt-4o"],
    ["gpt-4-0613", "gpt-4"],
    ["claude-sonnet-4-5-20250929", "claude-sonnet-4-5"],
    ["claude-3-5-sonnet-20241022", "claude-3-5-sonnet-latest"],
    ["anthropic.claude-3-5-sonnet-20240620-v1:0", "anthropic.claude-3-5-sonnet"],
    ["gemini-1.5-pro-002", "models/gemini-1.5-pro"],
    ["gemini-2.5-flash-09-2025", "gemini-2.5-flash"],
    ["openai/gpt-4o-2024-05-13", "gpt-4o"],
    ["llama3.1:latest", "llama3.1"],
    ["Qwen/Qwen2.5-72B-Instruct", "qwen2.5-72b-instruct"],
  ] as const;
  for (const [name, base] of versions) assert.ok(isVersionOf(name, base), name);
});

test("tells other products apart", () => {
  const others = [
    ["gpt-4o-mini", "gpt-4o"],
    ["gpt-4o-mini-2024-07-18", "gpt-4o"],
    ["gemini-1.5-pro-exp-0827", "gemini-1.5-pro"],
    ["claude-opus-5-5", "claude-opus-5"],
    ["claude-opus-5", "claude-opus-5-5"],
    ["o1-preview", "o1"],
    ["gpt-4o", "gpt-4o-2024-08-06"],
    ["", "gpt-4o"],
  ] as const;
  for (const [name, base] of others) assert.ok(!isVersionOf(name, base), name);
});
