import type { Reply, WireKind } from "./vendors.ts";

/** How one vendor writes its answers down. Frames are whole server-sent events. */
export interface Wire {
  /** Path of a call, as a pattern. */
  path: RegExp;
  isStream(path: string, json: Record<string, unknown>): boolean;
  /** The body of a whole completion. @param tool name of the tool that takes the text as its input, if it is JSON */
  whole(text: string, reply: Reply, tool?: string): string;
  /** Frames before the text, one per piece of text, and after it, the terminal one last. */
  frames(pieces: readonly string[], reply: Reply, tool?: string): { before: string[]; text: string[]; after: string[] };
  error(status: number, error: NonNullable<Reply["error"]>): unknown;
  errorFrame: string;
}

/** Normalised figures: input includes cached tokens, output includes thoughts. */
const USAGE = { input: 10, cached: 0, cacheWrite: 0, output: 5, thoughts: 0 };

function usageOf(reply: Reply): typeof USAGE {
  return { ...USAGE, ...reply.usage };
}

function finishOf(reply: Reply, words: Record<string, string>): string {
  const finish = reply.finish ?? "stop";
  return words[finish] ?? finish;
}

function event(data: unknown, name?: string): string {
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
}

const openai: Wire = {
  path: /\/chat\/completions$/,
  isStream: (_, json) => json.stream === true,
  whole: (text, reply) =>
    JSON.stringify({
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 1_750_000_000,
      model: reply.version ?? "scripted",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: text, refusal: null, ...openaiCalls(reply) },
          finish_reason: openaiFinish(reply),
        },
      ],
      ...(reply.usage === null ? {} : { usage: openaiUsage(reply) }),
    }),
  frames(pieces, reply) {
    const chunk = (choices: unknown[], more = {}) =>
      event({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created: 1_750_000_000,
        model: reply.version ?? "scripted",
        choices,
        ...more,
      });
    const delta = (delta: unknown, finish_reason: string | null = null) => chunk([{ index: 0, delta, finish_reason }]);
    return {
      before: [delta({ role: "assistant", content: "" })],
      text: pieces.map((content) => delta({ content })),
      after: [
        ...(openaiCalls(reply).tool_calls ?? []).flatMap(({ function: { name, arguments: text }, ...call }, index) => [
          delta({ tool_calls: [{ index, ...call, function: { name, arguments: "" } }] }),
          ...halves(text).map((part) => delta({ tool_calls: [{ index, function: { arguments: part } }] })),
        ]),
        delta({}, openaiFinish(reply)),
        ...(reply.usage === null ? [] : [chunk([], { usage: openaiUsage(reply) })]),
        "data: [DONE]\n\n",
      ],
    };
  },
  error: (_, { message = "scripted", type = "server_error", param = null, code = null }) => ({
    error: { message, type, param, code },
  }),
  errorFrame: event({ error: { message: "scripted", type: "server_error", param: null, code: null } }),
};

function openaiFinish(reply: Reply): string {
  const stop = reply.calls ? "tool_calls" : "stop";
  return finishOf(reply, { stop, "content-filter": "content_filter" });
}

function openaiCalls({ calls }: Reply) {
  return calls ? { tool_calls: calls.map((call, i) => ({ id: `call_v${i}`, type: "function", function: call })) } : {};
}

/** Two parts of a text, as a stream has it. */
function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
}

function openaiUsage(reply: Reply) {
  const { input, cached, output, thoughts } = usageOf(reply);
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: thoughts },
  };
}

const responses: Wire = {
  path: /\/responses$/,
  isStream: (_, json) => json.stream === true,
  whole: (text, reply) =>
    JSON.stringify(responsesResponse(reply, [...responsesThoughts(reply), ...responsesItems(text, reply)])),
  frames(pieces, reply) {
    const text = pieces.join("");
    const thoughts = responsesThoughts(reply);
    const items = responsesItems(pieces.length === 0 ? undefined : text, reply);
    const [message] = items.filter(({ type }) => type === "message");
    const named = (type: string, more: object) => event({ type, sequence_number: 1, ...more }, type);
    const started = responsesResponse({ ...reply, usage: null }, []);
    const at = { item_id: "msg_1", output_index: thoughts.length, content_index: 0 };
    return {
      before: [
        named("response.created", { response: { ...started, status: "in_progress" } }),
        named("response.in_progress", { response: { ...started, status: "in_progress" } }),
        ...thoughts.flatMap((item) => [
          named("response.output_item.added", { output_index: 0, item: { ...item, summary: [] } }),
          named("response.reasoning_summary_text.delta", { output_index: 0, summary_index: 0, delta: reply.thinking }),
          named("response.output_item.done", { output_index: 0, item }),
        ]),
        ...(message
          ? [
              named("response.output_item.added", {
                output_index: at.output_index,
                item: { ...message, content: [], status: "in_progress" },
              }),
              named("response.content_part.added", { ...at, part: responsesText("") }),
            ]
          : []),
      ],
      text: pieces.map((delta) =>
        named("response.output_text.delta", { ...at, delta, logprobs: [], obfuscation: "x" }),
      ),
      after: [
        ...(message
          ? [
              named("response.output_text.done", { ...at, text, logprobs: [] }),
              named("response.content_part.done", { ...at, part: responsesText(text) }),
              named("response.output_item.done", { output_index: at.output_index, item: message }),
            ]
          : []),
        ...items.flatMap((item, i) => {
          const place = { item_id: item.id, output_index: thoughts.length + i };
          if (!("arguments" in item)) return [];
          const part = (delta: string) => named("response.function_call_arguments.delta", { ...place, delta });
          return [
            named("response.output_item.added", { output_index: place.output_index, item: { ...item, arguments: "" } }),
            ...halves(item.arguments).map(part),
            named("response.function_call_arguments.done", { ...place, arguments: item.arguments }),
            named("response.output_item.done", { output_index: place.output_index, item }),
          ];
        }),
        responsesEnd(responsesResponse(reply, [...thoughts, ...items])),
      ],
    };
  },
  error: openai.error,
  errorFrame: event(
    { type: "error", sequence_number: 2, error: { type: "server_error", code: "server_error", message: "scripted" } },
    "error",
  ),
};

function responsesEnd(response: { status: string }): string {
  const type = `response.${response.status}`;
  return event({ type, sequence_number: 2, response }, type);
}

function responsesResponse(reply: Reply, output: unknown[]) {
  const { input, cached, output: written, thoughts } = usageOf(reply);
  const reason = finishOf(reply, { length: "max_output_tokens", "content-filter": "content_filter" });
  const isFailed = reason === "error";
  return {
    id: "resp_1",
    object: "response",
    created_at: 1_750_000_000,
    status: isFailed ? "failed" : reason === "stop" ? "completed" : "incomplete",
    error: isFailed ? { code: "server_error", message: "scripted" } : null,
    incomplete_details: isFailed || reason === "stop" ? null : { reason },
    model: reply.version ?? "scripted",
    output,
    usage:
      reply.usage === null
        ? null
        : {
            input_tokens: input,
            input_tokens_details: { cached_tokens: cached },
            output_tokens: written,
            output_tokens_details: { reasoning_tokens: thoughts },
            total_tokens: input + written,
          },
  };
}

function responsesThoughts({ thinking: text }: Reply) {
  return text === undefined ? [] : [{ type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text }] }];
}

/** @param text undefined: there is no message */
function responsesItems(text: string | undefined, { calls = [] }: Reply) {
  const isEmpty = text === undefined || (text === "" && calls.length > 0);
  return [
    ...(isEmpty
      ? []
      : [{ type: "message", id: "msg_1", role: "assistant", status: "completed", content: [responsesText(text)] }]),
    ...calls.map((call, i) => ({ type: "function_call", id: `fc_${i}`, call_id: `call_v${i}`, ...call })),
  ];
}

function responsesText(text: string) {
  return { type: "output_text", text, annotations: [] };
}

const anthropic: Wire = {
  path: /\/messages$/,
  isStream: (_, json) => json.stream === true,
  whole(text, reply, tool) {
    const block = isInput(text, tool) ? toolUse(tool) : { type: "text", text };
    const body = JSON.stringify({
      ...anthropicMessage(reply),
      content: [
        ...(reply.thinking === undefined ? [] : [{ type: "thinking", thinking: reply.thinking, signature: "s" }]),
        ...(text === "" && reply.calls ? [] : [block]),
        ...(reply.calls ?? []).map(({ name }, i) => ({ ...toolUse(name), id: `toolu_v${i}` })),
      ],
      stop_reason: "input" in block ? "tool_use" : anthropicFinish(reply),
      stop_sequence: null,
      usage: anthropicUsage(reply),
    });
    // The text itself, because a parser would change the spelling of its numbers.
    const inputs = [...("input" in block ? [text] : []), ...(reply.calls ?? []).map((call) => call.arguments)];
    return inputs.reduce((sent, input) => sent.replace('"input":{}', () => `"input": ${input}`), body);
  },
  frames(pieces, reply, tool) {
    const named = (data: { type: string; [key: string]: unknown }) => event(data, data.type);
    const { output_tokens, output_tokens_details, ...input } = anthropicUsage(reply);
    const thinks = reply.thinking !== undefined;
    const index = thinks ? 1 : 0;
    const isTool = isInput(pieces.join(""), tool);
    const isEmpty = reply.calls !== undefined && pieces.length === 0;
    const delta = (text: string) =>
      isTool ? { type: "input_json_delta", partial_json: text } : { type: "text_delta", text };
    return {
      before: [
        named({
          type: "message_start",
          message: {
            ...anthropicMessage(reply),
            content: [],
            stop_reason: null,
            usage: { ...input, output_tokens: 1 },
          },
        }),
        named({ type: "ping" }),
        ...(thinks
          ? [
              named({ type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } }),
              named({
                type: "content_block_delta",
                index: 0,
                delta: { type: "thinking_delta", thinking: reply.thinking },
              }),
              named({ type: "content_block_stop", index: 0 }),
            ]
          : []),
        ...(isEmpty
          ? []
          : [
              named({
                type: "content_block_start",
                index,
                content_block: isTool ? toolUse(tool) : { type: "text", text: "" },
              }),
            ]),
      ],
      text: pieces.map((text) => named({ type: "content_block_delta", index, delta: delta(text) })),
      after: [
        ...(isEmpty ? [] : [named({ type: "content_block_stop", index })]),
        ...(reply.calls ?? []).flatMap(({ name, arguments: text }, i) => {
          const at = { index: index + (isEmpty ? 0 : 1) + i };
          const input = (part: string) => ({ type: "input_json_delta", partial_json: part });
          return [
            named({ type: "content_block_start", ...at, content_block: { ...toolUse(name), id: `toolu_v${i}` } }),
            ...halves(text).map((part) => named({ type: "content_block_delta", ...at, delta: input(part) })),
            named({ type: "content_block_stop", ...at }),
          ];
        }),
        named({
          type: "message_delta",
          delta: { stop_reason: isTool ? "tool_use" : anthropicFinish(reply), stop_sequence: null },
          usage: { output_tokens, output_tokens_details },
        }),
        named({ type: "message_stop" }),
      ],
    };
  },
  error: (_, { message = "scripted", type = "api_error" }) => ({ type: "error", error: { type, message } }),
  errorFrame: event({ type: "error", error: { type: "overloaded_error", message: "scripted" } }, "error"),
};

/** Like the model, which calls the tool with an object and writes anything else as text. */
function isInput(text: string, tool: string | undefined): boolean {
  if (tool === undefined) return false;
  try {
    return text.startsWith("{") && JSON.parse(text) !== null;
  } catch {
    return false;
  }
}

function toolUse(name: string | undefined) {
  return { type: "tool_use", id: "toolu_1", name, input: {} };
}

function anthropicMessage({ version = "scripted" }: Reply) {
  return { id: "msg_1", type: "message", role: "assistant", model: version };
}

function anthropicFinish(reply: Reply): string {
  return finishOf(reply, {
    stop: reply.calls ? "tool_use" : "end_turn",
    length: "max_tokens",
    "content-filter": "refusal",
  });
}

function anthropicUsage(reply: Reply) {
  const { input, cached, cacheWrite, output, thoughts } = usageOf(reply);
  return {
    input_tokens: input - cached - cacheWrite,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: cacheWrite,
    output_tokens: output,
    output_tokens_details: { thinking_tokens: thoughts },
  };
}

const google: Wire = {
  path: /\/models\/[^/:]+:(streamGenerateContent|generateContent)(\?|$)/,
  isStream: (path) => path.includes(":streamGenerateContent"),
  whole: (text, reply) =>
    withArguments(
      reply,
      JSON.stringify({
        candidates: [
          { content: { role: "model", parts: googleParts(text, reply) }, finishReason: googleFinish(reply), index: 0 },
        ],
        ...googleRest(reply),
      }),
    ),
  frames(pieces, reply) {
    // Gemini's frames end with two CRLF, unlike the others'.
    const frame = (data: unknown) => `data: ${JSON.stringify(data)}\r\n\r\n`;
    const candidate = (parts: unknown[], more = {}) => ({
      candidates: [{ content: { role: "model", parts }, index: 0, ...more }],
    });
    return {
      before: reply.thinking === undefined ? [] : [frame(candidate([{ text: reply.thinking, thought: true }]))],
      text: pieces.map((text) =>
        frame({ ...candidate([{ text }]), responseId: "r1", modelVersion: reply.version ?? "scripted" }),
      ),
      after: [
        ...(reply.calls ? [withArguments(reply, frame(candidate(googleCalls(reply))))] : []),
        frame({ ...candidate([{ text: "" }], { finishReason: googleFinish(reply) }), ...googleRest(reply) }),
      ],
    };
  },
  error: (status, { message = "scripted", type = "UNAVAILABLE", details }) => ({
    error: { code: status, message, status: type, ...(details ? { details } : {}) },
  }),
  errorFrame: event({ error: { code: 503, message: "scripted", status: "UNAVAILABLE" } }),
};

function googleParts(text: string, reply: Reply): unknown[] {
  const thoughts = reply.thinking === undefined ? [] : [{ text: reply.thinking, thought: true }];
  return [...thoughts, ...(text === "" && reply.calls ? [] : [{ text }]), ...googleCalls(reply)];
}

function googleCalls({ calls = [] }: Reply): unknown[] {
  return calls.map(({ name }) => ({ functionCall: { name, args: {} } }));
}

/** Inserts the arguments as they are written. */
function withArguments({ calls = [] }: Reply, body: string): string {
  return calls.reduce((sent, call) => sent.replace('"args":{}', () => `"args": ${call.arguments}`), body);
}

function googleFinish(reply: Reply): string {
  return finishOf(reply, { stop: "STOP", length: "MAX_TOKENS", "content-filter": "SAFETY" });
}

function googleRest(reply: Reply) {
  const { input, cached, output, thoughts } = usageOf(reply);
  const usageMetadata = {
    promptTokenCount: input,
    cachedContentTokenCount: cached,
    candidatesTokenCount: output - thoughts,
    thoughtsTokenCount: thoughts,
    totalTokenCount: input + output,
  };
  return {
    responseId: "r1",
    modelVersion: reply.version ?? "scripted",
    ...(reply.usage === null ? {} : { usageMetadata }),
  };
}

export const WIRES: Readonly<Record<WireKind, Wire>> = { openai, responses, anthropic, google };
