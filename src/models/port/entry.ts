import type { Accuracies, Tier } from "../../contract/terms.ts";

export type Vendor = "openai" | "anthropic" | "google" | "openai-compatible" | "offline";

/** One model of the catalogue. */
export interface ModelEntry {
  /** Unique name in the catalogue; callers never see it. */
  name: string;
  vendor: Vendor;
  /** OpenAI's Responses API, of `openai` and `openai-compatible`. Absent: chat completions, or the vendor's API. */
  api?: "responses";
  /** The vendor's identifier of the model. */
  model: string;
  /** The version that the vendor is expected to name in its replies. Absent: `model`, or a dated version of it. */
  version?: string;
  tier: Tier;
  /** Address of the vendor's API, without a trailing slash. Undefined: the vendor's default. */
  baseUrl?: string;
  apiKey?: string;
  /** Environment variable that has the key. */
  apiKeyEnv?: string;
  /** Path of the file that has the key in place of the variable. */
  apiKeyFile?: string;
  /** USD per million tokens. */
  price?: { input: number; output: number; cached: number };
  /** Size of the context window in tokens. */
  contextTokens?: number;
  /** Most tokens that the model writes in one call, thinking included. Learned from refusals if it is not set. */
  maxOutputTokens?: number;
  /** Most calls at a time. Absent: the service finds out how many the vendor takes. */
  maxConcurrency?: number;
  /**
   * Share of right answers in a hard test, 0 to 1, for all abilities or by ability. All models of the catalogue must be
   * rated with the same test.
   */
  accuracy?: number | Accuracies;
  /** Whether the model thinks at length before it answers. Default false. */
  thinks?: boolean;
  /** Whether the model accepts images. Default false. */
  images: boolean;
  /**
   * Whether the vendor accepts a JSON Schema for this model; otherwise the prompt has it. Default true; false for
   * openai-compatible.
   */
  jsonSchema: boolean;
}

/** Timeouts of one model call, in milliseconds. */
export interface ModelTimeouts {
  connectMs: number;
  firstTokenMs: number;
  betweenChunksMs: number;
}

/** Why the last call of a model failed, in words for the operator. It quotes no prompt, no answer and no key. */
export interface CallFailure {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Failures since the last call that succeeded, this one included. */
  readonly count: number;
  /** HTTP status of the vendor. Absent if it sent none. */
  readonly status?: number;
  /** Code of the vendor, such as `invalid_api_key`, or of the network, such as `ECONNREFUSED`. */
  readonly code?: string;
  /** The known words of what the vendor says, at most 200 characters. Only if `needsOperator`. */
  readonly message?: string;
  /** Whether the vendor refuses the key, the account or the name of the model, which waiting does not mend. */
  readonly needsOperator: boolean;
  /** What the operator should do, as a sentence. Only if `needsOperator`. */
  readonly action?: string;
}

/** The version of a model that answered last, as the vendor names it. */
export interface ServedVersion {
  readonly version: string;
  /** Whether it is what the catalogue expects. */
  readonly isExpected: boolean;
}

/** State of a model of the catalogue, as this process knows it. */
export interface ModelState {
  /** Name in the catalogue. */
  model: string;
  tier: Tier;
  vendor: string;
  /** API over which it is called, such as `chat`. Absent: none, because it is built in. */
  api?: string | undefined;
  /** Most calls at a time. Undefined for models without a vendor. */
  limit?: number;
  running: number;
  waiting: number;
  /** Whether the circuit breaker stops calls. */
  isOpen: boolean;
  /** Whether an operator has disabled it. */
  isDisabled: boolean;
  /** Share of its latest requests that failed, 0 to 1. */
  failedShare: number;
  /** Time to first text of its last calls, in milliseconds. Undefined before the first. */
  firstTextMs?: { p50: number; p95: number } | undefined;
  /** Why the last call failed. Undefined if it succeeded. */
  failure?: CallFailure | undefined;
  /** Undefined before the first answer, or if the vendor names no version. */
  served?: ServedVersion | undefined;
}
