import {
  Effort,
  EffortSchema,
  type GenerateRequest,
  type Notice,
  OutputShape,
  OutputShapeSchema,
  Role,
} from "../../gen/chorus/v1/generation_pb.js";
import { Failure, invalid, invalidField } from "../contract/failure.ts";
import { readEnum } from "../contract/json-names.ts";
import { MEDIA_TYPES } from "../contract/media-types.ts";
import { checkTags, checkUser, type Tags } from "../contract/subjects.ts";
import { type Effort as EffortTerm, MAX_OUTPUT_TOKENS, type Shape } from "../contract/terms.ts";
import type { Attachment } from "../engine/attachments/attachment.ts";
import { essence } from "../engine/attachments/reader.ts";
import type { Conversation } from "../engine/prompt.ts";
import type { Question } from "../engine/question.ts";
import { checkSchema } from "../engine/structured/check-schema.ts";
import { checkWhole } from "../engine/structured/check-whole.ts";
import type { Message, ToolResult } from "../models/port/model.ts";
import { CallNames, checkCalls, checkTools, toolNotices } from "./validate-tools.ts";

/** Longest `prompt`, in characters (Unicode code points). */
const MAX_PROMPT = 200_000;
/** Of the service's own formats. The body bounds the messages of the others. */
const MAX_MESSAGES = 40;
const MAX_ATTACHMENTS = 5;
/** In the formats of other APIs: agents send all files of a conversation each time. Claude takes no more images. */
const MAX_FOREIGN_ATTACHMENTS = 100;
const MAX_NAME = 255;
const MAX_STOPS = 4;

const ROLES: ReadonlySet<Role> = new Set([Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL]);

const EFFORTS: Record<Effort, EffortTerm> = {
  [Effort.UNSPECIFIED]: "auto",
  [Effort.AUTO]: "auto",
  [Effort.LOW]: "low",
  [Effort.MEDIUM]: "medium",
  [Effort.HIGH]: "high",
};

export interface ReadOptions {
  readonly streamed: boolean;
  /** Whether the request has an idempotency key that counts. */
  readonly isRepeatable: boolean;
  /**
   * Whether the request came in the format of another API. It may have any number of messages, more files, and a JSON
   * Schema with all keywords that are checked.
   */
  readonly isForeign?: boolean;
}

/** The members of a question that its request says. */
type Asked =
  | ("conversation" | "promptField" | "shape" | "schema" | "tools" | "effort")
  | ("temperature" | "maxTokens" | "stops");

/** A validated request. */
export interface CheckedRequest extends Required<Pick<Question, Asked>> {
  /** Notices about the request. */
  notices: Notice[];
  attachments: Attachment[];
  webSearch: boolean;
  trace: boolean;
  /** As the body names them; the headers count where it does not. */
  user: string;
  tags: Tags;
}

/**
 * Validates a request in the order of the contract: its fields, their combination, then the JSON Schema.
 * @throws Failure that names the field. The message never quotes the request.
 */
export function checkRequest(request: GenerateRequest, { streamed, isForeign }: ReadOptions): CheckedRequest {
  checkFields(request, isForeign ?? false);
  const tools = checkTools(request);
  const shape = checkCombination(request, streamed);
  const schema = schemaOf(request);
  if (schema === "") {
    throw new Failure("invalid_response_schema", {
      field: "response_format.schema",
      message: "response_format.schema is required with json_schema. Add a JSON Schema whose root is an object.",
    });
  }
  if (schema !== undefined) isForeign ? checkWhole(schema, "response_format.schema") : checkSchema(schema);
  const { places, ...read } = conversation(request);
  const attachments = request.attachments.map(({ name, mediaType, data, message }) => {
    return { name, mediaType, data, at: message === undefined ? undefined : places[message] };
  });
  return {
    conversation: read,
    promptField: request.prompt === "" ? "messages" : "prompt",
    shape,
    schema,
    tools,
    notices: toolNotices(request),
    effort: EFFORTS[request.effort],
    temperature: request.temperature,
    maxTokens: request.maxTokens,
    stops: request.stopSequences,
    attachments,
    webSearch: request.webSearch ?? false,
    trace: request.intelligenceTrace ?? false,
    user: request.user,
    tags: request.tags,
  };
}

function checkFields(request: GenerateRequest, isForeign: boolean): void {
  const { messages, attachments, stopSequences, temperature, maxTokens, user, tags } = request;
  if ((request.prompt === "") === (messages.length === 0)) {
    throw invalid("prompt", "Send exactly one of prompt and messages. It must not be empty.");
  }
  checkLength("prompt", request.prompt, MAX_PROMPT);
  checkMessages(request, isForeign);
  checkNumber(request, isForeign);
  for (const [i, file] of attachments.entries()) {
    checkLength(`attachments[${i}].name`, file.name, MAX_NAME);
    if (!MEDIA_TYPES.has(essence(file.mediaType))) {
      const types = [...MEDIA_TYPES].join(", ");
      throw invalidField(`attachments[${i}].media_type`, `must be one of ${types}. Convert the file.`);
    }
    if (file.data.length === 0) throw invalidField(`attachments[${i}].data`, "must not be empty.");
    const { role } = messages[file.message ?? -1] ?? {};
    if (file.message !== undefined && role !== Role.USER && role !== Role.TOOL) {
      const problem = 'must be the index of a message with the role "user" or "tool". Or leave it out.';
      throw invalidField(`attachments[${i}].message`, problem);
    }
  }
  readEnum("effort", EffortSchema, request.effort);
  readEnum("output_shape", OutputShapeSchema, request.outputShape);
  if (temperature !== undefined && !(temperature >= 0 && temperature <= 2)) {
    throw invalidField("temperature", "must be a number from 0.0 to 2.0.");
  }
  if (maxTokens !== undefined && !(maxTokens >= 1 && maxTokens <= MAX_OUTPUT_TOKENS)) {
    throw invalidField("max_tokens", `must be a whole number from 1 to ${MAX_OUTPUT_TOKENS}.`);
  }
  if (stopSequences.length > MAX_STOPS) throw invalidField("stop_sequences", `may have ${MAX_STOPS} strings at most.`);
  for (const [i, stop] of stopSequences.entries()) {
    if (stop === "") throw invalidField(`stop_sequences[${i}]`, "must not be empty.");
  }
  if (user !== "") checkUser("user", user);
  checkTags("tags", tags);
}

/** @throws Failure request_too_long if only the files of earlier messages of another API make them too many */
function checkNumber({ attachments }: GenerateRequest, isForeign: boolean): void {
  const most = isForeign ? MAX_FOREIGN_ATTACHMENTS : MAX_ATTACHMENTS;
  if (attachments.length <= most) return;
  const last = attachments.at(-1)?.message;
  const isShortened = attachments.filter(({ message }) => message === last).length <= most;
  const problem = `may have ${most} files at most. Send fewer.`;
  if (!isForeign || !isShortened) throw invalidField("attachments", problem);
  throw new Failure("request_too_long", { field: "messages", message: `messages ${problem}` });
}

function checkMessages({ messages, attachments }: GenerateRequest, isForeign: boolean): void {
  if (messages.length > MAX_MESSAGES && !isForeign)
    throw invalidField("messages", `may have ${MAX_MESSAGES} items at most. Send fewer.`);
  for (const [i, { role }] of messages.entries()) {
    if (!ROLES.has(role)) {
      throw invalidField(`messages[${i}].role`, 'must be "system", "user", "assistant" or "tool".');
    }
  }
  // In other APIs, an image is content.
  const hasFiles = isForeign && attachments.length > 0;
  const isEmpty = messages.every(
    ({ role, content, toolCalls }) => content === "" && toolCalls.length === 0 && role !== Role.TOOL,
  );
  if (messages.length > 0 && !hasFiles && isEmpty)
    throw invalid("messages", "At least one message must have content. Add some.");
  checkCalls(messages);
}

function checkCombination(request: GenerateRequest, streamed: boolean): Shape {
  const { outputShape, responseFormat } = request;
  const isText = outputShape === OutputShape.UNSPECIFIED || outputShape === OutputShape.AUTO;
  if (schemaOf(request) !== undefined) {
    if (streamed) throw new Failure("structured_output_streaming_not_supported", { field: "response_format" });
    const conflict = (field: string, rule: string) =>
      invalidField(field, `${rule} beside a JSON Schema response_format. Leave it out.`);
    if (!isText) throw conflict("output_shape", 'must be "auto"');
    if (request.stopSequences.length > 0) throw conflict("stop_sequences", "is not possible");
    if (request.continueLastMessage) throw conflict("continue", "is not possible");
    return "json_schema";
  }
  if (responseFormat && responseFormat.format.case === undefined) {
    throw invalidField("response_format", "must contain text or json_schema.");
  }
  if (request.continueLastMessage && request.messages.at(-1)?.role !== Role.ASSISTANT) {
    throw invalidField("continue", 'needs messages whose last one has the role "assistant".');
  }
  if (isText || outputShape === OutputShape.TEXT) return "text";
  if (responseFormat) {
    throw invalidField("output_shape", 'asks for JSON, but response_format is {"type":"text"}. Leave one of them out.');
  }
  return "extract";
}

/** The caller's JSON Schema as text; undefined unless the answer must follow one. */
function schemaOf({ responseFormat }: GenerateRequest): string | undefined {
  return responseFormat?.format.case === "jsonSchema" ? responseFormat.format.value.schema : undefined;
}

/** Of a result that is a file alone. */
const FILE_RESULT = "The result is the file that follows.";

/** @returns also `places`: of each message of the request, the index of what it is in the conversation */
function conversation(request: GenerateRequest): Conversation & { places: readonly number[] } {
  const system = [request.system];
  const messages: Message[] = request.prompt === "" ? [] : [{ role: "user", text: request.prompt }];
  const names = new CallNames();
  const places: number[] = [];
  const withFiles = new Set(request.attachments.map(({ message }) => message));
  const all: Results[] = [];
  let results: Results = { list: [], files: 0 };
  for (const [i, message] of request.messages.entries()) {
    const { role, content } = message;
    const text = role === Role.TOOL && content === "" && withFiles.has(i) ? FILE_RESULT : content;
    if (role === Role.SYSTEM) system.push(text);
    else if (role === Role.TOOL) {
      results.list.push({ ...names.of(message.toolCallId), text });
      if (withFiles.has(i)) results.files++;
    } else if (role === Role.USER) messages.push({ role: "user", text });
    else if (message.toolCalls.length === 0) messages.push({ role: "assistant", text });
    else {
      results = { list: [], files: 0 };
      all.push(results);
      const calls = names.begin(message);
      // The results come before the next message, because each call has one.
      messages.push({ role: "assistant", text, calls }, { role: "user", text: "", results: results.list });
    }
    places.push(messages.length - 1);
  }
  for (const each of all) sortResults(each);
  return { system, messages, continues: request.continueLastMessage ?? false, places };
}

/** The results of the calls of one message, and how many of them have files. */
interface Results {
  readonly list: ToolResult[];
  files: number;
}

/**
 * Puts results in the order of their calls, because Gemini has no identifiers: it tells calls of one tool apart by
 * their order. Several with files stay as they are, because models tell these files apart by the order of the results.
 */
function sortResults({ list, files }: Results): void {
  if (files < 2) list.sort((a, b) => (a.id < b.id ? -1 : 1));
}

function checkLength(field: string, text: string, max: number): void {
  // A text never has more code points than UTF-16 units, so most texts need no exact count.
  if (text.length <= max) return;
  let count = 0;
  for (const _ of text)
    if (++count > max)
      throw invalidField(field, `may have ${max.toLocaleString("en")} characters at most. Shorten it.`);
}
