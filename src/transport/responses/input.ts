import { create } from "@bufbuild/protobuf";
import { ChatRole } from "../../../gen/chorus/v1/chat_pb.js";
import { type Message, MessageSchema, Role } from "../../../gen/chorus/v1/generation_pb.js";
import type {
  ResponseInputItem,
  ResponseInputItem_FunctionCall,
  ResponseInputItem_FunctionCallOutput,
  ResponseInputPart,
} from "../../../gen/chorus/v1/responses_pb.js";
import { invalid } from "../../contract/failure.ts";
import type { Members } from "../call/members.ts";
import { argumentsOfInput } from "../openai/custom-tools.ts";
import { ROLES } from "../openai/decode.ts";
import { Files } from "../openai/files.ts";
import { argumentsOf } from "../openai/tools.ts";
import { flatName } from "./tools.ts";

/**
 * Gives the items of an input the `type` that their format leaves out, and a plain text the form of an item.
 * @throws Failure invalid_request for an item that refers to one of an earlier request
 */
export function withTypes(body: object): object {
  const { input } = body as { input?: unknown };
  if (typeof input === "string") return { ...body, input: [{ type: "message", role: "user", content: input }] };
  return Array.isArray(input) ? { ...body, input: input.map(withType) } : body;
}

function withType(item: unknown, i: number): unknown {
  if (typeof item !== "object" || item === null) return item;
  if ("type" in item && item.type === "item_reference") {
    const advice = "Send the item itself. The AI SDK does so with providerOptions: { openai: { store: false } }.";
    const at = `input[${i}].type`;
    throw invalid(at, `${at} must not be "item_reference": the service stores no responses. ${advice}`);
  }
  return "role" in item ? { type: "message", ...item } : item;
}

interface Result {
  readonly output: ResponseInputItem_FunctionCallOutput;
  /** Path of its item. */
  readonly at: string;
}

type Call = Pick<ResponseInputItem_FunctionCall, "callId" | "name" | "namespace" | "arguments">;

/**
 * Reads the items of a conversation as messages. Consecutive calls belong to one message, and the results of its calls
 * follow it, wherever they stand.
 */
export class InputReader {
  readonly messages: Message[] = [];
  readonly files = new Files();
  readonly names: (readonly [field: string, parameter: string])[] = [];
  readonly #members: Members;
  /** The results that no message has yet, by the identifiers of their calls, which a later turn may use again. */
  readonly #results = new Map<string, Result[]>();
  /** Identifiers of the calls of the last message, while more can follow. */
  #open: string[] = [];

  constructor(members: Members) {
    this.#members = members;
  }

  /** @throws Failure invalid_request naming the item */
  read(items: readonly ResponseInputItem[]): void {
    for (const [i, { item }] of items.entries())
      if (item.case === "functionCallOutput" || item.case === "customToolCallOutput")
        this.#keep(item.value, `input[${i}]`);
    for (const [i, { item }] of items.entries()) {
      const at = `input[${i}]`;
      if (item.case === "functionCall")
        this.#addCall({ ...item.value, arguments: argumentsOf(item.value.arguments, `${at}.arguments`) }, at);
      else if (item.case === "customToolCall")
        this.#addCall({ ...item.value, arguments: argumentsOfInput(item.value.input) }, at);
      else if (item.case === "message") {
        this.#close();
        const { role, content } = item.value;
        if (role === ChatRole.TOOL)
          throw invalid(`${at}.role`, `${at}.role must not be "tool". Send an item "function_call_output".`);
        this.#add(at, { role: ROLES[role], content: this.#textOf(content, `${at}.content`, role === ChatRole.USER) });
      } else if (item.case === "functionCallOutput" || item.case === "customToolCallOutput") this.#close();
      else if (item.case === "reasoning") this.#members.noEffect(at, "Reasoning items are not used.");
    }
    this.#close();
    const [left] = [...this.#results.values()].flat();
    if (!left) return;
    const field = `${left.at}.call_id`;
    const advice = 'Send the item "function_call" too, and one result for each.';
    throw invalid(field, `${field} names no call of the input that waits for its result. ${advice}`);
  }

  #keep(output: ResponseInputItem_FunctionCallOutput, at: string): void {
    const results = this.#results.get(output.callId);
    if (results) results.push({ output, at });
    else this.#results.set(output.callId, [{ output, at }]);
  }

  #add(at: string, message: { role: Role; content: string; toolCallId?: string }): void {
    this.names.push([`messages[${this.messages.length}]`, at]);
    this.messages.push(create(MessageSchema, message));
  }

  #addCall({ callId, name, namespace, arguments: text }: Call, at: string): void {
    const call = { id: callId, name: flatName(namespace, name), arguments: text };
    const last = this.messages.at(-1);
    if (last?.role !== Role.ASSISTANT || (this.#open.length === 0 && last.toolCalls.length > 0))
      this.#add(at, { role: Role.ASSISTANT, content: "" });
    const message = this.messages.at(-1);
    const field = `messages[${this.messages.length - 1}].tool_calls[${message?.toolCalls.length}]`;
    this.names.push([field, at], [`${field}.id`, `${at}.call_id`]);
    message?.toolCalls.push({ $typeName: "chorus.v1.ToolCall", ...call });
    this.#open.push(callId);
  }

  /** Ends the calls of the last message: their results follow. */
  #close(): void {
    for (const callId of this.#open) {
      const result = this.#results.get(callId)?.shift();
      if (!result) continue;
      const { output, at } = result;
      const content = this.#textOf(output.output, `${at}.output`, true);
      const place = `messages[${this.messages.length}]`;
      this.#add(at, { role: Role.TOOL, content, toolCallId: callId });
      this.names.push([`${place}.tool_call_id`, `${at}.call_id`], [`${place}.content`, `${at}.output`]);
    }
    this.#open = [];
  }

  /** The texts of the parts of the next message; files become its attachments. */
  #textOf(parts: readonly ResponseInputPart[], path: string, takesFiles: boolean): string {
    const texts: string[] = [];
    for (const [j, { part }] of parts.entries()) {
      const at = `${path}[${j}]`;
      if (part.case === "refusal") texts.push(part.value.refusal);
      else if (part.case !== "inputImage" && part.case !== "inputFile") texts.push(part.value?.text ?? "");
      else if (!takesFiles) throw invalid(at, `${at} must be text: only the role "user" may send files.`);
      else if (part.case === "inputFile")
        this.files.add(
          this.messages.length,
          at,
          { data: "file_data", name: "filename" },
          part.value.fileData,
          part.value.filename,
        );
      else {
        const { imageUrl, detail } = part.value;
        if (detail !== "" && detail !== "auto") this.#members.noEffect(`${at}.detail`);
        this.files.add(this.messages.length, at, { data: "image_url", name: "image_url" }, imageUrl);
      }
    }
    return texts.join("\n");
  }
}
