import { create } from "@bufbuild/protobuf";
import {
  type Attachment,
  AttachmentSchema,
  type Message,
  MessageSchema,
  Role,
  type ToolCall,
  ToolCallSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import {
  type CreateMessageRequest,
  type MessageBlock,
  type MessageBlock_ToolResult,
  MessageRole,
  type MessageSource,
} from "../../../gen/chorus/v1/messages_pb.js";
import { invalid } from "../../contract/failure.ts";
import type { FieldNames } from "../call/field-names.ts";

interface Conversation {
  readonly messages: Message[];
  readonly attachments: Attachment[];
  readonly system: string;
  readonly names: FieldNames;
}

type Block = Exclude<MessageBlock["block"], { case: undefined }>;

const ROLES: Readonly<Record<MessageRole, Role>> = {
  [MessageRole.UNSPECIFIED]: Role.UNSPECIFIED,
  [MessageRole.USER]: Role.USER,
  [MessageRole.ASSISTANT]: Role.ASSISTANT,
  [MessageRole.SYSTEM]: Role.SYSTEM,
};

/** The messages, files and instructions of a request. @throws Failure naming the block that is not possible there */
export function readConversation({ messages, system }: CreateMessageRequest): Conversation {
  const reader = new Reader();
  for (const [i, { role, content }] of messages.entries()) reader.add(`messages[${i}]`, role, content);
  const instructions = system.map((block, i) => textOf(block, `system[${i}]`).replace(BILLING, ""));
  return { ...reader, system: instructions.filter((text) => text !== "").join("\n\n") };
}

/**
 * What Claude Code writes before its instructions for Anthropic's billing. It changes with each request, so no vendor
 * would find the beginning of the conversation in its cache.
 */
const BILLING = /^x-anthropic-billing-header:[^\n]*\n*/;

class Reader {
  readonly messages: Message[] = [];
  readonly attachments: Attachment[] = [];
  readonly names: (readonly [field: string, member: string])[] = [];

  /** Adds a message. The results of calls in it become messages of their own. @param path of the message */
  add(path: string, role: MessageRole, content: readonly MessageBlock[]): void {
    const { texts, toolCalls } = this.#continued(role);
    const files: Attachment[] = [];
    let hasResults = false;
    for (const [j, { block }] of content.entries()) {
      const at = `${path}.content[${j}]`;
      if (block.case === undefined) continue;
      checkRole(block.case, role, at);
      if (block.case === "toolUse") {
        const { id, name, input } = block.value;
        const field = `messages[${this.messages.length}].tool_calls[${toolCalls.length}]`;
        this.names.push([field, at], [`${field}.arguments`, `${at}.input`]);
        toolCalls.push(create(ToolCallSchema, { id, name, arguments: input }));
      } else if (block.case === "toolResult") {
        this.#addResult(block.value, at);
        hasResults = true;
      } else {
        const text = this.#read(block, at, files);
        if (text !== "") texts.push(text);
      }
    }
    const isOwn = !hasResults || texts.length > 0;
    for (const file of files) file.message = this.messages.length - (isOwn ? 0 : 1);
    if (!isOwn) return;
    this.names.push([`messages[${this.messages.length}]`, path]);
    this.messages.push(create(MessageSchema, { role: ROLES[role], content: texts.join("\n"), toolCalls }));
  }

  /**
   * What a message begins with. One of the assistant's that follows calls without results belongs to them, because the
   * results of all come after it.
   */
  #continued(role: MessageRole): { texts: string[]; toolCalls: ToolCall[] } {
    const last = role === MessageRole.ASSISTANT ? this.messages.at(-1) : undefined;
    if (!last || last.toolCalls.length === 0) return { texts: [], toolCalls: [] };
    this.messages.pop();
    return { texts: last.content === "" ? [] : [last.content], toolCalls: last.toolCalls };
  }

  #addResult({ toolUseId, content, isError }: MessageBlock_ToolResult, at: string): void {
    const files: Attachment[] = [];
    const texts = content.map(({ block }, i) => {
      if (block.case === undefined) return "";
      const inner = `${at}.content[${i}]`;
      if (block.case === "toolUse" || block.case === "toolResult")
        throw invalid(
          `${inner}.type`,
          `${inner}.type must be "text", "image", "document", "search_result" or "tool_reference".`,
        );
      return this.#read(block, inner, files);
    });
    for (const file of files) file.message = this.messages.length;
    const text = texts.filter((each) => each !== "").join("\n");
    const field = `messages[${this.messages.length}]`;
    this.names.push([field, at], [`${field}.tool_call_id`, `${at}.tool_use_id`]);
    const result = isError ? `The call failed. ${text}`.trim() : text;
    this.messages.push(create(MessageSchema, { role: Role.TOOL, content: result, toolCallId: toolUseId }));
  }

  /** Reads a block. @param files of its message, to which a file of the block is added. @returns what is text of it */
  #read(block: Block, at: string, files: Attachment[]): string {
    switch (block.case) {
      case "text":
        return block.value.text;
      case "searchResult": {
        const { source, title, content } = block.value;
        const found = content.map((one, i) => textOf(one, `${at}.content[${i}]`));
        return [title, source, ...found].filter((text) => text !== "").join("\n");
      }
      case "toolReference":
        return `The tool ${block.value.toolName} is available.`;
      case "compaction":
        return block.value.content;
      case "image":
        if (block.value.source?.source.case !== "base64")
          throw invalid(`${at}.source.type`, `${at}.source.type must be "base64".`);
        files.push(this.#attach(block.value.source, "", at));
        return "";
      case "document":
        files.push(this.#attach(block.value.source, block.value.title, at));
        return block.value.context;
      default:
        return "";
    }
  }

  #attach(source: MessageSource | undefined, name: string, at: string): Attachment {
    const field = `attachments[${this.attachments.length}]`;
    this.names.push([field, at], [`${field}.name`, `${at}.title`], [`${field}.data`, `${at}.source.data`]);
    this.names.push([`${field}.media_type`, `${at}.source.media_type`]);
    const file = create(AttachmentSchema, { name, ...bytesOf(source, `${at}.source`) });
    this.attachments.push(file);
    return file;
  }
}

/** Blocks that only users send. */
const OF_USER: ReadonlySet<Block["case"]> = new Set([
  "image",
  "document",
  "searchResult",
  "toolResult",
  "toolReference",
]);

/** @throws Failure if a block is not possible in a message of the role */
function checkRole(kind: Block["case"], role: MessageRole, at: string): void {
  if (OF_USER.has(kind) && role !== MessageRole.USER)
    throw invalid(at, `${at} is only possible in a message of the role "user".`);
  if (kind === "toolUse" && role !== MessageRole.ASSISTANT)
    throw invalid(at, `${at} is only possible in a message of the role "assistant".`);
}

function bytesOf(from: MessageSource | undefined, at: string): { mediaType: string; data: Uint8Array } {
  const { source } = from ?? {};
  if (source?.case === "base64") return source.value;
  if (source?.case === "text") {
    const { mediaType, data } = source.value;
    if (mediaType !== "" && mediaType !== "text/plain")
      throw invalid(`${at}.media_type`, `${at}.media_type must be "text/plain".`);
    return plainText(data);
  }
  const blocks = source?.value?.content ?? [];
  return plainText(blocks.map((block, i) => textOf(block, `${at}.content[${i}]`)).join("\n"));
}

function plainText(text: string) {
  return { mediaType: "text/plain", data: Buffer.from(text) };
}

/** The text of a block where only text is possible. @throws Failure naming the block */
function textOf({ block }: MessageBlock, at: string): string {
  if (block.case !== "text") throw invalid(`${at}.type`, `${at}.type must be "text".`);
  return block.value.text;
}
