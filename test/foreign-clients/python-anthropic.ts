import type { PythonRequest } from "./python-requests.ts";
import { ASK, CITY, EXTRACT, ORDER, USER } from "./python-schemas.ts";

const TEXT = [{ type: "text", text: ASK }];
export const TOOL = { name: "get_weather", description: "The weather of a city.", input_schema: CITY };
const SCHEMA_TOOL = { name: "Order", description: EXTRACT, input_schema: ORDER };

export const MESSAGES: readonly Omit<PythonRequest, "path">[] = [
  {
    client: "anthropic, create",
    wants: "text",
    body: { max_tokens: 1024, messages: [USER], model: "claude-sonnet-4-5" },
  },
  {
    client: "anthropic, stream with thinking and a cached prefix",
    wants: "text",
    body: {
      max_tokens: 4096,
      messages: [{ role: "user", content: [{ ...TEXT[0], cache_control: { type: "ephemeral" } }] }],
      model: "claude-sonnet-4-5",
      system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral", ttl: "1h" } }],
      thinking: { type: "enabled", budget_tokens: 1024 },
      stream: true,
    },
  },
  {
    client: "anthropic, second step of a loop with tools, after thoughts",
    wants: "text",
    body: {
      max_tokens: 1024,
      messages: [
        { role: "user", content: ASK },
        {
          role: "assistant",
          content: [
            { signature: "EqQB", thinking: "I need the weather.", type: "thinking" },
            { citations: null, text: "I look.", type: "text" },
            {
              id: "toolu_1",
              caller: { type: "direct" },
              input: { city: "Oslo" },
              name: "get_weather",
              type: "tool_use",
            },
          ],
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "rain" }] },
      ],
      model: "claude-sonnet-4-5",
      tools: [TOOL],
    },
  },
  {
    client: "anthropic, tools whose arguments Anthropic defines",
    wants: "call",
    body: {
      max_tokens: 1024,
      messages: [USER],
      model: "claude-sonnet-4-5",
      tool_choice: { type: "any" },
      tools: [
        { type: "bash_20250124", name: "bash" },
        { type: "text_editor_20250728", name: "str_replace_based_edit_tool" },
        { type: "memory_20250818", name: "memory" },
        TOOL,
      ],
    },
  },
  {
    client: "instructor, mode ANTHROPIC_TOOLS",
    wants: "call",
    body: {
      max_tokens: 1024,
      messages: [{ role: "user", content: ASK }],
      model: "claude-sonnet-4-5",
      tools: [SCHEMA_TOOL],
      tool_choice: { type: "tool", name: "Order" },
    },
  },
  {
    client: "Pydantic AI, calls in two messages and a tool that a search finds",
    wants: "text",
    body: {
      max_tokens: 4096,
      messages: [
        { role: "user", content: TEXT },
        {
          role: "assistant",
          content: [{ id: "toolu_1", input: { city: "Oslo" }, name: "get_weather", type: "tool_use" }],
        },
        {
          role: "assistant",
          content: [{ id: "toolu_2", input: { city: "Rome" }, name: "get_weather", type: "tool_use" }],
        },
        {
          role: "user",
          content: [
            { content: [{ text: "rain", type: "text" }], is_error: false, tool_use_id: "toolu_1", type: "tool_result" },
            {
              content: [{ tool_name: "get_time", type: "tool_reference" }],
              is_error: false,
              tool_use_id: "toolu_2",
              type: "tool_result",
            },
          ],
        },
      ],
      model: "claude-sonnet-4-5",
      stream: false,
      tool_choice: { type: "auto" },
      tools: [
        { ...TOOL, defer_loading: true },
        { name: "tool_search_tool_bm25", type: "tool_search_tool_bm25_20251119" },
      ],
    },
  },
  {
    client: "Pydantic AI, a conversation in which another service ran tools",
    wants: "text",
    body: {
      max_tokens: 4096,
      messages: [
        { role: "user", content: TEXT },
        {
          role: "assistant",
          content: [
            { id: "srvtoolu_1", input: { query: "weather" }, name: "tool_search_tool_bm25", type: "server_tool_use" },
            {
              content: {
                tool_references: [{ tool_name: "get_weather", type: "tool_reference" }],
                type: "tool_search_tool_search_result",
              },
              tool_use_id: "srvtoolu_1",
              type: "tool_search_tool_result",
            },
            { id: "mcptoolu_1", input: {}, name: "ask", server_name: "docs", type: "mcp_tool_use" },
            {
              content: [{ text: "rain", type: "text" }],
              is_error: false,
              tool_use_id: "mcptoolu_1",
              type: "mcp_tool_result",
            },
            { text: "Rain.", type: "text" },
          ],
        },
        { role: "user", content: [{ type: "text", text: "And in Rome?" }] },
      ],
      model: "claude-sonnet-4-5",
      stream: true,
    },
  },
];
