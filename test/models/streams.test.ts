import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, test } from "vitest";
import { failover } from "../../src/models/failover.ts";
import { createHttpClient } from "../../src/models/http.ts";
import type { ModelEntry } from "../../src/models/port/entry.ts";
import { type Completion, complete, type End, type Model, type Piece } from "../../src/models/port/model.ts";
import { resilient } from "../../src/models/resilient.ts";
import { createVendorModel } from "../../src/models/vendor.ts";
import { type Reply, type ScriptedVendor, spoken, startVendor, type WireKind } from "../helpers/vendors.ts";
import { call, collect, textOf } from "./fake-model.ts";

const http = createHttpClient({ connectMs: 1_000 });
afterAll(() => http.close());

/** What a format writes for parts of a stream and of a whole completion. Events are the data of server-sent events. */
interface Samples {
  kind: WireKind;
  text(text: string): unknown;
  /** The last events, the terminal one last. */
  end: unknown[];
  whole(text: string, more?: object): unknown;
  /** Events that report 4 input and 3 output tokens; none if only the terminal one does. */
  usage: unknown[];
  /** Events that are no text, each known to be sent or made up. */
  noise: unknown[];
  /** Whole completions whose text is "yes", with much that is no text. */
  noisyWhole: unknown;
  thinking: unknown[];
  refusals: { name: string; events: unknown[]; whole: unknown }[];
}

const chunk = (delta: unknown, finish_reason: unknown = null) => ({ choices: [{ index: 0, delta, finish_reason }] });
const tool = { index: 0, id: "c", type: "function", function: { name: "f", arguments: '{"text":"no"}' } };
const openai: Samples = {
  kind: "openai",
  text: (content) => chunk({ content }),
  end: [chunk({}, "stop"), "[DONE]"],
  usage: [{ choices: [], usage: { prompt_tokens: 4, completion_tokens: 3 } }],
  whole: (content, more) => ({
    choices: [{ message: { role: "assistant", content, ...more }, finish_reason: "stop" }],
  }),
  noise: [
    chunk({ role: "assistant", content: "" }),
    chunk({ content: null, tool_calls: [tool] }),
    chunk({ function_call: tool.function }),
    chunk({ content: [{ type: "image_url", image_url: {} }, { type: "new", text: "no" }, null] }),
    chunk({ audio: { transcript: "no" }, text: "no" }),
    { choices: [] },
    { choices: null, new: { content: "no" } },
    { object: "keepalive", obfuscation: "no" },
    null,
    7,
    [],
  ],
  noisyWhole: {
    choices: [
      {
        message: {
          content: [
            { type: "thinking", thinking: "no" },
            { type: "text", text: "y" },
            { type: "text", text: "es" },
          ],
          tool_calls: [tool],
          audio: { transcript: "no" },
        },
        finish_reason: "stop",
        logprobs: null,
      },
      { message: { content: "no" } },
    ],
    new: "no",
  },
  thinking: [chunk({ reasoning_content: "hm" }), chunk({ reasoning: "hm" }), chunk({ reasoning_details: [{}] })],
  refusals: [
    {
      name: "refusal",
      events: [chunk({ refusal: "I can" }), chunk({ refusal: "not." }), chunk({}, "stop"), "[DONE]"],
      whole: { choices: [{ message: { content: null, refusal: "I cannot." }, finish_reason: "stop" }] },
    },
    {
      name: "content_filter",
      events: [chunk({}, "content_filter"), "[DONE]"],
      whole: { choices: [{ message: { content: "" }, finish_reason: "content_filter" }] },
    },
  ],
};

const at = { item_id: "msg_1", output_index: 0, content_index: 0 };
const item = (item: unknown) => [
  { type: "response.output_item.added", output_index: 0, item },
  { type: "response.output_item.done", output_index: 0, item },
];
const ended = (response: object) => ({ type: "response.completed", response: { status: "completed", ...response } });
const called = { type: "function_call", id: "fc_1", call_id: "c", name: "f", arguments: '{"text":"no"}' };
const message = (...content: unknown[]) => ({ type: "message", role: "assistant", content });
const filtered = { status: "incomplete", incomplete_details: { reason: "content_filter" }, output: [] };
const responses: Samples = {
  kind: "responses",
  text: (delta) => ({ type: "response.output_text.delta", ...at, delta }),
  end: [ended({ output: [] })],
  usage: [],
  whole: (text, more) => ({ status: "completed", output: [message({ type: "output_text", text })], ...more }),
  noise: [
    { type: "response.created", response: { status: "in_progress", error: null, output: [], usage: null } },
    { type: "response.in_progress", response: null },
    { type: "response.content_part.added", ...at, part: { type: "output_text", text: "" } },
    ...item(message({ type: "new_part", text: "no" }, null)),
    ...item(called),
    { type: "response.function_call_arguments.delta", ...at, delta: '{"text":"no"}' },
    ...item({ type: "web_search_call", action: { query: "no" }, content: [{ type: "output_text", text: "no" }] }),
    { type: "response.output_text.annotation.added", ...at, annotation: { title: "no" }, text: "no" },
    { type: "response.output_text.delta", ...at, delta: null },
    { type: "response.new_event", delta: "no", text: "no" },
    { type: "keepalive" },
    { type: 7, delta: "no" },
    null,
    7,
    [],
  ],
  noisyWhole: {
    status: "completed",
    error: null,
    output: [
      { type: "reasoning", summary: [{ type: "summary_text", text: "no" }] },
      message({ type: "output_text", text: "y", annotations: [] }, { type: "new_part", text: "no" }, null),
      called,
      { type: "web_search_call", content: [{ type: "output_text", text: "no" }] },
      null,
      message({ type: "output_text", text: "es" }),
    ],
    new: "no",
  },
  thinking: [
    ...item({ type: "reasoning", summary: [{ type: "summary_text", text: "hm" }] }),
    { type: "response.reasoning_summary_text.delta", delta: "hm" },
    { type: "response.reasoning_text.delta", delta: "hm" },
  ],
  refusals: [
    {
      name: "refusal",
      events: [
        { type: "response.refusal.delta", ...at, delta: "I can" },
        { type: "response.refusal.done", ...at, refusal: "I cannot." },
        ended({ output: [message({ type: "refusal", refusal: "I cannot." })] }),
      ],
      whole: { status: "completed", output: [message({ type: "refusal", refusal: "I cannot." })] },
    },
    {
      name: "content_filter",
      events: [{ type: "response.incomplete", response: filtered }],
      whole: filtered,
    },
  ],
};

const delta = (more: unknown) => ({ type: "content_block_delta", index: 0, delta: more });
const block = (content_block: unknown) => ({ type: "content_block_start", index: 0, content_block });
const stop = (stop_reason: unknown) => ({ type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 3 } });
const anthropic: Samples = {
  kind: "anthropic",
  text: (text) => delta({ type: "text_delta", text }),
  end: [stop("end_turn"), { type: "message_stop" }],
  usage: [{ type: "message_delta", delta: {}, usage: { input_tokens: 4, output_tokens: 3 } }],
  whole: (text, more) => ({ type: "message", content: [{ type: "text", text }], stop_reason: "end_turn", ...more }),
  noise: [
    { type: "message_start", message: { content: [], usage: { input_tokens: 4, output_tokens: 1 } } },
    { type: "ping" },
    block({ type: "text", text: "" }),
    { type: "content_block_stop", index: 0 },
    block({ type: "tool_use", id: "t", name: "f", input: {}, text: "no" }),
    delta({ type: "input_json_delta", partial_json: '{"text":"no"}' }),
    block({ type: "web_search_tool_result", content: [{ type: "text", text: "no" }] }),
    delta({ type: "citations_delta", citation: { cited_text: "no" } }),
    block({ type: "new_block", text: "no" }),
    delta({ type: "new_delta", text: "no" }),
    { type: "new_event", delta: { type: "text_delta", text: "no" } },
    delta({ type: "text_delta", text: null }),
    null,
    7,
    [],
  ],
  noisyWhole: {
    type: "message",
    content: [
      { type: "thinking", thinking: "no", signature: "s" },
      { type: "text", text: "y", citations: [] },
      { type: "tool_use", name: "f", input: { text: "no" } },
      { type: "new_block", text: "no" },
      null,
      { type: "text", text: "es" },
    ],
    stop_reason: "end_turn",
    new: "no",
  },
  thinking: [
    block({ type: "thinking", thinking: "" }),
    delta({ type: "thinking_delta", thinking: "hm" }),
    delta({ type: "signature_delta", signature: "s" }),
    block({ type: "redacted_thinking", data: "x" }),
  ],
  refusals: [
    {
      name: "refusal",
      events: [stop("refusal"), { type: "message_stop" }],
      whole: { type: "message", content: [], stop_reason: "refusal" },
    },
  ],
};

const candidate = (parts: unknown[], more = {}) => ({ candidates: [{ content: { role: "model", parts }, ...more }] });
const filters = ["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"];
const google: Samples = {
  kind: "google",
  text: (text) => candidate([{ text }]),
  end: [candidate([], { finishReason: "STOP" })],
  usage: [{ usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 3 } }],
  whole: (text, more) => candidate([{ text }], { finishReason: "STOP", ...more }),
  noise: [
    { usageMetadata: { promptTokenCount: 4 } },
    candidate([{ functionCall: { name: "f", args: { text: "no" } } }]),
    candidate([{ executableCode: { code: "no" } }, { inlineData: { data: "no" } }, { newPart: { text: "no" } }, null]),
    { candidates: [{ index: 0 }] },
    { candidates: [{ content: {} }] },
    { candidates: [{ finishReason: "FINISH_REASON_UNSPECIFIED" }] },
    { candidates: null, new: { text: "no" } },
    { promptFeedback: { safetyRatings: [] } },
    null,
    7,
    [],
  ],
  noisyWhole: {
    candidates: [
      {
        content: {
          parts: [
            { text: "no", thought: true },
            { text: "y", thoughtSignature: "s" },
            { functionCall: { name: "f", args: { text: "no" } } },
            { text: "es" },
          ],
        },
        finishReason: "STOP",
        groundingMetadata: { text: "no" },
      },
      { content: { parts: [{ text: "no" }] } },
    ],
    new: "no",
  },
  thinking: [candidate([{ text: "hm", thought: true }])],
  refusals: [
    ...filters.map((finishReason) => {
      const event = { candidates: [{ finishReason }] };
      return { name: finishReason, events: [event], whole: event };
    }),
    {
      name: "blockReason",
      events: [{ promptFeedback: { blockReason: "PROHIBITED_CONTENT" } }],
      whole: { promptFeedback: { blockReason: "SAFETY" }, usageMetadata: { promptTokenCount: 4 } },
    },
  ],
};

/** Writes events as a stream, with this line end. */
function sse(events: readonly unknown[], eol = "\n", prefix = "data: "): string {
  return events
    .map((event) => `${prefix}${typeof event === "string" ? event : JSON.stringify(event)}${eol}${eol}`)
    .join("");
}

function endOf(all: readonly Piece[]): End {
  const last = all.at(-1);
  assert.ok(last?.type === "end", "the end comes last");
  return last;
}

for (const samples of [openai, responses, anthropic, google]) {
  const { kind, text, end, noise, thinking } = samples;
  const hello = [...noise, text("Zoë "), text("🎈")];

  describe(kind, () => {
    let vendor: ScriptedVendor;
    let model: Model;
    beforeAll(async () => {
      vendor = await startVendor(kind);
      model = createVendorModel(vendor.entry(), http);
    });
    afterAll(() => vendor.close());

    /** Reads a stream with these bytes. */
    const read = (raw: string, more: Reply = {}): Promise<Piece[]> => {
      vendor.reply({ raw, ...more });
      return collect(model.ask(call()));
    };
    const whole = (body: unknown): Promise<Completion> => {
      vendor.reply({ raw: JSON.stringify(body) });
      return complete(model, call({ streamed: false }));
    };

    test("reads LF, CRLF and CR as line ends, also byte by byte", async () => {
      for (const eol of ["\n", "\r\n", "\r"]) {
        for (const more of [{}, { split: 1 }] satisfies Reply[]) {
          const all = await read(sse([text("Zoë "), text("🎈"), ...end], eol), more);
          assert.equal(textOf(all), "Zoë 🎈", JSON.stringify(eol));
          assert.equal(endOf(all).reason, "stop");
        }
      }
    });

    test("gives the same text wherever the bytes are split", async () => {
      const raw = `\uFEFF${sse([text("Zoë 🎈")], "\r\n")}: hi\r\n${sse(end, "\r\n")}`;
      const length = Buffer.byteLength(raw);
      for (let at = 1; at < length; at++) {
        assert.equal(textOf(await read(raw, { split: [at] })), "Zoë 🎈", `split at ${at}`);
      }
    });

    test("reads a byte order mark, comments, other fields and data without a space", async () => {
      assert.equal(textOf(await read(`\uFEFF${sse([text("a"), ...end])}`)), "a");
      const raw = `: comment\n:\nid: 1\nretry: 5\nevent: any\nnew: field\n${sse(hello, "\n", "data:")}`;
      assert.equal(textOf(await read(`${raw}: ping\n\n${sse(end)}`)), "Zoë 🎈");
    });

    test("reads the terminal frame without a blank line, and without a line end", async () => {
      const raw = sse([...hello, ...end]);
      for (const cut of [1, 2]) {
        const all = await read(raw.slice(0, -cut));
        assert.equal(textOf(all), "Zoë 🎈");
        assert.equal(endOf(all).reason, "stop");
      }
    });

    test("reads a line of one megabyte", async () => {
      const long = "x".repeat(1_000_000);
      assert.equal(textOf(await read(sse([text(long), ...end]))), long);
    });

    test("skips unknown events, block types and fields, and tool calls", async () => {
      for (const more of [{}, { split: 7 }] satisfies Reply[]) {
        const all = await read(sse([...noise, text("a"), ...noise, text("b"), ...noise, ...end]), more);
        assert.equal(textOf(all), "ab");
        assert.equal(endOf(all).reason, "stop");
      }
      const { text: content, end: last } = await whole(samples.noisyWhole);
      assert.deepEqual([content, last.reason], ["yes", "stop"]);
    });

    test("delivers no thinking, but shows that the model is at work", async () => {
      const all = await read(sse([...thinking, text("4"), ...thinking, text("2"), ...end]), { split: 40 });
      assert.equal(textOf(all), "42");
      assert.equal(all[0]?.type, "progress");
    });

    test("tells comments from signs of work", async () => {
      const isIdle = async (raw: string) => {
        vendor.reply({ raw, afterwards: "hang" });
        const pieces = model.ask(call());
        const { value: first } = await pieces.next();
        await pieces.return?.();
        return first?.type === "progress" && first.isIdle === true;
      };
      for (const raw of [": keep-alive\n\n", ":\n: ping\r\n\r\n", "\n\n"]) assert.ok(await isIdle(raw), raw);
      for (const raw of [sse([thinking[0]]), `: ping\n\n${sse([thinking[0]])}`]) assert.ok(!(await isIdle(raw)), raw);
    });

    test("ends with the terminal frame, whatever follows it in the same read", async () => {
      const rubbish = ["{no json", { error: { message: "m" } }, { type: "error", error: {} }, text("more"), ...end];
      for (const event of rubbish) {
        const all = await read(sse([text("whole"), ...end, event]));
        assert.equal(textOf(all), "whole", JSON.stringify(event));
        assert.equal(endOf(all).reason, "stop");
      }
    });

    test("ends with the first of several concatenated messages", async () => {
      const message = [...noise, text("one"), ...end];
      assert.equal(textOf(await read(sse([...message, ...message]))), "one");
    });

    test("fails without an end reason", async () => {
      for (const events of [[], noise, [text("a")], [text("a"), ...noise]]) {
        for (const close of ["whole", "reset"] as const) {
          await assert.rejects(read(sse(events), { end: close }), { name: "ModelError", retryable: true });
        }
      }
    });

    test("ends with the end reason if the body then ends, breaks or cannot be read", async () => {
      const finish = end[0];
      const rests = [
        "",
        ": ping\n\n",
        "data: {no json\n\n",
        'data: {"usage',
        `data: ${JSON.stringify({ error: {} })}\n\n`,
      ];
      for (const rest of rests) {
        for (const afterwards of [undefined, "reset"] as const) {
          const raw = sse([...noise, text("whole"), finish]) + rest;
          const all = await read(raw, afterwards ? { afterwards } : {});
          assert.deepEqual([textOf(all), endOf(all).reason], ["whole", "stop"], `${rest} ${afterwards}`);
        }
      }
      const cut = sse([text("whole"), finish]).slice(0, -12);
      await assert.rejects(read(cut), { name: "ModelError", retryable: true });
    });

    if (samples.usage.length > 0)
      test("reads usage that follows the end reason", async () => {
        const bare = { ...(end[0] as object) };
        for (const after of [[], end.slice(1)]) {
          const all = await read(sse([text("whole"), bare, ...samples.usage, ...after]), { betweenMs: 1 });
          const { inputTokens, outputTokens } = endOf(all).usage ?? assert.fail("no usage");
          assert.deepEqual([textOf(all), inputTokens, outputTokens], ["whole", 4, 3]);
        }
      });

    test("ends when the vendor is silent after the end reason", async () => {
      const timeouts = { connectMs: 1_000, firstTokenMs: 60_000, betweenChunksMs: 50 };
      vendor.reply({ raw: sse([text("whole"), end[0]]), afterwards: "hang" });
      const all = await collect(resilient(model, { timeouts }).ask(call()));
      assert.deepEqual([textOf(all), endOf(all).reason], ["whole", "stop"]);
    });

    test("fails on a broken event, and ignores one after the terminal frame", async () => {
      await assert.rejects(read(sse([text("a"), "{no json", ...end])), { name: "ModelError", retryable: true });
      assert.equal(textOf(await read(sse([text("a"), ...end, "{no json"]))), "a");
    });

    test("accepts a completion without usage", async () => {
      assert.equal(endOf(await read(sse([text("a"), end.at(-1)]))).usage, undefined);
      assert.equal((await whole(samples.whole("a"))).end.usage, undefined);
    });

    for (const { name, events, whole: body } of samples.refusals) {
      test(`reads a refusal: ${name}`, async () => {
        const streamed = await read(sse([...thinking, ...events]));
        assert.deepEqual([textOf(streamed), endOf(streamed).reason], ["", "content_filter"]);
        const { text: content, end: last } = await whole(body);
        assert.deepEqual([content, last.reason], ["", "content_filter"]);

        const late = await read(sse([text("It is "), ...events]));
        assert.deepEqual([textOf(late), endOf(late).reason], ["It is ", "content_filter"]);
      });

      test(`asks the next model after a refusal: ${name}`, async () => {
        const second = createVendorModel(vendor.entry({ name: "second" }), http);
        vendor.reply({ raw: sse(events) }, { text: "fine" });
        assert.equal((await complete(failover([model, second]), call())).end.model, "second");
        vendor.reply({ raw: JSON.stringify(body) }, { text: "fine" });
        assert.equal((await complete(failover([model, second]), call({ streamed: false }))).end.model, "second");
        vendor.reply({ raw: sse(events) }, { raw: sse(events) });
        await assert.rejects(complete(failover([model, second]), call()), { kind: "refused" });
      });
    }
  });
}

describe("floods", () => {
  const bound = 200_000;
  const small = createHttpClient({ connectMs: 1_000, maxBodyBytes: bound, maxStreamBytes: bound });
  afterAll(() => small.close());

  /** Calls a server that repeats a text without end, and counts its bytes. */
  async function flooded(
    kind: WireKind,
    status: number,
    beginning: string,
    repeated: string,
    use: (model: Model) => Promise<void>,
  ): Promise<void> {
    let sent = 0;
    const block = Buffer.from(repeated.repeat(Math.ceil(16_384 / repeated.length)));
    const pour = (response: ServerResponse) => {
      while (!response.destroyed) {
        sent += block.length;
        if (!response.write(block)) return;
      }
    };
    let sockets = 0;
    const server = createServer((request, response) => {
      request.resume();
      response.on("error", () => {}).on("drain", () => pour(response));
      response.writeHead(status);
      response.write(beginning);
      pour(response);
    });
    server.on("connection", (socket) => {
      sockets++;
      socket.on("close", () => sockets--).on("error", () => {});
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const entry: ModelEntry = {
      name: "flood",
      ...spoken(kind),
      model: "m",
      tier: "fast",
      baseUrl,
      images: false,
      jsonSchema: true,
    };
    try {
      await use(createVendorModel(entry, small));
      for (let i = 0; i < 500 && sockets > 0; i++) await new Promise((resolve) => setTimeout(resolve, 5));
      assert.equal(sockets, 0, "the connection is closed");
      assert.ok(sent < 20_000_000, `the server could send ${sent} bytes`);
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  for (const { kind, text, end } of [openai, responses, anthropic, google]) {
    const cases: [name: string, repeated: string][] = [
      ["text", sse([text("x")])],
      ["events without text", sse([{ type: "ping" }])],
      ["comments", ": ping\n\n"],
      ["one line", "x"],
      ["data of one event", "data: x\n"],
      ["blank lines", "\n"],
    ];
    test(`${kind}: cuts off an endless stream at its bound`, async () => {
      for (const [name, repeated] of cases) {
        await flooded(kind, 200, "data: ", repeated, async (model) => {
          let length = 0;
          const reading = async () => {
            for await (const piece of model.ask(call())) if (piece.type === "text") length += piece.text.length;
          };
          await assert.rejects(reading, { name: "ModelError" }, name);
          assert.ok(length <= bound);
        });
      }
    });

    test(`${kind}: cuts off an endless whole completion at its bound`, () =>
      flooded(kind, 200, "{", " ", async (model) => {
        const failure = { name: "ModelError", retryable: false, message: /larger than 200000 bytes/ };
        await assert.rejects(complete(model, call({ streamed: false })), failure);
      }));

    test(`${kind}: reads no more than the beginning of an endless error`, () =>
      flooded(kind, 503, "{", "x", async (model) => {
        await assert.rejects(complete(model, call()), { name: "ModelError", status: 503, retryable: true });
      }));

    test(`${kind}: closes the connection when rubbish without end follows the terminal frame`, () =>
      flooded(kind, 200, sse([text("whole"), ...end]), "rubbish\n\n", async (model) => {
        assert.equal((await complete(model, call())).text, "whole");
      }));
  }
});
