import type { Schema } from "./schema.ts";

const INVOICE = "Invoice INV-2041, 14 March 2026. Total due: EUR 1,234.50. Questions: billing@example.com";

/** Bodies that both `/v1/generate` and `/v1/generate:stream` accept. */
const FEATURES: Schema = {
  prompt: { summary: "A prompt", value: { prompt: "What is 17 * 23 + 4?" } },
  conversation: {
    summary: "A conversation",
    value: {
      system: "Answer in one sentence.",
      messages: [
        { role: "user", content: "The meeting is on Tuesday at 10 in room 4." },
        { role: "assistant", content: "Noted." },
        { role: "user", content: "In which room is the meeting?" },
      ],
      temperature: 0.2,
      max_tokens: 200,
      stop_sequences: ["\n\n"],
    },
  },
  extract: {
    summary: "JSON that the prompt describes",
    value: { prompt: `Extract the invoice number and the email address.\n\n${INVOICE}`, output_shape: "extract" },
  },
  trace: {
    summary: "Effort, with the Intelligence Trace",
    value: { prompt: "What is 6 * 7?", effort: "low", intelligence_trace: true },
  },
};

const STRICT = {
  summary: "JSON that is valid against a schema",
  value: {
    prompt: INVOICE,
    response_format: {
      type: "json_schema",
      schema: {
        type: "object",
        properties: {
          number: { type: "string" },
          date: { type: "string" },
          total: { type: "number" },
          email: { type: "string" },
        },
        required: ["number", "date", "total", "email"],
        additionalProperties: false,
      },
    },
  },
};

const IDS = { id: "gen_8d1f0b6c2e3a4f57b9c0d1e2f3a4b5c6", request_id: "req_2f1c7a54b0d94f0e8a3c5d7e9b1f2a36" };
const USAGE = { input_tokens: 14, output_tokens: 3, cached_tokens: 0, credits: 0.0026 };
const INVOICE_JSON = { number: "INV-2041", date: "14 March 2026", total: 1234.5, email: "billing@example.com" };

const ANSWERS: Schema = {
  text: {
    summary: "Text",
    value: {
      ...IDS,
      answer: "395",
      structured_error: null,
      usage: USAGE,
      latency_ms: 412,
      finish_reason: "stop",
      notices: [],
    },
  },
  strict: {
    summary: "JSON that is valid against a schema",
    value: {
      ...IDS,
      answer: JSON.stringify(INVOICE_JSON),
      structured: INVOICE_JSON,
      structured_error: null,
      usage: { input_tokens: 96, output_tokens: 38, cached_tokens: 64, credits: 0.01904 },
      latency_ms: 1_380,
      finish_reason: "stop",
      notices: [],
    },
  },
};

const EVENTS = `event: delta
data: {"text":"39"}

event: delta
data: {"text":"5"}

event: done
data: ${JSON.stringify({ ...IDS, usage: USAGE, finish_reason: "stop", notices: [] })}

`;

function window(resets_at: string, requests: [number | null, number], tokens: number): Schema {
  const [limit, used] = requests;
  return {
    resets_at,
    requests: { limit, used, remaining: limit === null ? null : limit - used },
    input_tokens: { limit: null, used: tokens, remaining: null },
    output_tokens: { limit: null, used: tokens / 4, remaining: null },
  };
}

const QUOTAS = {
  workspace: "default",
  tier: "1",
  as_of: "2026-03-14T09:26:53.589Z",
  windows: {
    minute: window("2026-03-14T09:27:00.000Z", [60, 4], 4_000),
    day: window("2026-03-15T00:00:00.000Z", [10_000, 812], 640_000),
    month: window("2026-04-01T00:00:00.000Z", [null, 9_214], 7_200_000),
  },
  concurrent_requests: { limit: 20, used: 1, remaining: 19 },
  credit: { balance: 812.5, held: 12.8, available: 799.7 },
  spend_limits: [{ period: "day", limit: 100, used: 50.25, remaining: 49.75, resets_at: "2026-03-15T00:00:00.000Z" }],
  caps: [
    {
      ...{ subject: "key:key_5f0c2a9d1e7b4c8a", figure: "requests", period: "day", limit: 1_000, used: 12 },
      ...{ remaining: 988, action: "refuse", resets_at: "2026-11-21T00:00:00.000Z" },
    },
  ],
};

const POINT = {
  requests: 812,
  failed_requests: 3,
  input_tokens: 640_000,
  output_tokens: 160_000,
  cached_tokens: 120_000,
  credits: 117.2,
};
const METRICS = {
  from: "2026-03-14T00:00:00.000Z",
  to: "2026-03-15T00:00:00.000Z",
  interval: "day",
  totals: POINT,
  series: [{ start: "2026-03-14T00:00:00.000Z", ...POINT }],
};

const QUESTION = { role: "user", content: "What is 17 * 23 + 4?" };

const CHATS: Schema = {
  prompt: { summary: "A prompt", value: { model: "chorus", messages: [QUESTION] } },
  conversation: {
    summary: "A conversation with a file",
    value: {
      model: "chorus-low",
      messages: [
        { role: "developer", content: "Answer in one sentence." },
        {
          role: "user",
          content: [
            { type: "text", text: "What is 6 * 7?" },
            { type: "file", file: { filename: "note.txt", file_data: "data:text/plain;base64,NiAqIDcgPSA0Mg==" } },
          ],
        },
      ],
      temperature: 0.2,
      max_completion_tokens: 200,
      stop: "\n\n",
    },
  },
  strict: {
    summary: "JSON that is valid against a schema",
    value: {
      model: "chorus",
      messages: [{ role: "user", content: INVOICE }],
      response_format: {
        type: "json_schema",
        json_schema: { name: "invoice", schema: STRICT.value.response_format.schema },
      },
    },
  },
  stream: {
    summary: "A stream with its usage",
    value: { model: "chorus", messages: [QUESTION], stream: true, stream_options: { include_usage: true } },
  },
};

const CHAT_HEAD = { id: IDS.id, object: "chat.completion", created: 1_773_480_413, model: "chorus" };
const CHAT_USAGE = {
  prompt_tokens: 14,
  completion_tokens: 3,
  total_tokens: 17,
  prompt_tokens_details: { cached_tokens: 0 },
  credits: 0.0026,
};

const CHAT_ANSWER = {
  ...CHAT_HEAD,
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "395", refusal: null },
      logprobs: null,
      finish_reason: "stop",
    },
  ],
  usage: CHAT_USAGE,
  notices: [],
};

const CHUNKS = [
  { choices: [{ index: 0, delta: { role: "assistant", content: "395" }, logprobs: null, finish_reason: null }] },
  { choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }], notices: [] },
  { choices: [], usage: CHAT_USAGE },
]
  .map((members) => JSON.stringify({ ...CHAT_HEAD, object: "chat.completion.chunk", ...members }))
  .concat("[DONE]")
  .map((data) => `data: ${data}\n\n`)
  .join("");

const MODEL = { id: "chorus", object: "model", created: 1_767_225_600, owned_by: "chorus" };

const MESSAGES: Schema = {
  prompt: { summary: "A prompt", value: { model: "chorus", max_tokens: 1_000, messages: [QUESTION] } },
  conversation: {
    summary: "A conversation with a file",
    value: {
      model: "chorus-low",
      max_tokens: 200,
      system: "Answer in one sentence.",
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is 6 * 7?" },
            { type: "document", title: "note.txt", source: { type: "text", data: "6 * 7 = 42" } },
          ],
        },
      ],
      temperature: 0.2,
      stop_sequences: ["\n\n"],
    },
  },
  strict: {
    summary: "JSON that is valid against a schema",
    value: {
      model: "chorus",
      max_tokens: 1_000,
      messages: [{ role: "user", content: INVOICE }],
      output_config: { format: STRICT.value.response_format },
    },
  },
  stream: { summary: "A stream", value: { model: "chorus", max_tokens: 1_000, messages: [QUESTION], stream: true } },
};

const MESSAGE_USAGE = {
  input_tokens: 14,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 3,
};
const MESSAGE_HEAD = { id: IDS.id, type: "message", role: "assistant", model: "chorus" };

const MESSAGE = {
  ...MESSAGE_HEAD,
  content: [{ type: "text", text: "395" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { ...MESSAGE_USAGE, credits: 0.0026 },
  notices: [],
};

const MESSAGE_EVENTS = [
  {
    type: "message_start",
    message: {
      ...MESSAGE_HEAD,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...MESSAGE_USAGE, output_tokens: 0 },
      notices: [],
    },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "ping" },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "395" } },
  { type: "content_block_stop", index: 0 },
  {
    type: "message_delta",
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { ...MESSAGE_USAGE, credits: 0.0026 },
    notices: [],
  },
  { type: "message_stop" },
]
  .map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)
  .join("");

const MESSAGE_MODEL = {
  type: "model",
  id: "chorus",
  display_name: "Chorus",
  created_at: "2026-01-01T00:00:00.000Z",
};

/** Examples of requests, by the local name of the RPC. */
export const REQUEST_EXAMPLES: Readonly<Record<string, Schema>> = {
  generate: { ...FEATURES, strict: STRICT },
  streamGenerate: FEATURES,
  createChatCompletion: CHATS,
  createMessage: MESSAGES,
  countMessageTokens: MESSAGES,
  recordOutcome: {
    score: { summary: "A score", value: { score: 0.8 } },
    correct: { summary: "Right or wrong", value: { correct: true } },
    expected: { summary: "The right answer", value: { expected: "395" } },
  },
};

const RUN = {
  ...IDS,
  created_at: "2026-03-14T09:26:53.589Z",
  status: "ok",
  streamed: false,
  effort: "auto",
  latency_ms: 412,
  usage: USAGE,
  finish_reason: "stop",
  notices: [],
  intelligence_trace: {
    intelligence_level: "low",
    reasons: ["a calculation"],
    models: 1,
    escalations: 0,
    dropped_members: 0,
    repairs: 0,
    searches: 0,
    internal_input_tokens: 31,
    internal_output_tokens: 3,
    steps: [{ id: 1, kind: "answer", role: "fast", started_ms: 2, duration_ms: 405, outcome: "ok" }],
  },
  user: "user-4711",
  tags: { project: "search" },
};

/** Examples of answers, by the local name of the RPC. */
export const RESPONSE_EXAMPLES: Readonly<Record<string, Schema>> = {
  generate: ANSWERS,
  streamGenerate: { events: { summary: "A short answer", value: EVENTS } },
  recordOutcome: {
    outcome: { value: { generation_id: IDS.id, score: 1, recorded_at: "2026-03-14T09:26:53.589Z" } },
  },
  getGeneration: { generation: { value: RUN } },
  quotas: { quotas: { value: QUOTAS } },
  metrics: { metrics: { value: METRICS } },
  createChatCompletion: { text: { summary: "Text", value: CHAT_ANSWER } },
  streamChatCompletion: { chunks: { summary: "A short answer", value: CHUNKS } },
  listModels: { models: { value: { object: "list", data: [MODEL] } } },
  getModel: { model: { value: MODEL } },
  createMessage: { text: { summary: "Text", value: MESSAGE } },
  streamMessage: { events: { summary: "A short answer", value: MESSAGE_EVENTS } },
  countMessageTokens: { tokens: { value: { input_tokens: 14 } } },
  listMessageModels: {
    anthropic: { value: { data: [MESSAGE_MODEL], has_more: false, first_id: "chorus", last_id: "chorus" } },
  },
  getMessageModel: { anthropic: { value: MESSAGE_MODEL } },
};
