import assert from "node:assert/strict";
import { describe, vi } from "vitest";
import { anthropicRateHeaders, standardRateHeaders } from "../../../src/transport/call/rate-headers.ts";
import { test as base } from "../../helpers/fixtures.ts";
import { setLimits } from "../../helpers/limits.ts";

const HELLO = [{ role: "user", content: "Hello" }];
const NAMES = ["requests_per_minute", "input_tokens_per_minute", "output_tokens_per_minute", "requests_per_day"];

type Limits = Record<string, bigint>;

/** Sets limits for one test. */
const test = base.extend("limited", ({ database, onTestFinished }) => async (limits: Limits) => {
  onTestFinished(() =>
    setLimits(
      database.pool,
      "default",
      NAMES.map((name) => ({ name, to: "default" as const })),
    ),
  );
  await setLimits(
    database.pool,
    "default",
    Object.entries(limits).map(([name, to]) => ({ name, to })),
  );
});

/** The policies of a structured field: their parameters by name. */
function parse(field: string | null): Record<string, Record<string, string>> {
  const members = (field ?? "").split(", ").filter((text) => text !== "");
  return Object.fromEntries(
    members.map((text) => {
      const [, name = "", rest = ""] = /^"([a-z_]+)"((?:;[a-z]+=(?:\d+|"[a-z]+"))+)$/.exec(text) ?? assert.fail(text);
      return [
        name,
        Object.fromEntries(
          rest
            .slice(1)
            .split(";")
            .map((pair) => pair.split("=")),
        ),
      ];
    }),
  );
}

describe("the rate limits of the workspace", () => {
  test("are in the fields of the standard, on answers, streams and refusals", async ({ service, limited }) => {
    await limited({ requests_per_minute: 1_000n, input_tokens_per_minute: 50_000n, requests_per_day: 2_000n });
    let last = 1_000;
    for (const path of ["/v1/generate", "/v1/generate:stream"]) {
      const { status, headers } = await service.post(path, { prompt: "Hello" });
      assert.equal(status, 200);
      assert.deepEqual(parse(headers.get("ratelimit-policy")), {
        requests_per_minute: { q: "1000", w: "60" },
        requests_per_day: { q: "2000", w: "86400" },
        input_tokens_per_minute: { q: "50000", qu: '"tokens"', w: "60" },
      });
      const state = parse(headers.get("ratelimit"));
      const { r, t } = state.requests_per_minute ?? assert.fail();
      assert.ok(Number(r) < last && Number(t) > 0 && Number(t) <= 60, headers.get("ratelimit") ?? "");
      last = Number(r);
    }
  });

  test("are in the headers of each format's clients", async ({ service, limited }) => {
    await limited({ requests_per_minute: 1_000n, input_tokens_per_minute: 50_000n, output_tokens_per_minute: 9_000n });
    const chat = await service.post("/v1/chat/completions", { messages: HELLO });
    assert.equal(chat.headers.get("x-ratelimit-limit-requests"), "1000");
    assert.ok(Number(chat.headers.get("x-ratelimit-remaining-requests")) < 1_000);
    assert.match(chat.headers.get("x-ratelimit-reset-requests") ?? "", /^(\d+|1m0)s$/);
    assert.equal(chat.headers.get("x-ratelimit-limit-tokens"), "50000");
    const { headers } = await service.post("/v1/messages", { max_tokens: 9, messages: HELLO, stream: true });
    assert.equal(headers.get("anthropic-ratelimit-requests-limit"), "1000");
    assert.ok(Number(headers.get("anthropic-ratelimit-input-tokens-remaining")) < 50_000);
    assert.equal(headers.get("anthropic-ratelimit-output-tokens-limit"), "9000");
    const reset = new Date(headers.get("anthropic-ratelimit-requests-reset") ?? "");
    assert.ok(Math.abs(reset.getTime() - Date.now()) < 120_000);
    assert.ok(headers.get("ratelimit"));
  });

  test("are on a refusal too, with nothing left", async ({ service, limited }) => {
    await limited({ requests_per_minute: 0n });
    for (const path of ["/v1/generate", "/v1/messages", "/v1/messages"]) {
      const { status, headers } = await service.post(path, { max_tokens: 9, messages: HELLO });
      assert.equal(status, 429, path);
      assert.equal(parse(headers.get("ratelimit")).requests_per_minute?.r, "0");
      if (path === "/v1/messages") assert.equal(headers.get("anthropic-ratelimit-requests-remaining"), "0");
    }
  });

  test("are absent where there is none", async ({ service }) => {
    const { headers } = await service.post("/v1/messages", { max_tokens: 9, messages: HELLO });
    const names = [...headers.keys()].filter((name) => name.includes("ratelimit"));
    assert.deepEqual(names, []);
  });
});

base("the time of Anthropic's format at which a window is full again is not before its end", ({ onTestFinished }) => {
  vi.useFakeTimers({ now: Date.parse("2026-11-29T03:50:10.400Z"), toFake: ["Date"] });
  onTestFinished(() => void vi.useRealTimers());
  const of = { name: "requests_per_minute", figure: "requests", limit: 9, remaining: 8, windowSeconds: 60 } as const;
  const resetIn = (resetMs: number) => anthropicRateHeaders([{ ...of, resetMs }]).at(-1);
  assert.equal(resetIn(49_600), "2026-11-29T03:51:00Z");
  assert.equal(resetIn(49_599.5), "2026-11-29T03:51:00Z");
  assert.equal(resetIn(49_600.4), "2026-11-29T03:51:00Z");
  assert.equal(resetIn(50_000), "2026-11-29T03:51:01Z");
});

base("writing the headers takes a few microseconds of processor time", () => {
  const limits = (["requests", "input_tokens", "output_tokens"] as const).map((figure) => {
    const name = `${figure}_per_minute`;
    return { name, figure, limit: 1_000, remaining: 900, windowSeconds: 60, resetMs: 30_000 };
  });
  let length = 0;
  for (let i = 0; i < 20_000; i++) length += standardRateHeaders(limits).length;
  const { user } = process.cpuUsage();
  for (let i = 0; i < 20_000; i++) length += standardRateHeaders(limits).length;
  const each = (process.cpuUsage().user - user) / 20_000;
  assert.equal(length, 160_000);
  // The bound leaves room for a busy machine.
  assert.ok(each < 10, `${each} µs`);
});
