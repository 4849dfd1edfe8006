import assert from "node:assert/strict";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { generateText, isStepCount, streamText, tool } from "ai";
import { describe } from "vitest";
import { z } from "zod";
import { test as base } from "../helpers/fixtures.ts";
import { fixture } from "../helpers/lifetime.ts";
import { startService, type TestService } from "../helpers/service.ts";
import { type ScriptedVendor, startVendor, type VendorKind } from "../helpers/vendors.ts";
import { anthropicClient, anthropicModel } from "./anthropic-clients.ts";

interface Served {
  readonly vendor: ScriptedVendor;
  readonly service: TestService;
}

const KINDS: readonly VendorKind[] = ["openai", "anthropic", "google"];

const test = base.extend(
  "served",
  { scope: "file" },
  fixture(async (t): Promise<Record<VendorKind, Served>> => {
    const start = async (kind: VendorKind) => {
      const vendor = await startVendor(kind);
      t.onTestFinished(() => vendor.close());
      return { vendor, service: await startService(t, { env: vendor.env }) };
    };
    const [openai, anthropic, google] = await Promise.all(KINDS.map(start));
    if (!openai || !anthropic || !google) throw new Error("A vendor did not start.");
    return { openai, anthropic, google };
  }),
);

const setupOf = ({ service }: Served) => ({ baseURL: `${service.url}/v1`, apiKey: service.apiKey, retries: 0, fetch });

/** An agent that asks for the weather of two cities, then for one more, and then answers. */
function play({ vendor }: Served): void {
  const callOf = (city: string) => ({ name: "get_weather", arguments: JSON.stringify({ city }) });
  vendor.reset();
  vendor.reply(
    { text: "I look.", calls: [callOf("Oslo"), callOf("Rome")] },
    { calls: [callOf("Bern")] },
    { text: "Rain, sun, snow." },
  );
}

const WEATHER: Readonly<Record<string, string>> = { Oslo: "rain", Rome: "sun", Bern: "snow" };

describe.each(KINDS)("an agent on models of %s", (kind) => {
  test("runs with the tool runner of @anthropic-ai/sdk, whole and streamed", async ({ served }) => {
    for (const stream of [false, true]) {
      play(served[kind]);
      const asked: string[] = [];
      const weather = betaZodTool({
        name: "get_weather",
        description: "The weather of a city.",
        inputSchema: z.object({ city: z.string() }),
        run({ city }) {
          asked.push(city);
          return WEATHER[city] ?? "unknown";
        },
      });
      const runner = anthropicClient(setupOf(served[kind])).beta.messages.toolRunner({
        model: "chorus-low",
        max_tokens: 1_000,
        messages: [{ role: "user", content: "What is the weather?" }],
        tools: [weather],
        stream,
      });
      const last = await runner.runUntilDone();
      assert.deepEqual(asked, ["Oslo", "Rome", "Bern"]);
      assert.equal(last.stop_reason, "end_turn");
      assert.deepEqual(
        last.content.map((block) => "text" in block && block.text),
        ["Rain, sun, snow."],
      );
      const { calls } = served[kind].vendor;
      assert.equal(calls.length, 3);
      for (const result of ["rain", "sun", "snow"]) assert.ok(calls.at(-1)?.body.includes(result), result);
    }
  });

  test("runs with the AI SDK over several steps, whole and streamed", async ({ served }) => {
    const tools = {
      get_weather: tool({
        description: "The weather of a city.",
        inputSchema: z.object({ city: z.string() }),
        execute: async ({ city }) => WEATHER[city] ?? "unknown",
      }),
    };
    const options = {
      model: anthropicModel(setupOf(served[kind])),
      maxRetries: 0,
      prompt: "What is the weather?",
      providerOptions: { anthropic: { effort: "low" } },
      tools,
      stopWhen: isStepCount(5),
    } as const;
    play(served[kind]);
    const whole = await generateText(options);
    assert.deepEqual([whole.text, whole.steps.length, whole.finishReason], ["Rain, sun, snow.", 3, "stop"]);
    const [first] = whole.steps;
    assert.deepEqual(
      first?.toolResults.map(({ output }) => output),
      ["rain", "sun"],
    );
    play(served[kind]);
    const streamed = streamText(options);
    assert.equal(await streamed.text, "Rain, sun, snow.");
    assert.equal((await streamed.steps).length, 3);
  });
});
