import { createAnthropic } from "@ai-sdk/anthropic";
import Anthropic, { APIError } from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";
import type { Asked, ForeignClient, Setup } from "./clients.ts";

const Item = z.object({ name: z.string(), count: z.number() });

const MODEL = "chorus";

/**
 * The AI SDK's model of the service's door for Anthropic's format. The name is one of Anthropic's, as programs have it,
 * because the AI SDK asks for JSON in the same way as for Claude only then.
 */
export function anthropicModel({ baseURL, apiKey, fetch }: Setup) {
  return createAnthropic({ baseURL, apiKey, fetch })("claude-sonnet-4-5");
}

export function anthropicClient({ baseURL, apiKey, retries, fetch }: Setup): Anthropic {
  // This client adds `/v1` itself.
  return new Anthropic({ baseURL: baseURL.replace(/\/v1$/, ""), apiKey, maxRetries: retries, fetch });
}

/** `@anthropic-ai/sdk`, as its documentation shows it. */
export function anthropic(setup: Setup): ForeignClient {
  const { messages } = anthropicClient(setup);
  const requestOf = (prompt: string) => ({
    model: MODEL,
    max_tokens: 1_000,
    messages: [{ role: "user" as const, content: prompt }],
  });
  return {
    ask: async (prompt, signal) => askedOf(await messages.create(requestOf(prompt), { signal })),
    async stream(prompt, onText, signal) {
      const stream = messages.stream(requestOf(prompt), { signal });
      stream.on("text", onText);
      return askedOf(await stream.finalMessage());
    },
    async object(prompt, streamed) {
      const request = { ...requestOf(prompt), output_config: { format: zodOutputFormat(Item) } };
      if (!streamed) return (await messages.parse(request)).parsed_output;
      return (await messages.stream(request).finalMessage()).parsed_output;
    },
    async withFiles(prompt, png, pdf) {
      const message = await messages.create({
        model: MODEL,
        max_tokens: 1_000,
        messages: [
          {
            role: "user",
            content: [
              { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
              {
                type: "document",
                source: { type: "base64", media_type: "application/pdf", data: pdf },
                title: "a.pdf",
              },
              { type: "text", text: prompt },
            ],
          },
        ],
      });
      return askedOf(message).text;
    },
    refusal: (error) =>
      error instanceof APIError
        ? { status: error.status, text: `${error.message} ${JSON.stringify(error.error)}` }
        : { status: undefined, text: String(error) },
  };
}

function askedOf({ content, stop_reason, usage }: Anthropic.Message): Asked {
  const text = content.map((block) => (block.type === "text" ? block.text : "")).join("");
  const finish = stop_reason === "end_turn" ? "stop" : stop_reason;
  return { text, finish, inputTokens: usage.input_tokens, outputTokens: usage.output_tokens };
}
