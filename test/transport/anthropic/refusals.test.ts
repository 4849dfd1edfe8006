import assert from "node:assert/strict";
import { describe } from "vitest";
import { Scope } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { adminOf } from "../../helpers/admin.ts";
import { test } from "../../helpers/fixtures.ts";

const PATH = "/v1/messages";
const HELLO = [{ role: "user", content: "Hello" }];
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async function refusal(response: Response) {
  const { status, headers } = response;
  const { type, error, request_id, ...rest } = (await response.json()) as Record<string, unknown>;
  assert.deepEqual([type, rest], ["error", {}]);
  assert.equal(request_id, headers.get("request-id"));
  assert.match(String(request_id), /^req_/);
  return { status, headers, ...(error as { type: string; message: string }) };
}

describe("a member", () => {
  test("that changes the answer and is not supported is refused with its name", async ({ service, vendor }) => {
    const user = (...content: object[]) => [{ role: "user", content }];
    const image = (source: object) => user({ type: "image", source });
    const file = (source: object, more = {}) => user({ type: "document", source, ...more });
    const search = { type: "web_search_20250305", name: "web_search" };
    const schema = (of: object) => ({ output_config: { format: { type: "json_schema", ...of } } });
    const cases: [body: object, member: string][] = [
      [{ max_tokens: undefined }, "max_tokens"],
      [{ max_tokens: 0 }, "max_tokens"],
      [{ max_tokens: "1" }, "max_tokens"],
      [{ container: "c" }, "container"],
      [{ tools: [{ type: "code_execution_20260120", name: "code_execution" }] }, "tools[0].type"],
      [{ tools: [{ type: "computer_20250124", name: "computer" }] }, "tools[0].type"],
      [{ tools: [{ name: "a b", input_schema: { type: "object" } }] }, "tools[0].name"],
      [
        {
          tools: [search, { name: "f", input_schema: 1 }],
        },
        "tools[1].input_schema",
      ],
      [{ tools: [{ ...search, allowed_domains: ["example.com"] }] }, "tools[0].allowed_domains"],
      [{ tools: [{ ...search, blocked_domains: ["example.com"] }] }, "tools[0].blocked_domains"],
      [{ tool_choice: { type: "any" } }, "tool_choice"],
      [{ tool_choice: { type: "tool" } }, "tool_choice.name"],
      [
        { messages: user({ type: "tool_result", tool_use_id: "t", content: "a" }) },
        "messages[0].content[0].tool_use_id",
      ],
      [
        { messages: user({ type: "tool_result", tool_use_id: "", content: "a" }) },
        "messages[0].content[0].tool_use_id",
      ],
      [{ messages: user({ type: "tool_use", id: "t", name: "f", input: {} }) }, "messages[0].content[0]"],
      [
        { messages: [...HELLO, { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: {} }] }] },
        "messages[1].content[0]",
      ],
      [{ mcp_servers: [{ type: "url", url: "https://example.com" }] }, "mcp_servers"],
      [{ inference_geo: "eu" }, "inference_geo"],
      [{ messages: [] }, "messages"],
      [{ messages: [{ role: "user", content: "" }] }, "messages"],
      [{ messages: [{ role: "tool", content: "a" }] }, "messages[0].role"],
      [{ messages: [{ role: "user", content: 1 }] }, "messages[0].content"],
      [{ messages: user({ type: "container_upload", file_id: "f" }) }, "messages[0].content[0].type"],
      [{ messages: image({ type: "url", url: "https://example.com/a.png" }) }, "messages[0].content[0].source.type"],
      [{ messages: image({ type: "file", file_id: "f" }) }, "messages[0].content[0].source.type"],
      [{ messages: image({ type: "text", data: "a" }) }, "messages[0].content[0].source.type"],
      [
        { messages: image({ type: "base64", media_type: "image/tiff", data: "aGk=" }) },
        "messages[0].content[0].source.media_type",
      ],
      [
        { messages: image({ type: "base64", media_type: "image/png", data: "a.b" }) },
        "messages[0].content[0].source.data",
      ],
      [
        { messages: file({ type: "text", media_type: "text/html", data: "a" }) },
        "messages[0].content[0].source.media_type",
      ],
      [
        { messages: file({ type: "content", content: [{ type: "thinking" }] }) },
        "messages[0].content[0].source.content[0].type",
      ],
      [{ messages: file({ type: "text", data: "a" }, { title: "a".repeat(256) }) }, "messages[0].content[0].title"],
      [
        {
          messages: [
            ...HELLO,
            { role: "assistant", content: [{ type: "document", source: { type: "text", data: "a" } }] },
          ],
        },
        "messages[1].content[0]",
      ],
      [
        { system: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } }] },
        "system[0].type",
      ],
      [{ temperature: 3 }, "temperature"],
      [{ stop_sequences: ["a", "b", "c", "d", "e"] }, "stop_sequences"],
      [{ stop_sequences: ["a", ""] }, "stop_sequences[1]"],
      [{ thinking: { type: "deep" } }, "thinking.type"],
      [{ output_config: { effort: "extreme" } }, "output_config.effort"],
      [{ output_config: { format: { type: "grammar" } } }, "output_config.format.type"],
      [schema({}), "output_config.format.schema"],
      [
        schema({ schema: { type: "object", properties: { a: { type: "string", contentEncoding: "base64" } } } }),
        "output_config.format.schema.properties.a",
      ],
      [
        { ...schema({ schema: { type: "object" } }), output_format: { type: "json_schema", schema: {} } },
        "output_format",
      ],
      [{ ...schema({ schema: { type: "object" } }), stop_sequences: ["a"] }, "stop_sequences"],
      [
        { ...schema({ schema: { type: "object" } }), messages: [...HELLO, { role: "assistant", content: "{" }] },
        "messages[1]",
      ],
    ];
    for (const [body, member] of cases) {
      const name = JSON.stringify(body).slice(0, 100);
      const request = { max_tokens: 100, messages: HELLO, ...body };
      const found = await refusal(await service.post(PATH, request));
      assert.deepEqual([found.status, found.type], [400, "invalid_request_error"], `${name}: ${found.message}`);
      assert.ok(found.message.includes(member), `${name}: ${found.message}`);
      assert.doesNotMatch(found.message, /attachments|response_format\.\w|tool_call|parameters|role "tool"/);
      // The same in a body that a thread reads.
      const large = await refusal(await service.post(PATH, { ...request, note: "a".repeat(20_000) }));
      assert.deepEqual([large.status, large.message], [400, found.message], name);
    }
    assert.equal(vendor.calls.length, 0);
  });
});

describe("failures", () => {
  test("have Anthropic's statuses, types and headers, before and after the door is known", async ({
    service,
    vendor,
  }) => {
    const body = { max_tokens: 100, messages: HELLO };
    const post = (sent: unknown, headers = {}) => service.post(PATH, sent, headers);
    vendor.always({ status: 500 });
    const cases: [() => Promise<Response>, status: number, type: string][] = [
      [() => post("{"), 400, "invalid_request_error"],
      [() => post(body, { "x-api-key": "ck_unknown" }), 401, "authentication_error"],
      [() => service.post("/v1/messages/batches", {}), 404, "not_found_error"],
      [() => service.get("/v1/unknown", { "anthropic-version": "2023-06-01" }), 404, "not_found_error"],
      [() => service.get(PATH), 405, "invalid_request_error"],
      [() => post(`{"stop_sequences":[${'"a",'.repeat(100_000)}"a"]}`), 413, "request_too_large"],
      [() => post(body, { "content-type": "text/plain" }), 415, "invalid_request_error"],
      [() => post(body), 502, "api_error"],
    ];
    for (const [call, status, type] of cases) {
      const found = await refusal(await call());
      assert.deepEqual([found.status, found.type], [status, type], found.message);
      const isFinal = status < 500 ? "false" : null;
      assert.equal(found.headers.get("x-should-retry"), isFinal, found.message);
      assert.equal(found.headers.get("www-authenticate"), status === 401 ? "Bearer" : null);
    }
  });

  test("of a prompt that is too long begin as Anthropic's, because agents then shorten the conversation", async ({
    service,
    vendor,
  }) => {
    vendor.always({ status: 400, error: { code: "context_length_exceeded", message: "maximum context length" } });
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } };
    // The last one leaves no room for the image.
    const contents = ["Hello", "a ".repeat(2_500_000), [image, { type: "text", text: "a ".repeat(400_000) }]];
    for (const content of contents) {
      const response = await service.post(PATH, { max_tokens: 100, messages: [{ role: "user", content }] });
      const { status, type, message } = await refusal(response);
      assert.deepEqual([status, type], [400, "invalid_request_error"], message);
      assert.match(message, /^prompt is too long: The /);
    }
  });

  test("of images that only a shorter conversation can bring below 15 MB begin so too", async ({ service }) => {
    const data = Buffer.concat([Buffer.from(PNG, "base64"), Buffer.alloc(8_000_000)]).toString("base64");
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data } };
    const [first, reply, last] = [
      { role: "user", content: [image] },
      { role: "assistant", content: "A dot." },
      { role: "user", content: [image, { type: "text", text: "And this?" }] },
    ];
    const ask = async (...messages: unknown[]) => refusal(await service.post(PATH, { max_tokens: 100, messages }));
    const found = await ask(first, reply, last);
    assert.deepEqual([found.status, found.type], [400, "invalid_request_error"]);
    assert.match(found.message, /^prompt is too long: The images of the conversation /);
    // A shorter conversation does not help.
    const alone = await ask({ role: "user", content: [image, image] });
    assert.equal(alone.status, 400);
    assert.match(alone.message, /^messages\[0\]\.content\[1\]\.source\.data brings the images to more than 15 MB/);
  });

  test("without credit have 402, and without the scope 403", async ({ service, database: { pool } }) => {
    const { workspaces, keys } = adminOf(pool);
    await workspaces.createWorkspace({ name: "messages-poor" });
    const poor = await keys.createKey({ workspace: "messages-poor" });
    const body = { max_tokens: 100, messages: HELLO };
    const found = await refusal(await service.post(PATH, body, { "x-api-key": poor.secret }));
    assert.deepEqual([found.status, found.type], [402, "billing_error"]);
    const metrics = await keys.createKey({ workspace: "messages-poor", scopes: [Scope.METRICS] });
    const scope = await refusal(await service.post(`${PATH}/count_tokens`, body, { "x-api-key": metrics.secret }));
    assert.deepEqual([scope.status, scope.type], [403, "permission_error"]);
  });
});
