import { create } from "@bufbuild/protobuf";
import { Verbosity } from "../../../gen/chorus/v1/chat_pb.js";
import { type GenerateRequest, GenerateRequestSchema, OutputShape } from "../../../gen/chorus/v1/generation_pb.js";
import {
  type CreateResponseRequest,
  CreateResponseRequestSchema,
  type ResponseTextFormat,
} from "../../../gen/chorus/v1/responses_pb.js";
import { invalid } from "../../contract/failure.ts";
import { readForeignFormat } from "../../generate/foreign-format.ts";
import type { FieldNames } from "../call/field-names.ts";
import type { ForeignTerms } from "../call/format.ts";
import { decodeText, parseBody } from "../call/json-body.ts";
import { Members } from "../call/members.ts";
import { EFFORTS, readModel, smallestEffort } from "../call/model-names.ts";
import { joined, optional, REASONING, tagsOf, VERBOSITY } from "../openai/parameters.ts";
import { decodeForeign } from "../rest/decode.ts";
import { echoOf } from "./echo.ts";
import { InputReader, withTypes } from "./input.ts";
import { RESPONSE_MEMBERS } from "./members.ts";
import { readTools, type ToolKinds } from "./tools.ts";

/** What a request of the Responses API asks for beyond a `GenerateRequest`. */
export interface ResponseTerms extends ForeignTerms {
  /** The members of a response that repeat the request, as JSON without braces. */
  readonly echo: string;
  readonly kinds: ToolKinds;
}

/**
 * Decodes a body of the Responses API.
 * @throws Failure invalid_json; invalid_request naming the parameter that is not valid or not supported
 */
export function decodeResponse(bytes: Uint8Array): { request: GenerateRequest; terms: ResponseTerms } {
  const text = decodeText(bytes);
  const members = new Members(RESPONSE_MEMBERS);
  const json = withTypes(parseBody(text));
  const body = decodeForeign(CreateResponseRequestSchema, text, json, members.add);
  if ((body.topP ?? 1) !== 1) members.noEffect("top_p");
  const input = new InputReader(members);
  input.read(body.input);
  if (input.messages.length === 0) throw invalid("input", "input must have a message. Add one.");
  const tools = readTools(body, members);
  const format = formatOf(body.text?.format);
  const request = create(GenerateRequestSchema, {
    ...format.fields,
    messages: input.messages,
    attachments: input.files.attachments,
    system: joined(body.instructions, format.fields.system, VERBOSITY[body.text?.verbosity ?? Verbosity.UNSPECIFIED]),
    effort: smallestEffort(EFFORTS.get(body.model), body.reasoning && REASONING[body.reasoning.effort]),
    user: body.safetyIdentifier || body.user,
    tags: tagsOf(body.metadata),
    tools: tools.tools,
    ...optional("toolChoice", tools.toolChoice),
    ...optional("parallelToolCalls", body.parallelToolCalls),
    ...optional("temperature", body.temperature),
    ...optional("maxTokens", body.maxOutputTokens),
    ...optional("webSearch", tools.webSearch || undefined),
  });
  const terms: ResponseTerms = {
    isStream: body.stream,
    streamed: body.stream && (body.text?.format?.format.case ?? "text") === "text",
    ...readModel(body.model),
    names: [...namesOf(body), ...input.names, ...input.files.names, ...tools.names],
    notices: [...members.notices, ...format.notices],
    echo: echoOf(body, json),
    kinds: tools.kinds,
  };
  return { request, terms };
}

/** The parameters that became fields under other names. */
function namesOf({ safetyIdentifier }: CreateResponseRequest): FieldNames {
  return [
    ["messages", "input"],
    ["attachments", "input"],
    ["response_format.schema", "text.format.schema"],
    ["tags", "metadata"],
    ["max_tokens", "max_output_tokens"],
    ["user", safetyIdentifier === "" ? "user" : "safety_identifier"],
    ["web_search", "tools"],
  ];
}

function formatOf(textFormat: ResponseTextFormat | undefined): ReturnType<typeof readForeignFormat> {
  const { format } = textFormat ?? {};
  if (format?.case === "jsonObject") return { fields: { outputShape: OutputShape.EXTRACT }, notices: [] };
  if (format?.case !== "jsonSchema") return { fields: {}, notices: [] };
  const { schema, description, strict = false } = format.value;
  return readForeignFormat({ schema, description, strict, path: "text.format.schema" });
}
