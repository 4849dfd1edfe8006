import type { EndReason } from "../port/model.ts";
import { ModelError, unreadable } from "../port/model-error.ts";
import { type Collector, tokenCount } from "./collector.ts";
import {
  endReason,
  frameFailure,
  type JsonObject,
  list,
  looseObject,
  object,
  parseObject,
  type WireError,
  waitIn,
  wordsOf,
} from "./wire.ts";

/** Reads an event of a stream. */
export function readEvent(data: string, into: Collector): void {
  if (data.startsWith("[DONE]")) {
    into.isWhole = true;
    return;
  }
  const json = parseObject(data);
  failIfError(json);
  into.identify(json.model);
  const choice = object(list(json.choices)[0]);
  readMessage(object(choice.delta), into);
  readEnd(choice, into);
  // Moonshot's is in the choice.
  const usage = json.usage ?? choice.usage;
  if (usage) readUsage(object(usage), into);
}

/** Reads a whole reply. */
export function readWhole(body: string, into: Collector): void {
  const json = parseObject(body);
  failIfError(json);
  into.identify(json.model);
  const choice = object(list(json.choices)[0]);
  if (!choice.message) throw unreadable();
  readMessage(object(choice.message), into);
  readEnd(choice, into);
  if (json.usage) readUsage(object(json.usage), into);
  into.isWhole = true;
}

/** Reads the body of a failed reply. */
export function readError(body: string): WireError {
  // Those of Gemini's compatible address come as a list of one.
  const json = looseObject(body);
  const { error = json } = object(list(json)[0] ?? json);
  return describe(object(error ?? json), body);
}

/** Reads `message` of a whole completion or `delta` of a stream. Audio and unknown members are not text. */
function readMessage(message: JsonObject, into: Collector): void {
  // Before the text, which has no thinking then.
  if (message.reasoning_content || message.reasoning || list(message.reasoning_details).length > 0) into.thinks = true;
  if (typeof message.content === "string") into.write(message.content);
  // Mistral sends parts. Parts with thoughts are not text.
  else for (const part of list(message.content)) readPart(object(part), into);
  if (typeof message.refusal === "string" && message.refusal !== "") into.refuse();
  if (into.takesCalls) for (const call of list(message.tool_calls)) readCall(object(call), into);
}

/** Reads a call or a part of it. Some servers send the arguments as an object, or leave the index out. */
function readCall({ index, id, function: called }: JsonObject, into: Collector): void {
  const { name, arguments: given } = object(called);
  const text = typeof given === "object" && given !== null ? JSON.stringify(given) : given;
  into.writeCall(index ?? undefined, { id, name, text });
}

function readPart({ type, text }: JsonObject, into: Collector): void {
  if (type === "text") into.write(text);
  else if (type === "thinking" || type === "reasoning") into.thinks = true;
}

/** Reasons of all servers with this format, in lower case. Any other reason is `unknown`. */
const ENDS: Readonly<Record<string, EndReason>> = {
  stop: "stop",
  eos: "stop",
  eos_token: "stop",
  stop_sequence: "stop",
  end_turn: "stop",
  complete: "stop",
  length: "length",
  max_tokens: "length",
  model_length: "length",
};
/** Reasons of a completion that asks for tools. */
const CALLED: ReadonlySet<string> = new Set(["tool_calls", "tool_call", "function_call", "tool_use"]);
/** Gemini adds its own word, as in `content_filter: SAFETY`. `sensitive` is Zhipu's. */
const FILTERED = /content_filter|safety|sensitive|refusal|recitation|prohibited|blocklist/;
const FAILED = /error|abort|insufficient_system_resource/;

function readEnd({ finish_reason: reason }: JsonObject, into: Collector): void {
  if (typeof reason !== "string" || reason === "") return;
  const word = reason.toLowerCase();
  if (FAILED.test(word)) throw new ModelError("The vendor reports that the completion failed.", { retryable: true });
  if (into.takesCalls && CALLED.has(word)) into.finish("stop");
  else into.finish(FILTERED.test(word) ? "content_filter" : endReason(ENDS, word));
}

/** Names of models whose thinking is counted in the total only. */
const GEMINI = /\bgemini\b/i;

function readUsage(usage: JsonObject, into: Collector): void {
  const { prompt_tokens: input, completion_tokens: output, total_tokens: total } = usage;
  const { reasoning_tokens: named } = object(usage.completion_tokens_details);
  // The second name is DeepSeek's, the third Moonshot's.
  const cached =
    object(usage.prompt_tokens_details).cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens;
  const written = tokenCount(output);
  const rest = tokenCount(total) - tokenCount(input) - written;
  // xAI counts thinking beside the completion and not in it. Gemini does too, and names it in the total only, where
  // others count input that was read from a cache or written to it.
  const isTold = rest > 0 && rest !== tokenCount(cached) && GEMINI.test(into.version ?? "");
  const isThinking = tokenCount(named) > 0 ? rest === tokenCount(named) : isTold;
  into.report({
    inputTokens: input,
    outputTokens: isThinking ? written + rest : output,
    cachedTokens: cached,
    thinkingTokens: isThinking ? rest : named,
  });
}

/** @throws ModelError if a response with status 200 is an error */
function failIfError(json: JsonObject): void {
  if (json.error) throw frameFailure(describe(object(json.error), String(json.error)), object(json.error).code);
  // FastChat and older vLLM.
  if (json.object === "error") throw frameFailure(describe(json, ""), json.code);
}

/** The third is DashScope's. */
const REFUSED = /content_filter|(?:content|bio|cyber|misalignment)_policy|data_?inspection|safety|invalid_prompt/i;
/** OpenRouter's words for a request that is not of its form, with the code of a refusal. */
const NOT_REFUSED = /^invalid_prompt .*invalid responses api request/i;
/** DeepSeek's and OpenRouter's words, which have no code. */
const REFUSED_WORDS = /content exists risk|requires moderation.*flagged/i;
/**
 * In this order: most servers; llama.cpp; xAI; TGI; Cohere, Gemini, Zhipu and Moonshot; DashScope; OpenAI, for more
 * tokens than the account has in a minute.
 */
const TOO_LONG = new RegExp(
  [
    "context_length|context (?:length|window)|maximum context|prompt is too long|input is too long",
    "exceed_context_size|available context size|maximum prompt|`inputs` (?:tokens|must have)|too many tokens:",
    "input token count.{0,40}exceeds|prompt exceeds|exceeded model token limit|range of input length",
    "request too large for .{0,200}tokens per min",
  ].join("|"),
  "i",
);

/** Accounts without credit, with the status of a rate limit: OpenAI's and Moonshot's codes; xAI's words; Zhipu's. */
const EXHAUSTED = /^insufficient_quota |exceeded_current_quota_error |used all available credits|insufficient balance/i;

/** A model that is not ready yet, for which these servers name no wait: llama.cpp; Hugging Face. */
const LOADING = { words: /^503 \S+ loading model\b|\bmodel \S+ is currently loading\b/i, retryAfterMs: 2_000 };

/** Codes of Groq for what the model has written wrongly, with status 400. Another try may succeed. */
const FAILED_GENERATION = /^(?:tool_use_failed|json_validate_failed|output_parse_failed)$/;

/** The words that refuse reasoning in a call with tools. The parameter beside them is `reasoning_effort`. */
export const BESIDE_TOOLS = /\btools? with reasoning_effort\b/i;

/** @param body stands for the message where that is not text, as in Mistral's and FastAPI's lists of refused fields */
export function describe(error: JsonObject, body: string): WireError {
  const { message, code, param, type, metadata, details } = error;
  // OpenRouter says "Provider returned error", and beside it what the server behind it has said.
  const { raw } = object(metadata);
  if (typeof raw === "string" && raw !== "") return readError(raw);
  const words = wordsOf(code, type, typeof message === "string" ? message : body);
  const isRefused = REFUSED.test(wordsOf(code, type)) && !NOT_REFUSED.test(words);
  if (isRefused || REFUSED_WORDS.test(words)) return { about: words, kind: "refused" };
  if (TOO_LONG.test(words)) return { about: words, kind: "too_long" };
  return {
    about: words,
    code: code ?? type,
    ...(typeof param === "string" && param !== "" && !BESIDE_TOOLS.test(words) ? { param } : {}),
    ...(EXHAUSTED.test(words) ? { retryable: false } : {}),
    ...(FAILED_GENERATION.test(wordsOf(code)) ? { retryable: true } : {}),
    ...(LOADING.words.test(words) ? { retryAfterMs: LOADING.retryAfterMs } : {}),
    ...waitIn(details, words),
  };
}

/** The words, with code and type before them, of refusals whose status hides what they are about. */
const STATUSES: readonly (readonly [words: RegExp, status: number])[] = [
  // Keys: xAI and Gemini send 400. The quotes keep a prompt that xAI quotes from looking like that.
  [/"error":"Incorrect API key provided|^400 \S* API key (?:not valid|expired)/, 401],
  // Names of models, for which these send 400: DeepSeek and SiliconFlow, OpenRouter, Mistral and Perplexity, LiteLLM.
  [/^\S* \S* Model (?:not exist|does not exist)/i, 404],
  [/^\S* \S* \S+ is not a valid model ID$|^\S* invalid_model /, 404],
  [/^\S* \S* .{0,40}Invalid model name passed in model=/, 404],
  // What one request asks for: OpenRouter sends 404 where no provider of the model takes tools, images or an option.
  [/^404 \S* No endpoints found that (?:support|can handle)\b/, 400],
];

/** The status that a failure should have, where the vendor sends another one. */
export function statusOf({ about }: WireError): number | undefined {
  return STATUSES.find(([words]) => words.test(about))?.[1];
}
