import type { HttpClient } from "./http.ts";
import type { ModelEntry } from "./port/entry.ts";
import { type ModelError, toModelError } from "./port/model-error.ts";
import { readFailure } from "./refusal.ts";
import { baseAddress, formatOf } from "./vendor.ts";

/** Longest time of a probe, in milliseconds. */
const PROBE_MS = 5_000;

/** Longest time of all probes of a round. Models whose turn has not come by then are not probed. */
const ROUND_MS = 20_000;

/** Probes that run at a time. */
const AT_ONCE = 8;

/**
 * Probes models: eight at a time, those of a server that are asked the same by one request.
 * @param found gets what the vendor of a model has answered: why it refuses the model, or undefined if it does not. Not
 *   called for models whose vendor has not answered in time
 */
export async function probeAll(
  entries: readonly ModelEntry[],
  http: HttpClient,
  stop: AbortSignal,
  found: (entry: ModelEntry, error: ModelError | undefined) => void,
): Promise<void> {
  const groups = [...Map.groupBy(entries, sameQuestion).values()];
  const signal = AbortSignal.any([stop, AbortSignal.timeout(ROUND_MS)]);
  async function work(): Promise<void> {
    for (let group = groups.shift(); group && !signal.aborted; group = groups.shift()) {
      const [first] = group;
      const answer = first && (await probe(first, http, signal));
      if (answer) for (const entry of group) found(entry, answer.error);
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** Text that is the same for models that a probe asks the same about. */
function sameQuestion(entry: ModelEntry): string {
  const { vendor, baseUrl, apiKey } = entry;
  return JSON.stringify([vendor, baseUrl, apiKey, describesEach(entry) ? entry.model : ""]);
}

/** Whether the description of one model is asked for, or the list of all, where servers with OpenAI's format differ. */
function describesEach({ vendor }: ModelEntry): boolean {
  return vendor !== "openai-compatible";
}

/** A key that may only make completions. */
const MAY_NOT_LIST = /missing scopes|insufficient permissions/i;

/**
 * Asks a vendor whether it takes the key and knows the model. It asks for the description of the model or the list of
 * all, which vendors do not bill.
 * @returns why not: the failure has `needsOperator`, or the vendor could not be reached; no error if it does, or if the
 *   answer does not tell; undefined without an answer in time
 */
async function probe(
  entry: ModelEntry,
  http: HttpClient,
  stop: AbortSignal,
): Promise<{ error?: ModelError } | undefined> {
  if (entry.vendor === "offline") return {};
  const format = formatOf(entry);
  const { origin, path } = baseAddress(entry);
  const signal = AbortSignal.any([stop, AbortSignal.timeout(PROBE_MS)]);
  try {
    using response = await http.get({
      origin,
      path: describesEach(entry) ? `${path}/models/${encodeURI(entry.model)}` : `${path}/models`,
      headers: { "accept-encoding": "identity", ...format.headers(entry) },
      signal,
    });
    if (response.status < 400) return {};
    const { error, about } = await readFailure(response, format);
    return isAnswer(error, about, entry) ? { error } : {};
  } catch (error) {
    // After the time, a call may still succeed.
    return signal.aborted ? undefined : { error: toModelError(error) };
  }
}

/** Whether a refused probe means that calls are refused too. A proxy may not know the path. */
function isAnswer({ status }: ModelError, about: string, { vendor, baseUrl }: ModelEntry): boolean {
  if (status === 404) return baseUrl === undefined && vendor !== "openai-compatible";
  return (status === 401 || status === 402 || status === 403) && !MAY_NOT_LIST.test(about);
}
