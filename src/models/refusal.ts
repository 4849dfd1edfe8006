import type { Message } from "./port/model.ts";
import { ModelError, mayPass } from "./port/model-error.ts";
import type { HttpResponse } from "./vendor-response.ts";
import type { Forms, Option, WireCall, WireError, WireFormat } from "./wire/wire.ts";

/** Characters of an error's body that are read. */
const MAX_ERROR = 64 * 1024;

/** Words of a refusal that applies to every value of the option. */
const NEVER_TAKEN = new RegExp(
  "unsupported|not support|no endpoints found|not permitted|not allowed|unknown|unrecognized|deprecated|extra inputs|" +
    "unexpected role|not enabled|reasoning_content|thought_?signature",
  "i",
);

/** Words of a refusal of one schema, of which they quote names: OpenAI, Anthropic (twice), Google. */
const OF_SCHEMA =
  /\binvalid schema for\b|\.(?:input_)?schema: |\bfor '\w+' type\b|\bat 'generation_config\.response_\w*schema/i;

/** OpenRouter's words for what no provider of the model can do. They name it. */
const NO_ENDPOINTS = /no endpoints found/i;

/** Words of a refusal that excludes one value of an option, or lists those that the option may have. */
const OF_VALUE = new RegExp(
  "must be (?:one of|either|['\"`])|should be ['\"`]|\\bvalues? (?:are|is)\\b|supported values?|unknown variant|" +
    "only works in",
  "i",
);

/** A response with an error status. The words or the parameter show which option the vendor refused. */
export interface VendorFailure extends Pick<WireError, "about" | "param"> {
  error: ModelError;
}

/** Reads a response with an error status. */
export async function readFailure(response: HttpResponse, format: WireFormat): Promise<VendorFailure> {
  const { headers } = response;
  let body = "";
  try {
    for (let chunk = await response.read(); chunk !== undefined; chunk = await response.read()) {
      body += chunk;
      if (body.length > MAX_ERROR) break;
    }
  } catch {
    // The status is enough.
  }
  response[Symbol.dispose]();
  const said = format.readError(body);
  const { about, code, param, kind, retryable, retryAfterMs } = said;
  const status = format.statusOf?.(said) ?? response.status;
  const wish = headers["x-should-retry"];
  const mayRetry = retryable ?? (wish === "true" || (wish !== "false" && mayPass(status)));
  const error = new ModelError(`The vendor answered with status ${status}.`, {
    retryable: kind === undefined && mayRetry,
    retryAfterMs: retryAfter(headers) ?? retryAfterMs,
    status,
    code,
    kind: kind ?? (status === 413 ? "too_long" : undefined),
    cause: about.slice(0, 1_000),
  });
  return { error, about, ...(param === undefined ? {} : { param }) };
}

/**
 * Finds the option that a vendor refused (status 400 or 422) in its words. Reasoning models refuse `temperature` or
 * `stop`, some servers `response_format`. A list of such models would soon be out of date.
 * @returns undefined if the refusal is about something else
 */
export function refusedOption(
  { error, about, param }: VendorFailure,
  sent: WireCall,
  forms: Forms,
  format: WireFormat,
): Option | undefined {
  if ((error.status !== 400 && error.status !== 422) || error.kind !== undefined) return undefined;
  const isSent: Record<Option, boolean> = {
    temperature: sent.temperature !== undefined,
    stops: sent.stops.length > 0,
    maxTokens: sent.maxTokens !== undefined,
    format: sent.format !== undefined,
    reasoning: sent.reasoning !== undefined,
    cacheKey: sent.cacheKey !== undefined,
    usage: sent.streamed,
    strictTools: sent.tools?.list.some(({ strict }) => strict) ?? false,
    toolChoice: sent.tools !== undefined && sent.tools.choice !== "auto",
    parallel: sent.tools?.parallel === false,
    toolReasoning: sent.tools !== undefined && sent.reasoning !== undefined,
    toolFormat: sent.tools !== undefined && sent.format !== undefined,
    system: sent.prompt.system !== "",
    thoughts: sent.prompt.messages.some(({ role }) => role === "assistant"),
    signature: sent.prompt.messages.some(({ calls }) => calls),
    toolTurn: sent.prompt.messages.some(hasTextAfterResults),
  };
  const names = Object.entries(format.optionNames) as [Option, RegExp][];
  const isLeft = (option: Option) => isSent[option] && forms[option] < format.forms[option];
  // The words quote what the model has written, so they name no option. JSON can be asked for in the prompt.
  if (error.retryable) return isLeft("format") && !sent.tools ? "format" : undefined;
  const named = names.find(([option, name]) => isLeft(option) && name.test(param ?? about))?.[0];
  // A vendor may refuse a schema without naming it. Another mode or the prompt can still ask for it.
  return named ?? (sent.format?.type === "schema" && !NO_ENDPOINTS.test(about) ? "format" : undefined);
}

function hasTextAfterResults({ results, text, images }: Message): boolean {
  return results !== undefined && (text !== "" || (images?.length ?? 0) > 0);
}

/** Finds the allowed ceiling in a refusal such as "32000 > 8192". @returns undefined if it names none */
export function outputLimit(about: string, asked = 0): number | undefined {
  const limit = Math.max(...numbersIn(about).filter((number) => number >= 256 && number < asked), 0);
  return limit > 0 ? limit : undefined;
}

/** Whether a refusal applies to later calls as well: to every value of the option, or to one that calls often have. */
export function isNeverTaken(option: Option, about: string, { maxTokens = Number.NaN, format }: WireCall): boolean {
  if ((option === "format" || option === "strictTools") && OF_SCHEMA.test(about)) return false;
  const isUsual = option !== "format" || format?.type === "json";
  if (!NEVER_TAKEN.test(about) && !(isUsual && isOfValue(option, about))) return false;
  return option !== "maxTokens" || !numbersIn(about).includes(maxTokens);
}

/** Whether a refusal is about one depth of reasoning or one type of format: the model may take others. */
export function isOfValue(option: Option, about: string): boolean {
  return (option === "reasoning" || option === "format") && OF_VALUE.test(about);
}

/** The tokens that an account has in a minute, and those of one request with its ceiling (OpenAI, Groq). */
const OF_MINUTE = /\blimit (\d+), requested (\d+)/i;

/** Words for the output beside the prompt, in a refusal because both together exceed the context window. */
const OUTPUT = /max_?(?:completion_?|output_?|new_?)?tokens|\boutput\b|\bcompletion\b/i;

/**
 * Finds the output tokens that fit into the context window beside the prompt, in a refusal because the prompt is too
 * long, alone or together with the output ceiling. The words name the prompt, the ceiling that was asked for, the
 * window, and some also the sum of the first two, in any order.
 * @returns 0 if the prompt alone does not fit; undefined if the words do not say
 */
export function roomForOutput(about: string, asked: number): number | undefined {
  const [, limit, requested] = OF_MINUTE.exec(about) ?? [];
  const excess = Number(requested) - Number(limit);
  if (excess > 0) return Math.max(0, asked - excess);
  if (!OUTPUT.test(about)) return 0;
  const numbers = numbersIn(about);
  // vLLM may count the prompt only up to the window, and then says "at least".
  if (/\bat least\b/i.test(about) || !numbers.includes(asked)) return undefined;
  const others = new Set(numbers.filter((number) => number !== asked));
  const sum = [...others].find((number) => others.has(number - asked));
  if (sum !== undefined) {
    const prompt = sum - asked;
    const [window = asked, ...more] = [...others].filter((number) => number !== sum && number !== prompt);
    return more.length > 0 || window - prompt >= asked ? undefined : Math.max(0, window - prompt);
  }
  const [first = asked, second = asked, ...more] = others;
  const room = Math.abs(first - second);
  return more.length === 0 && room > 0 && room < asked ? room : undefined;
}

/** The whole numbers in a text, without those in names of models such as gpt-4-1106. */
function numbersIn(text: string): number[] {
  const plain = text.slice(0, 2_000).replace(/(?<=\d),(?=\d{3}\b)/g, "");
  return Array.from(plain.matchAll(/(?<![\w.-])\d+(?![\w-]|\.\d)/g), ([digits]) => Number(digits));
}

/** `retry-after-ms` (OpenAI), or `retry-after` in seconds or as a date (RFC 9110, 10.2.3). In milliseconds. */
function retryAfter(headers: HttpResponse["headers"]): number | undefined {
  const ms = Number.parseFloat(String(headers["retry-after-ms"] ?? ""));
  if (ms >= 0) return ms;
  const text = String(headers["retry-after"] ?? "");
  const seconds = Number(text);
  if (text !== "" && seconds >= 0) return seconds * 1_000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
