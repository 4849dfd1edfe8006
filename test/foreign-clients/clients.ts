import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { type AIMessageChunk, type ContentBlock, HumanMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { APICallError, generateText, type LanguageModel, Output, RetryError, streamText } from "ai";
import OpenAI, { APIError } from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { anthropic, anthropicModel } from "./anthropic-clients.ts";

/** How a client is set up in a test. */
export interface Setup {
  readonly baseURL: string;
  readonly apiKey: string;
  /** Retries after a refusal. */
  readonly retries: number;
  readonly fetch: typeof fetch;
}

export interface Asked {
  readonly text: string;
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
  /** Why the answer ended, in the client's own word. */
  readonly finish: string | null | undefined;
}

/** What a client reports about a refusal. */
export interface Refused {
  readonly status: number | undefined;
  /** The error as text, with the body of the response where the client keeps it. */
  readonly text: string;
}

/** One client that others wrote, used as its documentation shows. */
export interface ForeignClient {
  ask(prompt: string, signal?: AbortSignal): Promise<Asked>;
  /** @param onText receives each piece */
  stream(prompt: string, onText: (text: string) => void, signal?: AbortSignal): Promise<Asked>;
  /** Asks for an object with a string `name` and an integer `count`, whole or as a stream. */
  object(prompt: string, streamed: boolean): Promise<unknown>;
  /** Sends a PNG image and a PDF file, in base64, with the prompt. */
  withFiles(prompt: string, png: string, pdf: string): Promise<string>;
  refusal(error: unknown): Refused;
}

const Item = z.object({ name: z.string(), count: z.number() });

function openai({ baseURL, apiKey, retries, fetch }: Setup): ForeignClient {
  const client = new OpenAI({ baseURL, apiKey, maxRetries: retries, fetch });
  const { completions } = client.chat;
  const requestOf = (prompt: string) => ({
    model: "chorus",
    messages: [{ role: "user" as const, content: prompt }],
  });
  const tokens = (usage: OpenAI.CompletionUsage | null | undefined) => ({
    inputTokens: usage?.prompt_tokens,
    outputTokens: usage?.completion_tokens,
  });
  return {
    async ask(prompt, signal) {
      const { choices, usage } = await completions.create(requestOf(prompt), { signal });
      return { text: choices[0]?.message.content ?? "", finish: choices[0]?.finish_reason, ...tokens(usage) };
    },
    async stream(prompt, onText, signal) {
      const options = { stream: true, stream_options: { include_usage: true } } as const;
      const stream = await completions.create({ ...requestOf(prompt), ...options }, { signal });
      let text = "";
      let finish: string | null | undefined;
      let usage: OpenAI.CompletionUsage | null | undefined;
      for await (const chunk of stream) {
        const [choice] = chunk.choices;
        text += choice?.delta.content ?? "";
        if (choice?.delta.content) onText(choice.delta.content);
        finish = choice?.finish_reason ?? finish;
        usage = chunk.usage ?? usage;
      }
      // The client ends an aborted stream without an error.
      signal?.throwIfAborted();
      return { text, finish, ...tokens(usage) };
    },
    async object(prompt, streamed) {
      const request = { ...requestOf(prompt), response_format: zodResponseFormat(Item, "item") };
      if (!streamed) return (await completions.parse(request)).choices[0]?.message.parsed;
      const completion = await completions.stream(request).finalChatCompletion();
      return completion.choices[0]?.message.parsed;
    },
    async withFiles(prompt, png, pdf) {
      const { choices } = await completions.create({
        model: "chorus",
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: prompt },
              { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } },
              { type: "file", file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${pdf}` } },
            ],
          },
        ],
      });
      return choices[0]?.message.content ?? "";
    },
    refusal: (error) =>
      error instanceof APIError
        ? { status: error.status, text: `${error.message} ${JSON.stringify(error.error)}` }
        : { status: undefined, text: String(error) },
  };
}

function openaiModel({ baseURL, apiKey, fetch }: Setup): LanguageModel {
  const options = { name: "chorus", baseURL, apiKey, fetch, includeUsage: true, supportsStructuredOutputs: true };
  return createOpenAICompatible(options)("chorus");
}

function aiSdk(model: LanguageModel, { retries }: Setup): ForeignClient {
  const base = { model, maxRetries: retries };
  return {
    async ask(prompt, abortSignal) {
      const { text, usage, finishReason } = await generateText({
        ...base,
        prompt,
        ...(abortSignal && { abortSignal }),
      });
      return { text, finish: finishReason, inputTokens: usage.inputTokens, outputTokens: usage.outputTokens };
    },
    async stream(prompt, onText, abortSignal) {
      let failure: unknown;
      const onError = ({ error }: { error: unknown }) => {
        failure = error;
      };
      const result = streamText({ ...base, prompt, onError, ...(abortSignal && { abortSignal }) });
      let text = "";
      for await (const piece of result.textStream) {
        text += piece;
        onText(piece);
      }
      if (failure !== undefined) throw failure;
      // This client too.
      abortSignal?.throwIfAborted();
      const { inputTokens, outputTokens } = await result.usage;
      return { text, finish: await result.finishReason, inputTokens, outputTokens };
    },
    async object(prompt, streamed) {
      const output = Output.object({ schema: Item });
      if (!streamed) return (await generateText({ ...base, prompt, output })).output;
      return await streamText({ ...base, prompt, output }).output;
    },
    async withFiles(prompt, png, pdf) {
      const { text } = await generateText({
        ...base,
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: prompt },
              { type: "file", data: png, mediaType: "image/png" },
              { type: "file", data: pdf, mediaType: "application/pdf", filename: "a.pdf" },
            ],
          },
        ],
      });
      return text;
    },
    refusal(error) {
      const last = RetryError.isInstance(error) ? error.lastError : error;
      return APICallError.isInstance(last)
        ? { status: last.statusCode, text: `${last.message} ${last.responseBody}` }
        : { status: undefined, text: String(last) };
    },
  };
}

function langchain({ baseURL, apiKey, retries, fetch }: Setup): ForeignClient {
  const model = new ChatOpenAI({ model: "chorus", apiKey, maxRetries: retries, configuration: { baseURL, fetch } });
  const askedOf = (message: AIMessageChunk): Asked => {
    const usage = message.usage_metadata as { input_tokens: number; output_tokens: number } | undefined;
    const finish = message.response_metadata.finish_reason as string | undefined;
    return { text: message.text, finish, inputTokens: usage?.input_tokens, outputTokens: usage?.output_tokens };
  };
  return {
    ask: async (prompt, signal) => askedOf(await model.invoke(prompt, { ...(signal && { signal }) })),
    async stream(prompt, onText, signal) {
      let whole: AIMessageChunk | undefined;
      for await (const chunk of await model.stream(prompt, { ...(signal && { signal }) })) {
        whole = whole === undefined ? chunk : whole.concat(chunk);
        if (chunk.text !== "") onText(chunk.text);
      }
      if (!whole) throw new Error("The stream was empty.");
      return askedOf(whole);
    },
    async object(prompt, streamed) {
      const strict = model.withStructuredOutput(Item, { method: "jsonSchema", strict: true });
      if (!streamed) return await strict.invoke(prompt);
      let last: unknown;
      for await (const object of await strict.stream(prompt)) last = object;
      return last;
    },
    async withFiles(prompt, png, pdf) {
      const content = [
        { type: "text", text: prompt },
        { type: "image", mimeType: "image/png", data: png },
        { type: "file", mimeType: "application/pdf", data: pdf, metadata: { filename: "a.pdf" } },
      ] satisfies ContentBlock.Standard[];
      return (await model.invoke([new HumanMessage({ contentBlocks: content })])).text;
    },
    refusal(error) {
      const { status, message, error: body } = error as { status?: number; message?: string; error?: unknown };
      return { status, text: `${message} ${JSON.stringify(body)}` };
    },
  };
}

export const CLIENTS: Readonly<Record<string, (setup: Setup) => ForeignClient>> = {
  openai,
  anthropic,
  "AI SDK": (setup) => aiSdk(openaiModel(setup), setup),
  "AI SDK, Anthropic": (setup) => aiSdk(anthropicModel(setup), setup),
  "AI SDK, OpenAI": (setup) => aiSdk(createOpenAI(setup)("chorus"), setup),
  "LangChain.js": langchain,
};
