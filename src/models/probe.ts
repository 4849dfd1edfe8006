import type { HttpClient } from "./http.ts";
import type { ModelEntry } from "./port/entry.ts";
import { type ModelError, toModelError } from "./port/model-error.ts";
import { readFailure } from "./refusal.ts";
import { baseAddress, FORMATS } from "./vendor.ts";
import type { WireCall } from "./wire/wire.ts";

/** Longest time of a probe, in milliseconds. */
const PROBE_MS = 5_000;

/** A key that may only make completions. */
const MAY_NOT_LIST = /missing scopes|insufficient permissions/i;

/**
 * Asks a vendor whether it takes the key and knows the model. It asks for the description of the model (of all models,
 * where servers with OpenAI's format differ), which vendors do not bill.
 * @returns why not: the failure has `needsOperator`, or the vendor could not be reached; undefined if it does, or if
 *   the answer does not tell
 */
export async function probe(entry: ModelEntry, http: HttpClient, stop: AbortSignal): Promise<ModelError | undefined> {
  if (entry.vendor === "offline") return undefined;
  const format = FORMATS[entry.vendor];
  const { origin, path } = baseAddress(entry);
  const describesEach = entry.vendor !== "openai-compatible";
  const { headers } = format.request(entry, NO_CALL, format.forms);
  const signal = AbortSignal.any([stop, AbortSignal.timeout(PROBE_MS)]);
  try {
    using response = await http.get({
      origin,
      path: describesEach ? `${path}/models/${encodeURI(entry.model)}` : `${path}/models`,
      headers: { "accept-encoding": "identity", ...headers },
      signal,
    });
    if (response.status < 400) return undefined;
    const { error, about } = await readFailure(response, format);
    return isAnswer(error, about, entry) ? error : undefined;
  } catch (error) {
    // After the time, a call may still succeed.
    return signal.aborted ? undefined : toModelError(error);
  }
}

/** Whether a refused probe means that calls are refused too. A proxy may not know the path. */
function isAnswer({ status }: ModelError, about: string, { vendor, baseUrl }: ModelEntry): boolean {
  if (status === 404) return baseUrl === undefined && vendor !== "openai-compatible";
  return (status === 401 || status === 402 || status === 403) && !MAY_NOT_LIST.test(about);
}

/** The headers of a request need no call. */
const NO_CALL: WireCall = {
  model: "",
  prompt: { system: "", messages: [] },
  maxTokens: undefined,
  temperature: undefined,
  stops: [],
  format: undefined,
  reasoning: undefined,
  streamed: false,
  cacheKey: undefined,
  tools: undefined,
};
