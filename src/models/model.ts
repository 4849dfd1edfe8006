import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";

/** One call of a model: its prompt and options. */
export type Call = LanguageModelV4CallOptions;

/** The service's own options of a call, which stay inside the service. */
interface OwnOptions {
  /** Identifier of the generation that the call belongs to; its costs are added up under it. */
  generation?: string;
  /** When the caller's deadline passes, as a `performance.now()`. */
  endsAt?: number;
  /** Longest wait for the first text, in milliseconds, if that is less than the configured one. */
  firstTextMs?: number;
  /** The caller's JSON Schema as it was sent. Parsing it would lose the order of names and the spelling of numbers. */
  schema?: string;
}

/** Reads the service's own options of a call from `providerOptions.chorus`. */
export function ownOptions({ providerOptions }: Call): OwnOptions {
  return providerOptions?.chorus ?? {};
}
