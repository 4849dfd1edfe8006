import type { CreateResponseRequest } from "../../../gen/chorus/v1/responses_pb.js";

/** Longest member of a request that its response repeats, in UTF-16 units of JSON. Longer ones count as not sent. */
const MAX_ECHO = 65_536;

type Json = Readonly<Record<string, unknown>>;

/**
 * The members of a response that repeat the request, as JSON without braces: each that OpenAI's API always has, with
 * the value that it has there if the request does not name one.
 * @param json the body that was decoded
 */
export function echoOf(body: CreateResponseRequest, json: object): string {
  const { text, tools, tool_choice, reasoning } = json as Json;
  const members = [
    ["instructions", textOrNull(body.instructions)],
    ["max_output_tokens", String(body.maxOutputTokens ?? null)],
    ["temperature", String(body.temperature ?? 1)],
    ["top_p", "1"],
    ["text", written({ format: { type: "text" }, ...(text ? withFullFormat(text as Json) : {}) }, TEXT)],
    ["reasoning", written({ effort: null, summary: null, ...(reasoning ? only(reasoning, ["effort"]) : {}) })],
    ["tools", Array.isArray(tools) ? written(tools.map(fullTool), "[]") : "[]"],
    ["tool_choice", written(tool_choice ?? "auto", '"auto"')],
    ["parallel_tool_calls", String(body.parallelToolCalls ?? true)],
    ["metadata", written(body.metadata, "{}")],
    ["user", textOrNull(body.user)],
    ["safety_identifier", textOrNull(body.safetyIdentifier)],
    ["prompt_cache_key", textOrNull(body.promptCacheKey)],
  ] as const;
  let echo = "";
  for (const [name, value] of members) echo += `"${name}":${value},`;
  return echo + FIXED;
}

/** What `text` is in the response to a request without it. */
const TEXT = '{"format":{"type":"text"}}';

/** A member as JSON. @param absent takes the place of a long one */
function written(value: unknown, absent = "null"): string {
  const json = JSON.stringify(value);
  return json.length <= MAX_ECHO ? json : absent;
}

/** Members that are the same in every response. */
const FIXED =
  '"previous_response_id":null,"max_tool_calls":null,"store":false,"background":false,"truncation":"disabled",' +
  '"service_tier":"default","presence_penalty":0,"frequency_penalty":0,"top_logprobs":0';

function textOrNull(text: string): string {
  return text === "" ? "null" : written(text);
}

/** Some members of an object, without those that are null. */
function only(value: unknown, names: readonly string[]): Json {
  return Object.fromEntries(
    Object.entries((value ?? {}) as Json).filter(([name, member]) => names.includes(name) && member !== null),
  );
}

/** Responses have all members of a format, requests need not. */
function withFullFormat(text: Json): Json {
  const { format } = text as { format?: Json };
  if (format?.type !== "json_schema") return only(text, ["format", "verbosity"]);
  return { ...text, format: { description: null, strict: false, ...format } };
}

function fullTool(tool: Json): Json {
  return tool.type === "function" ? { description: null, parameters: null, strict: null, ...tool } : tool;
}
