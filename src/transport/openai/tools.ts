import { create } from "@bufbuild/protobuf";
import type { ChatMessageCall, ChatToolChoice, CreateChatCompletionRequest } from "../../../gen/chorus/v1/chat_pb.js";
import {
  type Tool,
  type ToolCall,
  ToolCallSchema,
  type ToolChoice,
  ToolChoiceSchema,
  ToolSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import { invalid } from "../../contract/failure.ts";
import type { FieldNames } from "../call/field-names.ts";
import { optional } from "./parameters.ts";

interface ReadTools {
  readonly tools: Tool[];
  readonly toolChoice: ToolChoice | undefined;
  readonly names: FieldNames;
}

/** The tools of a request; of `allowed_tools` only those. @throws Failure invalid_request naming the parameter */
export function readTools({ tools, toolChoice }: CreateChatCompletionRequest): ReadTools {
  const allowed = toolChoice?.allowedTools && new Set(toolChoice.allowedTools.tools.map((one) => one.function?.name));
  const sent = tools.flatMap(({ tool }, i) => {
    const { name = "", description = "", parameters = "", strict } = tool.value?.function ?? {};
    if (allowed?.has(name) === false) return [];
    return {
      at: `tools[${i}]`,
      tool: create(ToolSchema, { name, description, parameters, ...optional("strict", strict) }),
    };
  });
  return {
    tools: sent.map(({ tool }) => tool),
    toolChoice: toolChoice && choiceOf(toolChoice),
    names: [
      ...sent.map(({ at }, i) => [`tools[${i}]`, `${at}.function`] as const),
      ["tool_choice.name", "tool_choice.function.name"],
    ],
  };
}

function choiceOf({ type, mode, function: named, allowedTools }: ChatToolChoice): ToolChoice {
  if (type === "") return create(ToolChoiceSchema, { mode });
  if (type === "function" && named) return create(ToolChoiceSchema, { name: named.name });
  if (type === "allowed_tools" && allowedTools) return create(ToolChoiceSchema, { mode: allowedTools.mode });
  throw invalid("tool_choice", 'tool_choice must be a word, or an object of the type "function" or "allowed_tools".');
}

/** @throws Failure invalid_request naming the arguments, if they are no JSON */
export function readCall({ call }: ChatMessageCall, path: string): ToolCall {
  const { id = "", function: called } = call.value ?? {};
  const text = argumentsOf(called?.arguments ?? "", `${path}.function.arguments`);
  return create(ToolCallSchema, { id, name: called?.name ?? "", arguments: text });
}

/** The parameters of calls, which have names and arguments a level deeper. */
export function namesOfCalls({ messages }: CreateChatCompletionRequest): FieldNames {
  return messages.flatMap(({ toolCalls }, i) =>
    toolCalls.flatMap((_, j) => {
      const path = `messages[${i}].tool_calls[${j}]`;
      return ["name", "arguments"].map((name) => [`${path}.${name}`, `${path}.function.${name}`] as const);
    }),
  );
}

/** The arguments of a call, which are JSON in a string. @throws Failure naming the parameter */
export function argumentsOf(text: string, path: string): string {
  if (text.trim() === "") return "{}";
  try {
    JSON.parse(text);
  } catch {
    throw invalid(path, `${path} must be a JSON object as a string.`);
  }
  return text;
}
