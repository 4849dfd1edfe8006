import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, test } from "vitest";
import { GenerationService } from "../../gen/chorus/v1/generation_pb.js";
import { textOf } from "../helpers/bench.ts";
import { NAMES, startPanel } from "../helpers/panel.ts";
import { rpcFailure, transports } from "../helpers/rpc.ts";
import { readEvents } from "../helpers/service.ts";
import type { Reply, VendorKind } from "../helpers/vendors.ts";
import { fileLifetime } from "./callers.ts";

const KINDS = ["openai", "anthropic", "google"] as const;

interface Refusal {
  /** HTTP status, or the Connect code. */
  status: number | string;
  code: string;
  message: string;
  /** `Retry-After` in milliseconds, or RetryInfo. */
  waitMs: number | undefined;
  /** `retry_after_ms`. */
  exactMs: number | undefined;
}

type Ask = (effort: "low" | "medium" | "high") => Promise<Refusal>;

/** Every way to call the service, by name. */
function asks({ url, rpcUrl, apiKey, post }: Awaited<ReturnType<typeof startPanel>>["service"]): Record<string, Ask> {
  assert.ok(url);
  const prompt = "Tell me a story.";
  const overRest =
    (path: string): Ask =>
    async (effort) => {
      const response = await post(path, { prompt, effort });
      const seconds = response.headers.get("retry-after");
      const [event] = response.status === 200 ? await readEvents(response) : [];
      const body = event?.data ?? ((await response.json()) as Record<string, unknown>);
      return {
        status: response.status,
        code: String(body.code),
        message: String(body.message),
        waitMs: seconds === null ? undefined : Number(seconds) * 1_000,
        exactMs: body.retry_after_ms as number | undefined,
      };
    };
  const client = createClient(GenerationService, transports(rpcUrl).gRPC);
  const overRpc =
    (isStreamed: boolean): Ask =>
    async (effort) => {
      const headers = { "x-api-key": apiKey };
      const request = { prompt, effort: { low: 1, medium: 2, high: 3 }[effort] };
      const call = isStreamed ? client.streamGenerate(request, { headers }) : client.generate(request, { headers });
      const { code, message, detail, retry } = await rpcFailure(call);
      const { seconds = 0n, nanos = 0 } = retry?.retryDelay ?? {};
      return {
        status: code,
        code: detail?.code ?? "",
        message,
        waitMs: retry ? Number(seconds) * 1_000 + nanos / 1e6 : undefined,
        exactMs: detail?.retryAfterMs === undefined ? undefined : Number(detail.retryAfterMs),
      };
    };
  return {
    REST: overRest("/v1/generate"),
    SSE: overRest("/v1/generate:stream"),
    gRPC: overRpc(false),
    "gRPC, streamed": overRpc(true),
  };
}

const lifetime = fileLifetime();
let panel: Awaited<ReturnType<typeof startPanel>>;
let ways: Record<string, Ask>;
beforeAll(async () => {
  panel = await startPanel(lifetime);
  ways = asks(panel.service);
});
afterAll(() => lifetime.end());

function always(replies: Record<VendorKind, Reply>): void {
  for (const kind of KINDS) panel.vendors[kind].always(replies[kind]);
}

const limited = (wait: string): Reply => ({ status: 429, headers: { "retry-after": wait } });

test("another vendor answers at once when one asks for a wait of seconds", async () => {
  always({ openai: limited("4"), anthropic: { text: "Hello." }, google: { text: "Hello." } });
  const { answer } = await panel.ask({ prompt: "Say hello.", effort: "low" });
  const events = await panel.stream({ prompt: "Say hello.", effort: "low" });
  assert.deepEqual([answer, textOf(events)], ["Hello.", "Hello."]);
  // It is not called again after the wait.
  assert.equal(panel.vendors.openai.calls.length, 2);
});

test("asks the vendor with the shortest wait again when no other one answers", async () => {
  always({ openai: limited("2"), anthropic: { status: 401 }, google: limited("90") });
  const { openai } = panel.vendors;
  for (const ask of [panel.ask, panel.stream]) {
    openai.reset();
    openai.always(() => (openai.calls.length > 2 ? { text: "Hello." } : limited("2")));
    const answer = await ask({ prompt: "Say hello.", effort: "low" });
    assert.match(JSON.stringify(answer), /Hello\./);
    assert.equal(openai.calls.length, 3);
  }
});

test("503 with the shortest wait when all vendors throttle, also once their circuits are open", async () => {
  const date = new Date(Date.now() + 600_000).toUTCString();
  always({ openai: limited("99999999999"), anthropic: limited("120"), google: limited(date) });
  let isFirst = true;
  let isOpen = false;
  for (let round = 0; round < 3 || !isOpen; round++) {
    for (const [way, ask] of Object.entries(ways)) {
      panel.vendors.anthropic.calls.length = 0;
      const { status, code, message, waitMs = 0, exactMs = 0 } = await ask("low");
      isOpen = panel.vendors.anthropic.calls.length === 0;
      assert.deepEqual([status, code], [/REST|SSE/.test(way) ? 503 : "Unavailable", "overloaded"], message);
      assert.doesNotMatch(message, NAMES);
      assert.ok(exactMs > 0 && exactMs <= 120_000, `${way}: ${exactMs}`);
      assert.equal(waitMs, /REST|SSE/.test(way) ? Math.ceil(exactMs / 1_000) * 1_000 : exactMs);
      if (isFirst) assert.equal(exactMs, 120_000);
      isFirst = false;
    }
  }
  const { code, exactMs = 0 } = await (ways.REST ?? assert.fail())("high");
  assert.ok(code === "overloaded" && exactMs <= 120_000);
});

describe("with other failures", () => {
  const otherLifetime = fileLifetime();
  beforeAll(async () => {
    panel = await startPanel(otherLifetime);
    ways = asks(panel.service);
  });
  afterAll(() => otherLifetime.end());

  const DENIED: Record<VendorKind, Reply> = {
    openai: { status: 401 },
    anthropic: { status: 403, error: { type: "permission_error", message: "no access" } },
    google: { status: 404, error: { message: "models/gemini is not found" } },
  };

  test("502 that names the operator when the vendors refuse keys and models, also at open circuits", async () => {
    always(DENIED);
    for (let round = 0; round < 3; round++) {
      for (const [way, ask] of Object.entries(ways)) {
        for (const effort of ["low", "high"] as const) {
          const { status, code, message, waitMs, exactMs } = await ask(effort);
          const isEvent = way === "SSE" && effort === "high";
          assert.deepEqual([code, waitMs, exactMs], ["upstream_failed", undefined, undefined], way);
          assert.equal(status, isEvent ? 200 : /REST|SSE/.test(way) ? 502 : "Unavailable");
          assert.match(message, /operator must/);
          assert.doesNotMatch(message, NAMES);
        }
      }
    }
  });

  test("502 to be repeated when one vendor fails otherwise, and 503 when one throttles", async () => {
    always({ ...DENIED, google: { status: 500, headers: { "x-should-retry": "false" } } });
    const { code, message } = await (ways.REST ?? assert.fail())("low");
    assert.equal(code, "upstream_failed");
    assert.doesNotMatch(message, /operator/);
    assert.match(message, /again/);
    always({ ...DENIED, google: limited("9") });
    for (const [way, ask] of Object.entries(ways)) assert.equal((await ask("low")).code, "overloaded", way);
  });
});
