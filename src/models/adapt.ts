import type { LanguageModelV4, SharedV4ProviderOptions } from "@ai-sdk/provider";
import type { ModelEntry } from "../config/config.ts";
import type { Fetch } from "./fetch.ts";
import { inlineSchema, SCHEMA_PLACEHOLDER } from "./inline-schema.ts";
import { type Call, ownOptions } from "./model.ts";
import { type Option, refusalOf } from "./refusal.ts";
import { compileSchema } from "./schema.ts";

/** Runs a call on the model and in the form that the vendor accepts. */
export type Send = <T>(call: Call, run: (model: LanguageModelV4, call: Call) => PromiseLike<T>) => Promise<T>;

/**
 * Adapts calls to one model. A JSON Schema is sent natively as `compileSchema` makes it, or in the prompt when the
 * model or its strict mode does not accept it. An option that the vendor refuses is dropped and the call is sent
 * again; an option that the model never accepts is dropped from later calls too.
 * @param connect makes the model around a `fetch`
 */
export function adaptingSend(entry: ModelEntry, fetch: Fetch, connect: (fetch: Fetch) => LanguageModelV4): Send {
  const { vendor } = entry;
  const model = connect(fetch);
  /** Options that this model refuses whatever their value. */
  const neverAccepted = new Set<Option>();

  function adapt(call: Call, schema: string | undefined, isNative: boolean, dropped: ReadonlySet<Option>) {
    if (vendor === "offline" || (schema === undefined && dropped.size === 0)) return { model, call };
    const { providerOptions: _, ...rest }: Call = call;
    for (const option of dropped) delete rest[option];
    if (schema === undefined) return { model, call: rest };
    const compiled = isNative ? compileSchema(schema, vendor) : undefined;
    if (!compiled) {
      const prompt = withSchema(call.prompt, schema);
      if (dropped.has("responseFormat")) return { model, call: { ...rest, prompt } };
      return { model, call: { ...rest, prompt, responseFormat: { type: "json" as const } } };
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

  return async (call, run) => {
    const dropped = new Set(neverAccepted);
    const learned: Option[] = [];
    const schema = schemaText(call);
    let isNative = schema !== undefined && entry.jsonSchema;
    for (;;) {
      const adapted = adapt(call, schema, isNative, dropped);
      try {
        const result = await run(adapted.model, adapted.call);
        for (const option of learned) neverAccepted.add(option);
        return result;
      } catch (error) {
        const refusal = refusalOf(error, adapted.call);
        const option = refusal?.option;
        // Strict modes differ and change. A schema that one refuses can still be sent in the prompt.
        if (refusal && isNative && (!option || option === "responseFormat")) isNative = false;
        else if (option) {
          dropped.add(option);
          if (refusal.always) learned.push(option);
        } else throw error;
      }
    }
  };
}

function schemaOptions(strict: boolean): SharedV4ProviderOptions {
  return {
    openai: { strictJsonSchema: strict },
    openaiCompatible: { strictJsonSchema: strict },
    // The SDK's fallback is a tool call, whose input comes back with another order of names and other numbers.
    anthropic: { structuredOutputMode: "outputFormat" },
  };
}

function schemaText(call: Call): string | undefined {
  const { responseFormat } = call;
  if (responseFormat?.type !== "json" || !responseFormat.schema) return undefined;
  return ownOptions(call).schema ?? JSON.stringify(responseFormat.schema);
}

function withSchema(prompt: Call["prompt"], schema: string): Call["prompt"] {
  const words = `Answer with one JSON object that is valid against this JSON Schema, and with nothing else:\n${schema}`;
  const [first, ...others] = prompt;
  return first?.role === "system"
    ? [{ ...first, content: `${first.content}\n\n${words}` }, ...others]
    : [{ role: "system", content: words }, ...prompt];
}
