import { APICallError, type LanguageModelV4CallOptions } from "@ai-sdk/provider";

/** Options of a call that some models refuse and that an answer can do without. */
export type Option = "temperature" | "stopSequences" | "maxOutputTokens" | "responseFormat";

export interface Refusal {
  /** The option at fault; undefined where the vendor names none of the call's. */
  option: Option | undefined;
  /** Whether the model takes the option with no value at all. */
  always: boolean;
}

const WIRE_NAMES: Readonly<Record<Option, RegExp>> = {
  temperature: /\btemperature\b/i,
  stopSequences: /\bstop(_?sequences)?\b/i,
  maxOutputTokens: /\bmax_?(completion_?|output_?)?tokens\b/i,
  responseFormat: /\bresponse_?(format|mime_?type|json_?schema|schema)\b|\boutput_config\b|\bjson_(object|schema)\b/i,
};

const NEVER_TAKEN = /unsupported|not support|not permitted|not allowed|unknown|unrecognized|deprecated/i;

/**
 * Tells what a vendor refused about a call (status 400 or 422), from the parameter that it names or else from its words. Reasoning
 * models refuse `temperature` or `stop`, some servers `response_format`, and no list of them stays right for long.
 * @returns undefined for any other error.
 */
export function refusalOf(error: unknown, call: LanguageModelV4CallOptions): Refusal | undefined {
  if (!APICallError.isInstance(error) || (error.statusCode !== 400 && error.statusCode !== 422)) return undefined;
  const name = namedParameter(error.data) ?? error.message;
  const options = Object.entries(WIRE_NAMES) as [Option, RegExp][];
  const option = options.find(([option, pattern]) => call[option] !== undefined && pattern.test(name))?.[0];
  return { option, always: option !== "maxOutputTokens" && NEVER_TAKEN.test(error.message) };
}

/** `error.param` of OpenAI's format. */
function namedParameter(data: unknown): string | undefined {
  const error = (data as { error?: { param?: unknown } } | undefined)?.error;
  return typeof error?.param === "string" ? error.param : undefined;
}
