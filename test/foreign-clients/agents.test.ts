import assert from "node:assert/strict";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { generateText, isStepCount, streamText, tool } from "ai";
import { describe } from "vitest";
import { z } from "zod";
import { anthropicClient, anthropicModel } from "./anthropic-clients.ts";
import { ANSWER, CITIES, KINDS, play, QUESTION, setupOf, test, WEATHER } from "./served.ts";

describe.each(KINDS)("an agent on models of %s", (kind) => {
  test("runs with the tool runner of @anthropic-ai/sdk, whole and streamed", async ({ serve }) => {
    const served = await serve(kind);
    for (const stream of [false, true]) {
      play(served, "I look.");
      const asked: string[] = [];
      const weather = betaZodTool({
        name: "get_weather",
        description: "The weather of a city.",
        inputSchema: z.object({ city: z.string(), day: z.string().nullish() }),
        run({ city }) {
          asked.push(city);
          return WEATHER[city] ?? "unknown";
        },
      });
      const runner = anthropicClient(setupOf(served)).beta.messages.toolRunner({
        model: "chorus-low",
        max_tokens: 1_000,
        messages: [{ role: "user", content: QUESTION }],
        tools: [weather],
        stream,
      });
      const last = await runner.runUntilDone();
      assert.deepEqual(asked, CITIES);
      assert.equal(last.stop_reason, "end_turn");
      assert.deepEqual(
        last.content.map((block) => "text" in block && block.text),
        [ANSWER],
      );
      const { calls } = served.vendor;
      assert.equal(calls.length, 3);
      for (const result of ["rain", "sun", "snow"]) assert.ok(calls.at(-1)?.body.includes(result), result);
    }
  });

  test("runs with the AI SDK over several steps, whole and streamed", async ({ serve }) => {
    const served = await serve(kind);
    const tools = {
      get_weather: tool({
        description: "The weather of a city.",
        inputSchema: z.object({ city: z.string(), day: z.string().nullish() }),
        execute: async ({ city }) => WEATHER[city] ?? "unknown",
      }),
    };
    const options = {
      model: anthropicModel(setupOf(served)),
      maxRetries: 0,
      prompt: QUESTION,
      providerOptions: { anthropic: { effort: "low" } },
      tools,
      stopWhen: isStepCount(5),
    } as const;
    play(served, "I look.");
    const whole = await generateText(options);
    assert.deepEqual([whole.text, whole.steps.length, whole.finishReason], [ANSWER, 3, "stop"]);
    const [first] = whole.steps;
    assert.deepEqual(
      first?.toolResults.map(({ output }) => output),
      ["rain", "sun"],
    );
    play(served, "I look.");
    const streamed = streamText(options);
    assert.equal(await streamed.text, ANSWER);
    assert.equal((await streamed.steps).length, 3);
  });
});
