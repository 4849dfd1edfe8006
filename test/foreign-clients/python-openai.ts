import type { PythonRequest } from "./python-requests.ts";
import { ASK, CITY_STRICT, EXTRACT, FUNCTION, ORDER, ORDER_STRICT, USER } from "./python-schemas.ts";

const CALL = { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city": "Oslo"}' } };
const REASONING = { id: "rs_1", summary: [], encrypted_content: "gAAA", type: "reasoning" };

export const CHAT: readonly Omit<PythonRequest, "path">[] = [
  { client: "openai, create", wants: "text", body: { messages: [USER], model: "gpt-4o" } },
  {
    client: "openai, create with stream and include_usage",
    wants: "text",
    body: { messages: [USER], model: "gpt-4o", stream: true, stream_options: { include_usage: true } },
  },
  {
    client: "openai, second step of a loop with tools",
    wants: "text",
    body: {
      messages: [
        USER,
        {
          content: null,
          refusal: null,
          role: "assistant",
          annotations: [],
          audio: null,
          function_call: null,
          tool_calls: [CALL],
        },
        { role: "tool", tool_call_id: "call_1", content: "rain" },
      ],
      model: "gpt-4o",
      tools: [{ type: "function", function: FUNCTION }],
    },
  },
  {
    client: "openai, parse with a model of Pydantic's",
    wants: "object",
    body: {
      messages: [USER],
      model: "gpt-4o",
      response_format: { type: "json_schema", json_schema: { schema: ORDER_STRICT, name: "Order", strict: true } },
      stream: false,
    },
  },
  {
    client: "instructor, mode TOOLS",
    wants: "call",
    body: {
      messages: [USER],
      model: "gpt-4o-mini",
      tools: [{ type: "function", function: { name: "Order", description: EXTRACT, parameters: ORDER } }],
      tool_choice: { type: "function", function: { name: "Order" } },
    },
  },
  {
    client: "instructor, mode TOOLS after a failed validation",
    wants: "call",
    notices: ["no_effect"],
    body: {
      messages: [
        USER,
        {
          content: "",
          role: "assistant",
          tool_calls: [{ id: "call_1", function: { arguments: '{"kind":"new"}', name: "Order" }, type: "function" }],
        },
        {
          role: "tool",
          tool_call_id: "call_1",
          name: "Order",
          content:
            "Validation Error found:\n1 validation error for Order\nRecall the function correctly, fix the errors",
        },
      ],
      model: "gpt-4o-mini",
      tools: [{ type: "function", function: { name: "Order", description: EXTRACT, parameters: ORDER } }],
      tool_choice: { type: "function", function: { name: "Order" } },
    },
  },
  {
    client: "instructor, mode JSON",
    wants: "object",
    body: {
      messages: [
        {
          role: "system",
          content: `Provide the parsed objects in json that match this json_schema:\n\n${JSON.stringify(ORDER)}`,
        },
        {
          ...USER,
          content: `${ASK}\n\nReturn the correct JSON response within a \`\`\`json codeblock. not the JSON_SCHEMA`,
        },
      ],
      model: "gpt-4o-mini",
      response_format: { type: "json_object" },
    },
  },
  {
    client: "Pydantic AI, tools with an output tool",
    wants: "call",
    body: {
      messages: [{ content: "Be brief.", role: "system" }, USER],
      model: "gpt-4o",
      n: 1,
      parallel_tool_calls: true,
      stream: true,
      stream_options: { include_usage: true },
      tool_choice: "required",
      tools: [
        { function: { description: "", name: "get_weather", parameters: CITY_STRICT, strict: true }, type: "function" },
        {
          function: {
            description: "The final response which ends this conversation",
            name: "Order",
            parameters: ORDER,
          },
          type: "function",
        },
      ],
      top_p: 1,
    },
  },
];

export const RESPONSES: readonly Omit<PythonRequest, "path">[] = [
  { client: "openai, create", wants: "text", body: { input: ASK, model: "gpt-5.1" } },
  {
    client: "openai, stream with thoughts of an earlier answer",
    wants: "text",
    notices: ["no_effect"],
    body: {
      include: ["reasoning.encrypted_content"],
      input: [
        { content: "Hello", role: "user" },
        REASONING,
        {
          content: [{ annotations: [], text: "Hello.", type: "output_text", logprobs: [] }],
          id: "msg_1",
          role: "assistant",
          status: "completed",
          type: "message",
        },
        { content: ASK, role: "user" },
      ],
      instructions: "Be brief.",
      model: "gpt-5.1",
      reasoning: { effort: "low", summary: "auto" },
      stream: true,
    },
  },
  {
    client: "openai, parse with a model of Pydantic's",
    wants: "object",
    body: {
      input: [USER],
      model: "gpt-5.1",
      text: { format: { type: "json_schema", strict: true, name: "Order", schema: ORDER_STRICT } },
    },
  },
  {
    client: "Pydantic AI, tools that a search finds",
    wants: "call",
    notices: ["no_effect"],
    body: {
      include: ["reasoning.encrypted_content"],
      input: [
        { content: ASK, role: "user" },
        {
          arguments: { queries: ["weather"] },
          call_id: "call_1",
          execution: "client",
          status: "completed",
          type: "tool_search_call",
        },
        {
          call_id: "call_1",
          execution: "client",
          status: "completed",
          tools: [{ defer_loading: true, ...FUNCTION, parameters: CITY_STRICT, strict: true, type: "function" }],
          type: "tool_search_output",
        },
        {
          role: "developer",
          tools: [{ ...FUNCTION, parameters: CITY_STRICT, strict: true, type: "function" }],
          type: "additional_tools",
        },
      ],
      model: "gpt-5.4",
      stream: false,
      tool_choice: "required",
      tools: [{ type: "tool_search" }],
    },
  },
  {
    client: "Pydantic AI, a conversation in which another service ran tools",
    wants: "text",
    body: {
      input: [
        { content: "How many primes are below 10?", role: "user" },
        {
          code: "print(4)",
          container_id: "cntr_1",
          id: "ci_1",
          outputs: null,
          status: "completed",
          type: "code_interpreter_call",
        },
        { id: "mcpl_1", server_label: "docs", tools: [], type: "mcp_list_tools" },
        { arguments: "{}", error: null, id: "mcp_1", name: "ask", output: "4", server_label: "docs", type: "mcp_call" },
        { content: "4", role: "assistant" },
        { content: ASK, role: "user" },
      ],
      model: "gpt-5",
      stream: true,
    },
  },
];
