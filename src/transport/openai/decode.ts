import { create } from "@bufbuild/protobuf";
import {
  type ChatMessage,
  type ChatResponseFormat,
  ChatRole,
  type CreateChatCompletionRequest,
  CreateChatCompletionRequestSchema,
} from "../../../gen/chorus/v1/chat_pb.js";
import {
  type GenerateRequest,
  GenerateRequestSchema,
  type Message,
  MessageSchema,
  OutputShape,
  Role,
} from "../../../gen/chorus/v1/generation_pb.js";
import { invalid } from "../../contract/failure.ts";
import { readForeignFormat } from "../../generate/foreign-format.ts";
import type { FieldNames } from "../call/field-names.ts";
import type { ForeignTerms } from "../call/format.ts";
import { decodeText, parseBody } from "../call/json-body.ts";
import { Members } from "../call/members.ts";
import { EFFORTS, readModel, smallestEffort } from "../call/model-names.ts";
import { decodeForeign } from "../rest/decode.ts";
import { Files } from "./files.ts";
import { CHAT_MEMBERS } from "./members.ts";
import { joined, optional, REASONING, tagsOf, VERBOSITY } from "./parameters.ts";
import { namesOfCalls, readCall, readTools } from "./tools.ts";

/** What a request in OpenAI's format asks for beyond a `GenerateRequest`. */
export interface ChatTerms extends ForeignTerms {
  readonly includeUsage: boolean;
  /** Names of the tools that take text instead of JSON. */
  readonly custom: ReadonlySet<string>;
}

export const ROLES: Readonly<Record<ChatRole, Role>> = {
  [ChatRole.UNSPECIFIED]: Role.UNSPECIFIED,
  [ChatRole.SYSTEM]: Role.SYSTEM,
  [ChatRole.DEVELOPER]: Role.SYSTEM,
  [ChatRole.USER]: Role.USER,
  [ChatRole.ASSISTANT]: Role.ASSISTANT,
  [ChatRole.TOOL]: Role.TOOL,
};

/**
 * Decodes a body in OpenAI's format.
 * @throws Failure invalid_json; invalid_request naming the parameter that is not valid or not supported
 */
export function decodeChat(bytes: Uint8Array): { request: GenerateRequest; terms: ChatTerms } {
  const text = decodeText(bytes);
  const members = new Members(CHAT_MEMBERS);
  const body = decodeForeign(CreateChatCompletionRequestSchema, text, parseBody(text), members.add);
  checkParameters(body, members);
  const files = new Files();
  const messages = body.messages.map((message, i) => readMessage(message, i, files, members));
  const tools = readTools(body, members);
  const format = formatOf(body.responseFormat);
  const request = create(GenerateRequestSchema, {
    ...format.fields,
    messages,
    attachments: files.attachments,
    system: joined(format.fields.system, VERBOSITY[body.verbosity]),
    effort: smallestEffort(EFFORTS.get(body.model), REASONING[body.reasoningEffort]),
    stopSequences: body.stop,
    user: body.safetyIdentifier || body.user,
    tags: tagsOf(body.metadata),
    tools: tools.tools,
    ...optional("toolChoice", tools.toolChoice),
    ...optional("parallelToolCalls", body.parallelToolCalls),
    ...optional("temperature", body.temperature),
    ...optional("maxTokens", body.maxCompletionTokens ?? body.maxTokens),
    ...optional("webSearch", body.webSearchOptions && true),
  });
  const terms: ChatTerms = {
    isStream: body.stream,
    streamed: body.stream && (body.responseFormat?.format.case ?? "text") === "text",
    includeUsage: body.streamOptions?.includeUsage ?? false,
    custom: tools.custom,
    ...readModel(body.model),
    names: [...namesOf(body), ...namesOfCalls(body), ...files.names, ...tools.names],
    notices: [...members.notices, ...format.notices],
  };
  return { request, terms };
}

/** @throws Failure naming the parameter */
function checkParameters(body: CreateChatCompletionRequest, members: Members): void {
  const { n = 1, topP = 1, presencePenalty = 0, frequencyPenalty = 0 } = body;
  if (n !== 1) throw invalid("n", "n is not supported; its only value is 1. Leave it out.");
  if (topP !== 1) members.noEffect("top_p");
  if (presencePenalty !== 0) members.noEffect("presence_penalty");
  if (frequencyPenalty !== 0) members.noEffect("frequency_penalty");
  if (body.maxTokens !== undefined && body.maxCompletionTokens !== undefined)
    throw invalid("max_tokens", "max_tokens and max_completion_tokens mean the same. Send only one of them.");
  if (body.streamOptions && !body.stream)
    throw invalid("stream_options", "stream_options is only possible with stream. Leave it out, or set stream.");
}

/** The parameters that became fields under other names. */
function namesOf({ maxTokens, safetyIdentifier, webSearchOptions }: CreateChatCompletionRequest): FieldNames {
  return [
    ["attachments", "messages"],
    ["stop_sequences", "stop"],
    ["response_format.schema", "response_format.json_schema.schema"],
    ["tags", "metadata"],
    ["max_tokens", maxTokens === undefined ? "max_completion_tokens" : "max_tokens"],
    ["user", safetyIdentifier === "" ? "user" : "safety_identifier"],
    ["web_search", webSearchOptions ? "web_search_options" : "web_search"],
  ];
}

function readMessage(
  { role, content, toolCalls, toolCallId }: ChatMessage,
  index: number,
  files: Files,
  members: Members,
): Message {
  const path = `messages[${index}]`;
  const texts: string[] = [];
  for (const [j, { part }] of content.entries()) {
    const at = `${path}.content[${j}]`;
    if (part.case === "text") texts.push(part.value.text);
    else if (part.case === "refusal") texts.push(part.value.refusal);
    else if (role !== ChatRole.USER) throw invalid(at, `${at} must be text: only the role "user" may send files.`);
    else if (part.case === "file") {
      const { fileData = "", filename } = part.value.file ?? {};
      files.add(index, at, { data: "file.file_data", name: "file.filename" }, fileData, filename);
    } else {
      const { url = "", detail = "" } = part.value?.imageUrl ?? {};
      if (detail !== "" && detail !== "auto") members.noEffect(`${at}.image_url.detail`);
      files.add(index, at, { data: "image_url.url", name: "image_url.url" }, url);
    }
  }
  const calls = toolCalls.map((call, j) => readCall(call, `${path}.tool_calls[${j}]`));
  return create(MessageSchema, { role: ROLES[role], content: texts.join("\n"), toolCalls: calls, toolCallId });
}

function formatOf(responseFormat: ChatResponseFormat | undefined): ReturnType<typeof readForeignFormat> {
  const { format } = responseFormat ?? {};
  if (format?.case === "jsonObject") return { fields: { outputShape: OutputShape.EXTRACT }, notices: [] };
  if (format?.case !== "jsonSchema") return { fields: {}, notices: [] };
  const { schema = "", description = "", strict = false } = format.value.jsonSchema ?? {};
  return readForeignFormat({ schema, description, strict, path: "response_format.json_schema.schema" });
}
