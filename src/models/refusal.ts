import { APICallError } from "@ai-sdk/provider";
import type { Call } from "./model.ts";

/** Options of a call that some models refuse and that can be dropped. */
export type Option = "temperature" | "stopSequences" | "maxOutputTokens" | "responseFormat";

export interface Refusal {
  /** The refused option; undefined if the vendor names none of the call's options. */
  option: Option | undefined;
  /** Whether the model refuses the option whatever its value. */
  always: boolean;
}

const WIRE_NAMES: Readonly<Record<Option, RegExp>> = {
  temperature: /\btemperature\b/i,
  stopSequences: /\bstop(_?sequences)?\b/i,
  maxOutputTokens: /\bmax_?(completion_?|output_?)?tokens\b/i,
  responseFormat: /\bresponse_?(format|mime_?type|json_?schema|schema)\b|\boutput_config\b|\bjson_(object|schema)\b/i,
};

const UNSUPPORTED = /unsupported|not support|not permitted|not allowed|unknown|unrecognized|deprecated/i;

/**
 * Finds out which option of a call a vendor refused (status 400 or 422), from the parameter that the error names, or
 * else from its message. Reasoning models refuse `temperature` or `stop`, some servers `response_format`; this
 * changes too often for a list.
 * @returns undefined for any other error
 */
export function refusalOf(error: unknown, call: Call): Refusal | undefined {
  if (!APICallError.isInstance(error) || (error.statusCode !== 400 && error.statusCode !== 422)) return undefined;
  const name = namedParameter(error.data) ?? error.message;
  const options = Object.entries(WIRE_NAMES) as [Option, RegExp][];
  const option = options.find(([option, pattern]) => call[option] !== undefined && pattern.test(name))?.[0];
  return { option, always: option !== "maxOutputTokens" && UNSUPPORTED.test(error.message) };
}

/** `error.param` in OpenAI's format. */
function namedParameter(data: unknown): string | undefined {
  const error = (data as { error?: { param?: unknown } } | undefined)?.error;
  return typeof error?.param === "string" ? error.param : undefined;
}
