import assert from "node:assert/strict";
import { test as base } from "../helpers/fixtures.ts";
import type { Reply } from "../helpers/vendors.ts";
import { PYTHON_REQUESTS, type PythonRequest } from "./python-requests.ts";

const OBJECT = '{"item":{"name":"bolt","count":1},"kind":"new","note":null}';
const CALL = { name: "get_weather", arguments: '{"city":"Oslo"}' };

/** What `openai` and `anthropic` for Python write into each head. */
const HEADERS = {
  "X-Stainless-Lang": "python",
  "X-Stainless-Package-Version": "2.9.0",
  "X-Stainless-OS": "Linux",
  "X-Stainless-Arch": "x64",
  "X-Stainless-Runtime": "CPython",
  "X-Stainless-Runtime-Version": "3.13.5",
  "X-Stainless-Async": "async:asyncio",
  "x-stainless-retry-count": "0",
  "x-stainless-read-timeout": "600",
  "Accept-Encoding": "gzip, deflate, br, zstd",
  Accept: "application/json",
};

const test = base.extend("send", ({ service }) => async ({ path, body }: PythonRequest) => {
  const isAnthropic = path.startsWith("messages");
  const response = await fetch(`${service.url}/v1/${path}${isAnthropic ? "?beta=true" : ""}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: {
      ...HEADERS,
      "Content-Type": "application/json",
      "User-Agent": isAnthropic ? "AsyncAnthropic/Python 0.75.0" : "AsyncOpenAI/Python 2.9.0",
      ...(isAnthropic
        ? { "x-api-key": service.apiKey, "anthropic-version": "2023-06-01", "anthropic-beta": "tools-2025-01-01" }
        : { Authorization: `Bearer ${service.apiKey}` }),
    },
  });
  return {
    status: response.status,
    notices: response.headers.get("x-chorus-notice") ?? "",
    text: await response.text(),
  };
});

function replyTo({ wants, client }: PythonRequest): Reply {
  if (wants === "object") return { text: OBJECT };
  if (wants === "text") return { text: ["Rain", " in Oslo."] };
  if (wants === "count") return {};
  return { calls: [client.startsWith("instructor") ? { name: "Order", arguments: OBJECT } : CALL] };
}

test.for(PYTHON_REQUESTS.map((request) => [`${request.path}: ${request.client}`, request] as const))(
  "%s",
  async ([, request], { send, vendor }) => {
    vendor.reply(replyTo(request));
    const { status, text, notices } = await send(request);
    assert.equal(status, 200, text);
    const codes = [...notices.matchAll(/([a-z_]+): /g)]
      .map(([, code]) => code)
      .filter((code) => code !== "unknown_model");
    assert.deepEqual([...new Set(codes)], request.notices ?? [], notices);
    // Text of a stream comes in pieces, and JSON in strings has backslashes.
    const plain = text.replaceAll("\\", "");
    if (request.wants === "text") assert.match(text, /Rain.* in Oslo\./s);
    else if (request.wants === "count") assert.ok(JSON.parse(text).input_tokens > 10);
    else if (request.wants === "object") assert.ok(plain.includes(OBJECT), text);
    else assert.match(plain, request.client.startsWith("instructor") ? /"Order".*bolt/s : /"get_weather".*Oslo/s);
  },
);

test("a tool whose arguments Anthropic defines reaches the model as a function, and its call comes back", async ({
  send,
  vendor,
}) => {
  const request = PYTHON_REQUESTS.find(({ client }) => client.endsWith("Anthropic defines")) ?? assert.fail();
  vendor.reply({ calls: [{ name: "memory", arguments: '{"command":"view","path":"/memories"}' }] });
  const { text } = await send(request);
  assert.deepEqual(JSON.parse(text).content, [
    {
      type: "tool_use",
      id: JSON.parse(text).content[0].id,
      name: "memory",
      input: { command: "view", path: "/memories" },
    },
  ]);
  const { tools } = (vendor.calls.at(-1) ?? assert.fail()).json as {
    tools: { function: { name: string; parameters: { required?: string[] } } }[];
  };
  assert.deepEqual(
    tools.map(({ function: { name, parameters } }) => [name, parameters.required]),
    [
      ["bash", []],
      ["str_replace_based_edit_tool", ["command", "path"]],
      ["memory", ["command"]],
      ["get_weather", ["city"]],
    ],
  );
});
