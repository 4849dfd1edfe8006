import assert from "node:assert/strict";
import { afterAll, beforeAll, beforeEach, describe, test } from "vitest";
import { createTokenizer } from "../../src/engine/tokens/tokens.ts";
import { credits, rowOf } from "../helpers/bench.ts";
import { NAMES, startPanel } from "../helpers/panel.ts";
import type { Reply, VendorKind } from "../helpers/vendors.ts";
import { type Ask, callers, fileLifetime, type Outcome, type Request } from "./callers.ts";

const KINDS = ["openai", "anthropic", "google"] as const;
const TRANSPORTS = ["REST", "SSE", "Connect", "Connect, streamed", "gRPC", "gRPC, streamed"];
const LONG = "word ".repeat(200);

const tokenizer = createTokenizer();
const lifetime = fileLifetime();
let panel: Awaited<ReturnType<typeof startPanel>>;
let asks: Record<string, Ask>;
beforeAll(async () => {
  panel = await startPanel(lifetime);
  asks = callers(panel.service);
});
afterAll(() => lifetime.end());
beforeEach(() => panel.script({}));

function ask(transport: string, request: Request): Promise<Outcome> {
  return (asks[transport] ?? assert.fail(transport))(request);
}

/** The same reply of every vendor, whatever the call is for. */
function everyVendor(reply: Reply | Record<VendorKind, Reply>): void {
  for (const kind of KINDS) panel.vendors[kind].always(isPerVendor(reply) ? reply[kind] : reply);
}

function isPerVendor(reply: object): reply is Record<VendorKind, Reply> {
  return "openai" in reply;
}

/** Checks a failure over any transport, and that it was not charged. */
async function assertFailure({ text, failure }: Outcome, code: string, field: string, status: unknown) {
  assert.equal(text, "");
  assert.deepEqual([failure?.code, failure?.field], [code, field]);
  assert.ok([status, undefined].includes(failure?.status), String(failure?.status));
  assert.doesNotMatch(JSON.stringify(failure), NAMES);
  const [row] = await panel.pool.query(
    "select outcome, credits_micro, finish_reason from generations where request_id = $1",
    [failure?.requestId],
  );
  assert.deepEqual(row, { outcome: code, credits_micro: 0n, finish_reason: null });
  await assertNothingBooked(failure?.requestId);
}

/** The ledger has no charge for a request, and no credit is held for it. */
async function assertNothingBooked(requestId: unknown): Promise<void> {
  const [booked] = await panel.pool.query(
    "select sum(granted_micro + purchased_micro) as sum, sum(held_micro) as held from ledger where reference = $1",
    [requestId],
  );
  assert.deepEqual([Number(booked?.sum), Number(booked?.held)], [0, 0]);
}

const status = (transport: string, rpc: string) => (/REST|SSE/.test(transport) ? 422 : rpc);

const FILTERED: Reply = { text: [], finish: "content-filter" };

const REFUSALS: [name: string, replies: Reply | Record<VendorKind, Reply>][] = [
  ["a safety filter", FILTERED],
  [
    "each vendor's own refusal",
    {
      openai: { status: 400, error: { code: "content_filter", message: "The response was filtered." } },
      anthropic: FILTERED,
      google: { raw: '{"promptFeedback":{"blockReason":"SAFETY"}}' },
    },
  ],
];

describe.each(TRANSPORTS)("content_refused over %s", (transport) => {
  test.for(REFUSALS)("follows %s of every model, uncharged", async ([, replies]) => {
    // A whole body of Gemini is one event of its stream.
    everyVendor(replies);
    panel.vendors.google.always(({ streamed }) => {
      const reply = isPerVendor(replies) ? replies.google : replies;
      return streamed && reply.raw ? { raw: `data: ${reply.raw}\n\n` } : reply;
    });
    for (const effort of ["low", "high"] as const) {
      const prompt = "Write a short story about a lighthouse keeper.";
      const outcome = await ask(transport, { prompt, effort });
      await assertFailure(outcome, "content_refused", "", status(transport, "failed_precondition"));
      assert.match(outcome.failure?.message ?? "", /[Cc]hanging the request/);
      for (const kind of KINDS) assert.ok(panel.vendors[kind].calls.length > 0, kind);
    }
  });

  test("does not occur while another model answers", async () => {
    everyVendor({ openai: FILTERED, anthropic: FILTERED, google: { text: "Once upon a time." } });
    const { text, end } = await ask(transport, { prompt: "Tell me a story." });
    assert.equal(text, "Once upon a time.");
    assert.equal(end?.finish, "stop");
    assert.equal(end?.usage.credits, credits(tokenizer.count("Tell me a story."), 0, tokenizer.count(text)));
    assert.equal((await rowOf(panel.pool, end?.id)).model, "member-google-fast");
  });
});

describe("content_refused while a model's circuit is open", () => {
  const brokenLifetime = fileLifetime();
  afterAll(() => brokenLifetime.end());

  test("follows the refusals of the models that are asked, and no failure of one", async () => {
    const { vendors, service, script } = await startPanel(brokenLifetime);
    script({});
    const send = callers(service).REST ?? assert.fail();
    const failure: Reply = { status: 500, headers: { "x-should-retry": "false" } };
    const refuse = async () => {
      vendors.anthropic.always(FILTERED);
      vendors.google.always(FILTERED);
      return (await send({ prompt: "Tell me a story.", effort: "low" })).failure?.code;
    };
    vendors.openai.always(failure);
    assert.equal(await refuse(), "upstream_failed");
    vendors.anthropic.always({});
    vendors.google.always({});
    // Each of OpenAI's two models has its own circuit.
    for (const effort of ["low", "high"] as const) {
      for (let isAsked = true; isAsked; ) {
        vendors.openai.calls.length = 0;
        await send({ prompt: "Tell me a story.", effort });
        isAsked = vendors.openai.calls.length > 0;
      }
    }
    assert.equal(await refuse(), "content_refused");
  });
});

describe.each(TRANSPORTS)("content_filter over %s", (transport) => {
  test.each(KINDS)("gives the text so far of %s, uncharged", async (kind) => {
    // The other vendors cannot answer, so this one does.
    for (const other of KINDS) panel.vendors[other].always({ status: 400 });
    panel.vendors[kind].always({ text: ["Once ", "upon "], finish: "content-filter" });
    const { text, end } = await ask(transport, { prompt: "Tell me a story." });
    assert.equal(text, "Once upon ");
    assert.equal(end?.finish, "content_filter");
    assert.deepEqual(end?.notices, ["content_filtered"]);
    assert.deepEqual([end?.usage.output, end?.usage.credits], [tokenizer.count(text), 0]);
    const row = await rowOf(panel.pool, end?.id);
    assert.deepEqual([row.outcome, row.finish_reason, row.credits_micro], ["cut_short", "content_filter", 0n]);
    await assertNothingBooked(row.request_id);
  });
});

/** How each vendor says that a prompt is too long. */
const TOO_LONG: Record<VendorKind, Reply> = {
  openai: { status: 400, error: { code: "context_length_exceeded", message: "This model's maximum context is 8192." } },
  anthropic: {
    status: 400,
    error: { type: "invalid_request_error", message: "prompt is too long: 200001 tokens > 200000 maximum" },
  },
  google: {
    status: 400,
    error: { type: "INVALID_ARGUMENT", message: "The input token count (2) exceeds the maximum number of tokens (1)." },
  },
};

const REQUESTS: [field: string, request: Request][] = [
  ["prompt", { prompt: LONG }],
  ["messages", { messages: [{ role: "user", content: LONG }] }],
];

describe.each(TRANSPORTS)("request_too_long over %s", (transport) => {
  test.for(REQUESTS)("names %s when all vendors refuse the length, uncharged", async ([field, request]) => {
    everyVendor(TOO_LONG);
    for (const effort of ["low", "high"] as const) {
      const outcome = await ask(transport, { ...request, effort });
      await assertFailure(outcome, "request_too_long", field, status(transport, "invalid_argument"));
      for (const kind of KINDS) assert.ok(panel.vendors[kind].calls.length > 0, kind);
    }
  });

  test("does not occur while another model answers", async () => {
    everyVendor({ ...TOO_LONG, anthropic: { text: "That is long." } });
    const { text, end } = await ask(transport, { prompt: LONG });
    assert.deepEqual([text, end?.finish], ["That is long.", "stop"]);
  });
});

describe("an answer whose correction exceeds the context window of every model", () => {
  const schema = {
    type: "object",
    properties: { a: { type: "integer" } },
    required: ["a"],
    additionalProperties: false,
  };
  const STRONG = /gpt-4o"|claude-sonnet|gemini-2\.5-pro/;

  /** The service sends the answer of the first try with its errors, which is longer than the request. */
  function whole(first: Reply, ofStrong = first): void {
    for (const kind of KINDS)
      panel.vendors[kind].always(({ body, path }) => {
        if (body.includes("That is not valid")) return TOO_LONG[kind];
        return STRONG.test(body + path) ? ofStrong : first;
      });
  }

  /** Asks over REST. @returns the status, and the code of the failure or the answer */
  async function send(request: object): Promise<[number, string | undefined]> {
    const response = await panel.service.post("/v1/generate", { prompt: "Tell me a.", ...request });
    const { code, answer } = (await response.json()) as { code?: string; answer?: string };
    return [response.status, code ?? answer];
  }

  test("is asked of the other tier", async () => {
    const asksForObject = { response_format: { type: "json_schema", schema } };
    whole({ text: "{}" });
    for (const effort of ["low", "high"])
      assert.deepEqual(await send({ effort, ...asksForObject }), [502, "structured_output_failed"]);
    whole({ text: "{}" }, { text: '{"a":1}' });
    assert.deepEqual(await send({ effort: "low", ...asksForObject }), [200, '{"a":1}']);
  });

  test("fails where it is a call, as calls that are not valid do", async () => {
    whole({ text: [], calls: [{ name: "f", arguments: "{}" }] });
    const tools = [{ name: "f", parameters: schema }];
    assert.deepEqual(await send({ effort: "low", tools }), [502, "structured_output_failed"]);
  });
});

describe("a request that exceeds the context window of every model", () => {
  const smallLifetime = fileLifetime();
  let small: typeof panel;
  beforeAll(async () => {
    const windows = { openai: { context_tokens: 100 }, anthropic: { context_tokens: 150 } };
    small = await startPanel(smallLifetime, {}, { ...windows, google: { context_tokens: 120 } });
  });
  afterAll(() => smallLifetime.end());

  test.each(TRANSPORTS)("fails without a call over %s", async (transport) => {
    const send = callers(small.service)[transport] ?? assert.fail();
    small.script({});
    for (const [field, request] of REQUESTS) {
      for (const effort of ["low", "medium", "high"] as const) {
        const { failure } = await send({ ...request, effort });
        assert.deepEqual([failure?.code, failure?.field], ["request_too_long", field]);
      }
    }
    assert.deepEqual(small.calls(), []);
    const { end } = await send({ prompt: "word ".repeat(110) });
    assert.equal(end?.finish, "stop");
  });

  // A server with a window that is too small may cut the beginning off and answer the rest.
  test("reaches no model whose window is too small, also if it nearly fills that of another", async () => {
    for (const effort of ["low", "medium", "high"] as const) {
      small.script({});
      const { end } = await (callers(small.service).REST ?? assert.fail())({ prompt: "word ".repeat(140), effort });
      assert.equal(end?.finish, "stop");
      assert.deepEqual([small.vendors.openai.calls.length, small.vendors.google.calls.length], [0, 0], effort);
    }
  });
});

describe.each(TRANSPORTS)("a thinking model over %s", (transport) => {
  test.each(KINDS)("answers within a small max_tokens (%s)", async (kind) => {
    for (const other of KINDS) panel.vendors[other].always({ status: 400 });
    // Like a model that needs 1,000 tokens to think before its first word.
    panel.vendors[kind].always(({ json }) => {
      const ceiling = ceilingOf(json);
      return ceiling !== undefined && ceiling < 1_010
        ? { text: [], finish: "length", usage: { output: ceiling, thoughts: ceiling } }
        : { text: ["one two three ", "four five six"], usage: { output: 1_006, thoughts: 1_000 } };
    });
    const { text, end } = await ask(transport, { prompt: "Count.", max_tokens: 3 });
    assert.equal(text, "one two three");
    assert.equal(end?.finish, "length");
    assert.deepEqual([end?.usage.output, end?.usage.credits], [3, credits(tokenizer.count("Count."), 0, 3)]);
    assert.deepEqual(end?.notices, []);
  });

  test.each(KINDS)("gives way to another model when it uses up all room to think (%s)", async (kind) => {
    const exhausted: Reply = { text: [], finish: "length", usage: { output: 4_099, thoughts: 0 } };
    const others = KINDS.filter((other) => other !== kind);
    panel.vendors[kind].always(exhausted);
    for (const other of others) panel.vendors[other].always({ text: "one two three" });
    const { text, end } = await ask(transport, { prompt: "Count.", max_tokens: 3 });
    assert.deepEqual([text, end?.usage.output], ["one two three", 3]);
    for (const other of others) panel.vendors[other].always(exhausted);
    const expected = /REST|SSE/.test(transport) ? 502 : "unavailable";
    await assertFailure(await ask(transport, { prompt: "Count.", max_tokens: 3 }), "upstream_failed", "", expected);
  });

  test.each(KINDS)("does not deliver or charge its <think> text (%s)", async (kind) => {
    for (const other of KINDS) panel.vendors[other].always({ status: 400 });
    panel.vendors[kind].always({ text: ["<thi", "nk>The user wants ", "6 * 7.</thi", "nk>\n\n", "It is ", "42."] });
    const { text, end } = await ask(transport, { prompt: "What is 6 * 7?" });
    assert.equal(text, "It is 42.");
    const output = tokenizer.count("It is 42.");
    assert.deepEqual(
      [end?.usage.output, end?.usage.credits],
      [output, credits(tokenizer.count("What is 6 * 7?"), 0, output)],
    );
  });
});

/** The output cap in a call of a vendor. */
function ceilingOf(json: Record<string, unknown>): number | undefined {
  const config = { ...json, ...(json.generationConfig as object | undefined) } as Record<string, number | undefined>;
  return config.max_completion_tokens ?? config.max_tokens ?? config.maxOutputTokens;
}

describe("upstream_failed, where all vendors refuse the key", () => {
  const refusedLifetime = fileLifetime();
  afterAll(() => refusedLifetime.end());

  test("says over every transport that the operator must act, and names no vendor", async () => {
    const { vendors, service } = await startPanel(refusedLifetime);
    for (const kind of KINDS) vendors[kind].always({ status: 401, error: { message: "secret words" } });
    // The later requests find open circuits, whose last failure is the same.
    for (const transport of [...TRANSPORTS, ...TRANSPORTS]) {
      const { failure } = (await callers(service)[transport]?.({ prompt: "Tell me a story.", effort: "high" })) ?? {};
      assert.equal(failure?.code, "upstream_failed", transport);
      assert.match(failure.message, /Waiting does not help; the operator must correct them/, transport);
      assert.doesNotMatch(JSON.stringify(failure), /retry_?after/i, transport);
      assert.doesNotMatch(JSON.stringify(failure), /secret|openai|anthropic|google|later/i, transport);
      assert.doesNotMatch(JSON.stringify(failure), NAMES);
    }
  });
});
