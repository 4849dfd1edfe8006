import { create } from "@bufbuild/protobuf";
import { GenerateRequestSchema, type Notice, Role } from "../../../gen/chorus/v1/generation_pb.js";
import {
  type CreateMessageRequest,
  CreateMessageRequestSchema,
  type OutputFormat,
} from "../../../gen/chorus/v1/messages_pb.js";
import { invalid } from "../../contract/failure.ts";
import { MAX_OUTPUT_TOKENS } from "../../contract/terms.ts";
import { readForeignFormat } from "../../generate/foreign-format.ts";
import { notice } from "../../generate/notices.ts";
import type { FieldNames } from "../call/field-names.ts";
import type { Decoded, ForeignTerms } from "../call/format.ts";
import { decodeText, parseBody } from "../call/json-body.ts";
import { readModel } from "../call/model-names.ts";
import { addUnknown, type UnknownMembers } from "../call/unknown-members.ts";
import { decodeForeign } from "../rest/decode.ts";
import { readConversation } from "./conversation.ts";
import { effortOf } from "./effort.ts";
import { THREAD } from "./failure.ts";
import { readTools } from "./tools.ts";
import { userOf } from "./user.ts";

/** What a request in Anthropic's format asks for beyond a `GenerateRequest`. */
export interface MessageTerms extends ForeignTerms {
  /** Whether it has `max_tokens`, without which there is no answer. */
  readonly isSized: boolean;
}

/** Members that would change the answer, and that the service does not support. */
const REFUSED: ReadonlySet<string> = new Set(["container", "mcp_servers", "inference_geo", THREAD]);

/** Members that keep a search of the web to some domains. */
const DOMAINS = /^tools\[\d+\]\.(?:allowed|blocked)_domains$/;

/** Members that change no answer, which can stand at any depth. */
const HINT = /(?:^|\.)(?:cache_control|defer_loading|caller)$/;

/** Members that became fields under other names. */
const NAMES: FieldNames = [
  ["attachments", "messages"],
  ["user", "metadata.user_id"],
  ["web_search", "tools"],
];

/**
 * Decodes a body in Anthropic's format.
 * @throws Failure invalid_json; invalid_request naming the member that is not valid or not supported
 */
export function decodeMessages(bytes: Uint8Array): Decoded<ReturnType<typeof requestOf>["request"]> {
  const text = decodeText(bytes);
  const found: UnknownMembers = { unknown: [], more: 0 };
  const body = decodeForeign(CreateMessageRequestSchema, text, parseBody(text), (name) => {
    if (REFUSED.has(name) || DOMAINS.test(name)) throw invalid(name, `${name} is not supported. Leave it out.`);
    if (!HINT.test(name)) addUnknown(found, name);
  });
  return { ...requestOf(body), ...found };
}

function requestOf(body: CreateMessageRequest) {
  const { maxTokens, outputFormat, outputConfig, stream, temperature } = body;
  if (outputFormat && outputConfig?.format)
    throw invalid("output_format", "output_format and output_config.format mean the same. Send only one of them.");
  const format = outputFormat ?? outputConfig?.format;
  const formatName = outputFormat ? "output_format" : "output_config.format";
  const answer = format && readFormat(format, `${formatName}.schema`);
  const { messages, attachments, system, names } = readConversation(body);
  const toolNames: [field: string, member: string][] = [];
  const last = messages.at(-1);
  const notices = [...noEffect(body), ...(answer?.notices ?? [])];
  const user = userOf(body.metadata?.userId ?? "", notices);
  if (maxTokens !== undefined && maxTokens > MAX_OUTPUT_TOKENS) {
    const message = `The answer may have ${MAX_OUTPUT_TOKENS} tokens at most, not max_tokens.`;
    notices.push(notice("max_tokens_lowered", message, "max_tokens"));
  }
  const request = create(GenerateRequestSchema, {
    messages,
    attachments,
    system,
    user,
    effort: effortOf(body),
    ...readTools(body, toolNames),
    stopSequences: body.stopSequences,
    ...(last?.role === Role.ASSISTANT && last.content !== "" && last.toolCalls.length === 0
      ? { continueLastMessage: true }
      : {}),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxTokens: Math.min(maxTokens, MAX_OUTPUT_TOKENS) }),
    ...answer?.fields,
  });
  const terms: MessageTerms = {
    isStream: stream,
    streamed: stream && !format,
    ...readModel(body.model),
    isSized: maxTokens !== undefined,
    notices,
    names: [
      ...NAMES,
      ["response_format", formatName],
      ["continue", `messages[${body.messages.length - 1}]`],
      ...names,
      ...toolNames,
    ],
  };
  return { request, terms };
}

/** @param path of the schema */
function readFormat({ format }: OutputFormat, path: string) {
  return readForeignFormat({ schema: format.value?.schema ?? "", description: "", strict: true, path });
}

/** Notices about the members that change nothing here. */
function noEffect({ topP, topK, serviceTier, thinking }: CreateMessageRequest): Notice[] {
  const sent: [name: string, isSent: boolean][] = [
    ["top_p", topP !== undefined && topP !== 1],
    ["top_k", topK !== undefined],
    ["service_tier", serviceTier !== "" && serviceTier !== "auto"],
    ["thinking.display", thinking?.display === "summarized"],
  ];
  return sent.filter(([, isSent]) => isSent).map(([name]) => notice("no_effect", `${name} has no effect here.`, name));
}
