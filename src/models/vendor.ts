import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import type { ModelEntry, Vendor } from "../config/config.ts";
import type { Fetch } from "./fetch.ts";
import { inlineSchema, SCHEMA_PLACEHOLDER } from "./inline-schema.ts";
import { ModelError } from "./model-error.ts";
import { createOfflineModel } from "./offline/model.ts";
import { type Option, refusalOf } from "./refusal.ts";
import { compileSchema } from "./schema.ts";
import { type Part, toStream } from "./stream.ts";

/** Where each vendor's API lives, and the path that an address without one gets. */
const APIS: Readonly<Record<Exclude<Vendor, "offline">, { home: string; path: string }>> = {
  openai: { home: "https://api.openai.com", path: "/v1" },
  anthropic: { home: "https://api.anthropic.com", path: "/v1" },
  google: { home: "https://generativelanguage.googleapis.com", path: "/v1beta" },
  // The configuration demands an address; this one is Ollama's.
  "openai-compatible": { home: "http://127.0.0.1:11434", path: "/v1" },
};

type Call = LanguageModelV4CallOptions;

/**
 * One model of the catalogue through the vendor's own wire format.
 *
 * A JSON Schema comes as text in `providerOptions.chorus.schema` beside `responseFormat`. It reaches the vendor as
 * `compileSchema` makes it, or as part of the prompt where the model or its strict mode cannot take it; the answer is text either way.
 * An option that the model refuses is left out and the call made again. `finish` comes only after the vendor's terminal frame and the
 * end of the stream; anything less is thrown. `providerMetadata.chorus` names the catalogue entry.
 * @throws ModelError, or whatever the AI SDK throws.
 */
export function createVendorModel(entry: ModelEntry, fetch: Fetch): LanguageModelV4 {
  const { vendor, model: modelId } = entry;
  const connect = connector(entry);
  const plain = connect(fetch);
  /** Options that this model has been seen to refuse, whatever their value. */
  const refused = new Set<Option>();
  const metadata = { chorus: { model: entry.name, tier: entry.tier } };

  async function send<T>(call: Call, run: (model: LanguageModelV4, call: Call) => PromiseLike<T>): Promise<T> {
    const left = new Set(refused);
    const learned: Option[] = [];
    const schema = schemaText(call);
    let native = schema !== undefined && entry.jsonSchema;
    for (;;) {
      const prepared = prepare(call, schema, native, left);
      try {
        const result = await run(prepared.model, prepared.call);
        for (const option of learned) refused.add(option);
        return result;
      } catch (error) {
        const refusal = refusalOf(error, prepared.call);
        const option = refusal?.option;
        // Strict modes differ and change: what one does not take may still be asked for in words.
        if (refusal && native && (!option || option === "responseFormat")) native = false;
        else if (option) {
          left.add(option);
          if (refusal.always) learned.push(option);
        } else throw error;
      }
    }
  }

  function prepare(call: Call, schema: string | undefined, native: boolean, left: ReadonlySet<Option>) {
    if (vendor === "offline" || (schema === undefined && left.size === 0)) return { model: plain, call };
    const { providerOptions: _, ...rest }: Call = call;
    for (const option of left) delete rest[option];
    if (schema === undefined) return { model: plain, call: rest };
    const compiled = native ? compileSchema(schema, vendor) : undefined;
    if (!compiled) {
      const prompt = withSchema(call.prompt, schema);
      if (left.has("responseFormat")) return { model: plain, call: { ...rest, prompt } };
      return { model: plain, call: { ...rest, prompt, responseFormat: { type: "json" as const } } };
    }
    return {
      model: connect(inlineSchema(fetch, compiled.text)),
      call: {
        ...rest,
        responseFormat: { type: "json" as const, name: "answer", schema: SCHEMA_PLACEHOLDER },
        providerOptions: schemaOptions(compiled.strict),
      },
    };
  }

  async function* parts(call: Call): AsyncGenerator<Part> {
    const { stream } = await send(call, (model, options) => model.doStream(options));
    let finish: Part | undefined;
    try {
      for await (const part of stream) {
        if (part.type === "error") throw part.error;
        if (part.type === "finish") {
          const finishReason = wholeReason(part.finishReason, vendor);
          finish = { ...part, finishReason, providerMetadata: { ...part.providerMetadata, ...metadata } };
        } else if (!finish) yield part;
      }
    } catch (error) {
      // What happens after the terminal frame takes nothing away from the answer.
      if (!finish) throw error;
    }
    if (!finish) throw cutOff();
    yield finish;
  }

  return {
    specificationVersion: "v4",
    provider: plain.provider,
    modelId,
    supportedUrls: {},
    async doGenerate(call) {
      const result = await send(call, (model, options) => model.doGenerate(options));
      return {
        content: result.content,
        finishReason: wholeReason(result.finishReason, vendor),
        usage: result.usage,
        warnings: result.warnings,
        providerMetadata: { ...result.providerMetadata, ...metadata },
      };
    },
    doStream: async (call) => ({ stream: toStream(parts(call)) }),
  };
}

/** Makes the AI SDK's model of an entry around a `fetch`. Address and key are always given, so that no environment is read. */
function connector(entry: ModelEntry): (fetch: Fetch) => LanguageModelV4 {
  const { vendor, model, apiKey = "", jsonSchema } = entry;
  if (vendor === "offline") return () => createOfflineModel(entry.tier);
  const { home, path } = APIS[vendor];
  const address = entry.baseUrl ?? home;
  const baseURL = new URL(address).pathname === "/" ? new URL(path, address).href : address;
  switch (vendor) {
    case "openai":
      // The chat API rather than Responses: it is the wire format that proxies and other servers speak as well.
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

function schemaOptions(strict: boolean): SharedV4ProviderOptions {
  return {
    openai: { strictJsonSchema: strict },
    openaiCompatible: { strictJsonSchema: strict },
    // Never the tool that the SDK falls back to: its input comes back re-ordered and with other numbers.
    anthropic: { structuredOutputMode: "outputFormat" },
  };
}

function schemaText({ responseFormat, providerOptions }: Call): string | undefined {
  if (responseFormat?.type !== "json" || !responseFormat.schema) return undefined;
  const text = providerOptions?.chorus?.schema;
  return typeof text === "string" ? text : JSON.stringify(responseFormat.schema);
}

function withSchema(prompt: Call["prompt"], schema: string): Call["prompt"] {
  const words = `Answer with one JSON object that is valid against this JSON Schema, and with nothing else:\n${schema}`;
  const [first, ...others] = prompt;
  return first?.role === "system"
    ? [{ ...first, content: `${first.content}\n\n${words}` }, ...others]
    : [{ role: "system", content: words }, ...prompt];
}

/** The reason why a whole answer ended. @throws ModelError for an answer that is not whole. */
function wholeReason(reason: LanguageModelV4FinishReason, vendor: Vendor): LanguageModelV4FinishReason {
  const { unified, raw } = reason;
  if (unified === "error" || unified === "interrupted") throw cutOff();
  if (unified !== "other") return reason;
  // Servers that speak OpenAI's format have words of their own for a natural end; the others' unknown words are none.
  if (vendor !== "openai" && vendor !== "openai-compatible") throw cutOff();
  return { unified: "stop", raw };
}

function cutOff(): ModelError {
  return new ModelError("The answer ended without the vendor's sign that it was whole.", { retryable: true });
}
