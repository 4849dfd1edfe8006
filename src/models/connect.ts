import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { ModelEntry, Vendor } from "../config/config.ts";
import type { Fetch } from "./fetch.ts";
import { createOfflineModel } from "./offline/model.ts";

/** Default address of each vendor's API, and the path added to an address without one. */
const APIS: Readonly<Record<Exclude<Vendor, "offline">, { url: string; path: string }>> = {
  openai: { url: "https://api.openai.com", path: "/v1" },
  anthropic: { url: "https://api.anthropic.com", path: "/v1" },
  google: { url: "https://generativelanguage.googleapis.com", path: "/v1beta" },
  // The configuration requires an address; this default is Ollama's.
  "openai-compatible": { url: "http://127.0.0.1:11434", path: "/v1" },
};

/**
 * Connects a catalogue entry through the AI SDK.
 * @returns makes the entry's model around a `fetch`. Address and key are always passed, so the SDK reads no
 *   environment.
 */
export function connect(entry: ModelEntry): (fetch: Fetch) => LanguageModelV4 {
  const { vendor, model, apiKey = "", jsonSchema } = entry;
  if (vendor === "offline") return () => createOfflineModel(entry.tier);
  const { url, path } = APIS[vendor];
  const address = entry.baseUrl ?? url;
  const baseURL = new URL(address).pathname === "/" ? new URL(path, address).href : address;
  switch (vendor) {
    case "openai":
      // Chat completions instead of Responses, because proxies and other servers speak that format too.
      return (fetch) => createOpenAI({ apiKey, baseURL, fetch }).chat(model);
    case "anthropic":
      return (fetch) => createAnthropic({ apiKey, baseURL, fetch })(model);
    case "google":
      return (fetch) => createGoogle({ apiKey, baseURL, fetch })(model);
    case "openai-compatible":
      return (fetch) =>
        createOpenAICompatible({
          name: "compatible",
          apiKey,
          baseURL,
          fetch,
          includeUsage: true,
          supportsStructuredOutputs: jsonSchema,
        })(model);
  }
}
