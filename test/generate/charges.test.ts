import assert from "node:assert/strict";
import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { describe } from "vitest";
import { FinishReason, GenerationService } from "../../gen/chorus/v1/generation_pb.js";
import { type Bench, test as base, credits, rowOf } from "../helpers/bench.ts";
import { envelope, grpcCall } from "../helpers/grpc.ts";
import { transports } from "../helpers/rpc.ts";
import { eventsOf } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";

interface Request {
  prompt: string;
  effort?: "low" | "medium";
  maxTokens?: number;
}

/** What a caller received, over any transport. */
interface Given {
  text: string;
  finish?: "stop" | "length";
  credits?: number;
  notices?: string[];
  failed?: boolean;
}

/** The end of an answer over REST. */
interface End {
  answer: string;
  usage: { credits: number };
  finish_reason: "stop" | "length";
  notices: Array<{ code: string }>;
}

/** Sends a request. A caller leaves a stream after the text `after`, and a unary call on `signal`. */
type Ask = (request: Request, leave?: { after?: string; signal?: AbortSignal }) => Promise<Given>;

const EFFORTS = { low: 2, medium: 3 } as const;

let marker = 0;

/** A request with a number of input tokens that no other request has. */
function fresh(): Request {
  marker += 1;
  return { prompt: "word ".repeat(marker + 3).trim(), effort: "low" };
}

const test = base.extend(
  "callers",
  ({ harness }) =>
    (way: Way) =>
      createCallers(harness, way),
);

describe.for(["REST", "Connect", "gRPC"] as const)("the charge table over %s", (way) => {
  test("charges a whole answer for input and output", async ({ harness: { openai, count }, callers }) => {
    const { each, charged } = callers(way);
    openai.always({ text: ["Paris ", "it ", "is."], usage: { input: 9, cached: 2, output: 3 } });
    for (const [kind, ask] of Object.entries(each)) {
      const request = fresh();
      const answer = await ask(request);
      const price = credits(count(request.prompt), 2, count("Paris it is."));
      assert.deepEqual(answer, { text: "Paris it is.", finish: "stop", credits: price, notices: [] }, kind);
      await charged(request, "ok", price);
    }
  });

  test("charges an answer that max_tokens ended for what was delivered", async ({
    harness: { openai, count },
    callers,
  }) => {
    const { each, charged } = callers(way);
    openai.always({ text: ["one two ", "three four ", "five six"] });
    for (const [kind, ask] of Object.entries(each)) {
      const request = { ...fresh(), maxTokens: 2 };
      const answer = await ask(request);
      const price = credits(count(request.prompt), 0, 2);
      assert.deepEqual([answer.finish, answer.credits], ["length", price], kind);
      assert.equal(count(answer.text), 2);
      await charged(request, "ok", price);
    }
  });

  test("does not charge an answer that the vendor ended long before max_tokens", async ({
    harness: { openai },
    callers,
  }) => {
    const { each, charged } = callers(way);
    openai.always({ text: "one two three", finish: "length", usage: { input: 9, output: 3 } });
    for (const [kind, ask] of Object.entries(each)) {
      const request = { ...fresh(), maxTokens: 10_000 };
      const answer = await ask(request);
      assert.deepEqual(answer, { text: "one two three", finish: "length", credits: 0, notices: ["cut_short"] }, kind);
      await charged(request, "cut_short", 0);
    }
  });

  test("does not charge an answer that the service ends at its own ceiling", async ({
    harness: { openai },
    callers,
  }) => {
    const { each, charged } = callers(way);
    openai.always({ text: Array.from({ length: 33 }, () => "word ".repeat(1_000)) });
    for (const [kind, ask] of Object.entries(each)) {
      const request = fresh();
      const { text, ...answer } = await ask(request);
      assert.equal(text.trim().split(" ").length, 32_000, kind);
      assert.deepEqual(answer, { finish: "length", credits: 0, notices: ["cut_short"] }, kind);
      await charged(request, "cut_short", 0);
      const limited = { ...fresh(), maxTokens: 32_000 };
      assert.deepEqual((await ask(limited)).notices, [], kind);
    }
  });

  test("does not charge an answer that ends at the model's ceiling, which is below max_tokens", async ({
    harness: { openai },
    callers,
  }) => {
    const { each, charged } = callers(way);
    openai.reply({ status: 400, error: { message: "max_tokens: 20000 > 16384", type: "invalid_request_error" } });
    openai.always({ text: "word ".repeat(16_000), finish: "length", usage: { input: 9, output: 16_384 } });
    for (const [kind, ask] of Object.entries(each)) {
      const request = { ...fresh(), maxTokens: 20_000 };
      const { text: _, ...answer } = await ask(request);
      assert.deepEqual(answer, { finish: "length", credits: 0, notices: ["cut_short"] }, kind);
      await charged(request, "cut_short", 0);
    }
  });

  test("does not charge an answer for which less than max_tokens fitted into the context window", async ({
    harness: { openai },
    callers,
  }) => {
    const { each, charged } = callers(way);
    const message =
      "This model's maximum context length is 16385 tokens. However, you requested 19000 tokens (7000 in the " +
      "messages, 12000 in the completion).";
    openai.always({ text: "word ".repeat(9_000), finish: "length", usage: { input: 7_000, output: 9_385 } });
    for (const [kind, ask] of Object.entries(each)) {
      openai.reply({ status: 400, error: { message, code: "context_length_exceeded" } });
      const request = { ...fresh(), maxTokens: 12_000 };
      const { text: _, ...answer } = await ask(request);
      assert.deepEqual(answer, { finish: "length", credits: 0, notices: ["cut_short"] }, kind);
      await charged(request, "cut_short", 0);
    }
  });

  test("does not charge a unary caller who left, and aborts the work", async ({ harness: { openai }, callers }) => {
    const { unary, charged, arrival } = callers(way);
    openai.always({ end: "silent" });
    const request = fresh();
    const leaving = new AbortController();
    const asked = unary(request, { signal: leaving.signal });
    const call = await arrival();
    leaving.abort();
    assert.equal((await asked).failed, true);
    assert.equal(await call.ended, "aborted");
    await charged(request, "caller_gone", 0);
  });

  test("charges a caller who left a stream for input and what was written", async ({
    harness: { openai, count },
    callers,
  }) => {
    const { stream, charged } = callers(way);
    openai.always({ text: ["alpha ", "beta ", "gamma ", "delta"], end: "hang", after: 3 });
    const request = fresh();
    const { text } = await stream(request, { after: "alpha beta gamma " });
    await charged(request, "caller_gone", credits(count(request.prompt), 0, count(text)));
  });

  test("does not charge an answer that the service cuts short", async ({ harness: { openai, anthropic }, callers }) => {
    const { stream, charged } = callers(way);
    openai.always({ text: ["alpha ", "beta"], end: "hang", after: 1 });
    anthropic.always({ text: ["alpha ", "beta"], end: "hang", after: 1 });
    const request = { ...fresh(), effort: "medium" as const };
    const answer = await stream(request);
    assert.deepEqual(answer, { text: "alpha ", finish: "length", credits: 0, notices: ["cut_short"] });
    await charged(request, "cut_short", 0);
  });

  test("does not charge a stream whose vendor failed after some text", async ({ harness: { openai }, callers }) => {
    const { stream, charged } = callers(way);
    openai.always({ text: ["alpha ", "beta"], end: "reset", after: 1 });
    const request = fresh();
    const answer = await stream(request);
    assert.deepEqual(answer, { text: "alpha ", failed: true });
    await charged(request, "upstream_failed", 0);
  });

  test("does not charge a failure", async ({ harness: { openai, anthropic }, callers }) => {
    const { each, charged } = callers(way);
    const refusal = { status: 400, error: { message: "No." } };
    openai.always(refusal);
    anthropic.always(refusal);
    for (const [kind, ask] of Object.entries(each)) {
      const request = fresh();
      assert.deepEqual(await ask(request), { text: "", failed: true }, kind);
      await charged(request, "upstream_failed", 0);
    }
  });
});

test("tells a stream whose caller's deadline has passed that it is charged", async ({ t, harness, callers }) => {
  const { openai, service, count } = harness;
  const { charged } = callers("gRPC");
  const path = "/chorus.v1.GenerationService/StreamGenerate";
  const headers = { "x-api-key": service.apiKey, "grpc-timeout": "500m", "content-type": "application/grpc+json" };
  for (const [script, text] of [
    [{ text: ["alpha ", "beta"], end: "hang", after: 1 }, "alpha "],
    [{ end: "silent" }, ""],
  ] as const) {
    openai.always(script);
    const request = fresh();
    const { trailers } = await grpcCall(t, service.rpcUrl, path, headers, envelope(JSON.stringify(request)));
    assert.equal(trailers["grpc-status"], "4");
    assert.match(`${trailers["grpc-message"]}`, /^The deadline of the call passed\. .* are charged\.$/);
    await charged(request, "caller_gone", credits(count(request.prompt), 0, count(text)));
  }
});

type Way = "REST" | "Connect" | "gRPC";

function createCallers({ openai, service, pool, count, auth }: Bench, way: Way) {
  const headers = { "x-api-key": service.apiKey };
  const { gRPC, "Connect over HTTP/1.1": connect } = transports(service.rpcUrl);
  const ways = {
    REST: () => ({ unary: restUnary, stream: restStream }),
    Connect: () => rpc(createClient(GenerationService, connect)),
    gRPC: () => rpc(createClient(GenerationService, gRPC)),
  };
  const each = ways[way]();
  return { ...each, each, charged, arrival };

  /** Waits for the record of a request, and compares it and the ledger with what should have been charged. */
  async function charged(request: Request, outcome: string, price: number): Promise<void> {
    const tokens = count(request.prompt);
    const find = () => pool.query<{ id: string }>("select id from generations where input_tokens = $1", [tokens]);
    await until(async () => (await find()).length > 0);
    const settled = (await find()).at(-1) ?? assert.fail();
    const row = await rowOf(pool, settled.id);
    assert.deepEqual([row.outcome, Number(row.credits_micro) / 1e6], [outcome, price]);
    const [booked] = await pool.query<{ sum: string; held: string }>(
      "select sum(granted_micro + purchased_micro) as sum, sum(held_micro) as held from ledger where reference = $1",
      [row.request_id],
    );
    assert.deepEqual([Number(booked?.sum) / -1e6 + 0, Number(booked?.held)], [price, 0]);
    await pool.query("update generations set input_tokens = -input_tokens where id = $1", [settled.id]);
  }

  /** The vendor's call that is in flight. */
  async function arrival() {
    const before = openai.calls.length;
    await until(() => openai.calls.length > before);
    return openai.calls[before] ?? assert.fail();
  }

  async function restUnary(request: Request, leave?: { signal?: AbortSignal }): Promise<Given> {
    const { maxTokens, ...rest } = request;
    const body = JSON.stringify({ ...rest, max_tokens: maxTokens });
    try {
      const response = await fetch(`${service.url}/v1/generate`, {
        method: "POST",
        headers: auth,
        body,
        ...(leave?.signal ? { signal: leave.signal } : {}),
      });
      if (!response.ok) return { text: "", failed: true };
      const end = JSON.parse(await response.text()) as End;
      return { text: end.answer, ...given(end) };
    } catch {
      return { text: "", failed: true };
    }
  }

  async function restStream(request: Request, leave?: { after?: string }): Promise<Given> {
    const { maxTokens, ...rest } = request;
    const response = await service.post("/v1/generate:stream", { ...rest, max_tokens: maxTokens });
    if (!response.ok) return { text: "", failed: true };
    let text = "";
    for await (const { event, data } of eventsOf(response)) {
      if (event === "delta") text += data.text;
      if (event === "error") return { text, failed: true };
      if (event === "done") return { text, ...given(data as unknown as End) };
      if (text === leave?.after) break;
    }
    return { text };
  }

  function rpc(client: Client<typeof GenerationService>): { unary: Ask; stream: Ask } {
    const messageOf = ({ effort, ...rest }: Request) => ({ ...rest, effort: EFFORTS[effort ?? "low"] });
    return {
      async unary(request, leave) {
        try {
          const options = { headers, ...(leave?.signal ? { signal: leave.signal } : {}) };
          const { answer, usage, finishReason, notices } = await client.generate(messageOf(request), options);
          return { text: answer, finish: word(finishReason), credits: usage?.credits ?? -1, notices: codes(notices) };
        } catch (error) {
          assert.ok(error instanceof ConnectError);
          return { text: "", failed: true };
        }
      },
      async stream(request, leave) {
        let text = "";
        const leaving = new AbortController();
        const options = { headers, signal: leaving.signal };
        try {
          for await (const { event } of client.streamGenerate(messageOf(request), options)) {
            if (event.case === "delta") text += event.value.text;
            if (event.case === "done") {
              const { finishReason, usage, notices } = event.value;
              return { text, finish: word(finishReason), credits: usage?.credits ?? -1, notices: codes(notices) };
            }
            if (text === leave?.after) break;
          }
          // This client does not end a call when its reader stops.
          leaving.abort();
          return { text };
        } catch (error) {
          assert.ok(error instanceof ConnectError);
          return { text, failed: true };
        }
      },
    };
  }
}

function given({ usage, finish_reason, notices }: End): Omit<Given, "text"> {
  return { finish: finish_reason, credits: usage.credits, notices: codes(notices) };
}

function word(reason: FinishReason): "stop" | "length" {
  return reason === FinishReason.STOP ? "stop" : "length";
}

function codes(notices: Array<{ code: string }>): string[] {
  return notices.map(({ code }) => code);
}
