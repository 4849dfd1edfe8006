import { create } from "@bufbuild/protobuf";
import {
  type ChatMessage,
  type ChatPart_File_Source,
  type ChatPart_Image_Source,
  type ChatResponseFormat,
  ChatRole,
  type CreateChatCompletionRequest,
  CreateChatCompletionRequestSchema,
  ReasoningEffort,
} from "../../../gen/chorus/v1/chat_pb.js";
import {
  type Attachment,
  AttachmentSchema,
  Effort,
  type GenerateRequest,
  GenerateRequestSchema,
  type Message,
  MessageSchema,
  OutputShape,
  ResponseFormatSchema,
  Role,
} from "../../../gen/chorus/v1/generation_pb.js";
import { invalid } from "../../contract/failure.ts";
import { isTag, MAX_TAGS } from "../../contract/subjects.ts";
import type { FieldNames } from "../call/field-names.ts";
import type { ForeignTerms } from "../call/format.ts";
import { decodeText, parseBody } from "../call/json-body.ts";
import { EFFORTS, readModel, smallestEffort } from "../call/model-names.ts";
import { decodeBase64, decodeStrictly } from "../rest/decode.ts";

/** What a request in OpenAI's format asks for beyond a `GenerateRequest`. */
export interface ChatTerms extends ForeignTerms {
  readonly includeUsage: boolean;
}

/** Members that became fields under other names. */
const NAMES: FieldNames = [
  ["attachments", "messages"],
  ["stop_sequences", "stop"],
  ["response_format.schema", "response_format.json_schema.schema"],
  ["tags", "metadata"],
];

const REASONING: Readonly<Record<ReasoningEffort, Effort>> = {
  [ReasoningEffort.UNSPECIFIED]: Effort.UNSPECIFIED,
  [ReasoningEffort.NONE]: Effort.LOW,
  [ReasoningEffort.MINIMAL]: Effort.LOW,
  [ReasoningEffort.LOW]: Effort.LOW,
  [ReasoningEffort.MEDIUM]: Effort.MEDIUM,
  [ReasoningEffort.HIGH]: Effort.HIGH,
  [ReasoningEffort.XHIGH]: Effort.HIGH,
};

const ROLES: Readonly<Record<ChatRole, Role>> = {
  [ChatRole.UNSPECIFIED]: Role.UNSPECIFIED,
  [ChatRole.SYSTEM]: Role.SYSTEM,
  [ChatRole.DEVELOPER]: Role.SYSTEM,
  [ChatRole.USER]: Role.USER,
  [ChatRole.ASSISTANT]: Role.ASSISTANT,
};

/**
 * Decodes a body in OpenAI's format.
 * @throws Failure invalid_json; invalid_request naming the parameter that is not valid or not supported
 */
export function decodeChat(bytes: Uint8Array): { request: GenerateRequest; terms: ChatTerms } {
  const text = decodeText(bytes);
  const body = decodeStrictly(CreateChatCompletionRequestSchema, text, parseBody(text));
  checkFixed(body);
  if (body.maxTokens !== undefined && body.maxCompletionTokens !== undefined)
    throw invalid("max_tokens", "max_tokens and max_completion_tokens mean the same. Send only one of them.");
  if (body.streamOptions && !body.stream)
    throw invalid("stream_options", "stream_options is only possible with stream. Leave it out, or set stream.");
  const { messages, attachments, files } = readMessages(body.messages);
  const isText = (body.responseFormat?.format.case ?? "text") === "text";
  const request = create(GenerateRequestSchema, {
    messages,
    attachments,
    effort: smallestEffort(EFFORTS.get(body.model), REASONING[body.reasoningEffort]),
    stopSequences: body.stop,
    user: body.safetyIdentifier || body.user,
    tags: tagsOf(body),
    ...optional("temperature", body.temperature),
    ...optional("maxTokens", body.maxCompletionTokens ?? body.maxTokens),
    ...formatOf(body.responseFormat),
  });
  const terms: ChatTerms = {
    isStream: body.stream,
    streamed: body.stream && isText,
    includeUsage: body.streamOptions?.includeUsage ?? false,
    ...readModel(body.model),
    notices: [],
    names: [
      ...NAMES,
      ["max_tokens", body.maxTokens === undefined ? "max_completion_tokens" : "max_tokens"],
      ["user", body.safetyIdentifier === "" ? "user" : "safety_identifier"],
      ...files,
    ],
  };
  return { request, terms };
}

/** @throws Failure if a parameter that has only one possible value has another one */
function checkFixed({ n, topP, presencePenalty, frequencyPenalty }: CreateChatCompletionRequest): void {
  const only = (name: string, value: number | undefined, possible: number) => {
    if (value !== undefined && value !== possible)
      throw invalid(name, `${name} is not supported; its only value is ${possible}. Leave it out.`);
  };
  only("n", n, 1);
  only("top_p", topP, 1);
  only("presence_penalty", presencePenalty, 0);
  only("frequency_penalty", frequencyPenalty, 0);
}

/** The first of the metadata that can be tags. Other programs' metadata has longer texts, and is no mistake. */
function tagsOf({ metadata }: CreateChatCompletionRequest): Record<string, string> {
  const possible = Object.entries(metadata).filter(([name, value]) => isTag(name, value));
  return Object.fromEntries(possible.slice(0, MAX_TAGS));
}

/** The messages and files of a conversation. The indices of the messages stay the same. */
function readMessages(chat: readonly ChatMessage[]) {
  const messages: Message[] = [];
  const attachments: Attachment[] = [];
  const files: (readonly [field: string, member: string])[] = [];
  for (const [i, { role, content }] of chat.entries()) {
    const texts: string[] = [];
    for (const [j, { part }] of content.entries()) {
      const path = `messages[${i}].content[${j}]`;
      if (part.case === "text") texts.push(part.value.text);
      else if (role !== ChatRole.USER)
        throw invalid(path, `${path} must be text: only the role "user" may send files.`);
      else {
        const file = part.case === "file" ? readFile(path, part.value.file) : readImage(path, part.value?.imageUrl);
        const data = `${path}.${part.case === "file" ? "file.file_data" : "image_url.url"}`;
        const field = `attachments[${attachments.length}]`;
        attachments.push(file);
        files.push([field, path], [`${field}.name`, `${path}.file.filename`]);
        files.push([`${field}.data`, data], [`${field}.media_type`, data]);
      }
    }
    messages.push(create(MessageSchema, { role: ROLES[role], content: texts.join("\n") }));
  }
  return { messages, attachments, files };
}

function readImage(path: string, { url = "", detail = "" }: Partial<ChatPart_Image_Source> = {}): Attachment {
  if (detail !== "" && detail !== "auto")
    throw invalid(`${path}.image_url.detail`, `${path}.image_url.detail must be "auto". Leave it out.`);
  return readDataUrl(`${path}.image_url.url`, url, "");
}

function readFile(path: string, { fileData = "", filename = "" }: Partial<ChatPart_File_Source> = {}): Attachment {
  return readDataUrl(`${path}.file.file_data`, fileData, filename);
}

/** Reads a `data:` URL in base64 (RFC 2397). */
function readDataUrl(parameter: string, url: string, name: string): Attachment {
  const comma = url.indexOf(",");
  const head = url.slice(0, Math.max(0, comma));
  const data = /^data:.*;base64$/i.test(head) ? decodeBase64(url.slice(comma + 1)) : undefined;
  if (!data) {
    const expected = 'a URL such as "data:image/png;base64,…"';
    throw invalid(parameter, `${parameter} must be ${expected}. The service loads no other URLs.`);
  }
  return create(AttachmentSchema, { name, mediaType: head.slice("data:".length, -";base64".length), data });
}

function formatOf(responseFormat: ChatResponseFormat | undefined) {
  const { format } = responseFormat ?? {};
  if (format?.case === "jsonObject") return { outputShape: OutputShape.EXTRACT };
  if (format?.case !== "jsonSchema") return {};
  const { schema = "", description = "" } = format.value.jsonSchema ?? {};
  return {
    responseFormat: create(ResponseFormatSchema, { format: { case: "jsonSchema", value: { schema } } }),
    system: description === "" ? "" : `Purpose of the answer's format: ${description}`,
  };
}

function optional<K extends string, V>(name: K, value: V | undefined): { [name in K]?: V } {
  return value === undefined ? {} : ({ [name]: value } as { [name in K]: V });
}
