import { create } from "@bufbuild/protobuf";
import type {
  ChatMessageCall,
  ChatTool,
  ChatToolChoice,
  CreateChatCompletionRequest,
} from "../../../gen/chorus/v1/chat_pb.js";
import {
  type Tool,
  type ToolCall,
  ToolCallSchema,
  type ToolChoice,
  ToolChoiceSchema,
  ToolMode,
  ToolSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import { invalid } from "../../contract/failure.ts";
import type { FieldNames } from "../call/field-names.ts";
import type { Members } from "../call/members.ts";
import { argumentsOfInput, customTool } from "./custom-tools.ts";
import { optional } from "./parameters.ts";

interface ReadTools {
  readonly tools: Tool[];
  readonly toolChoice: ToolChoice | undefined;
  readonly names: FieldNames;
  /** Names of the tools that take text instead of JSON. */
  readonly custom: ReadonlySet<string>;
}

/** The tools of a request; of `allowed_tools` only those. @throws Failure invalid_request naming the parameter */
export function readTools({ tools, toolChoice }: CreateChatCompletionRequest, members: Members): ReadTools {
  const found = tools.map(({ tool }, i) => {
    return { kind: tool.case, at: `tools[${i}].${tool.case}`, tool: coreTool(tool, i, members) };
  });
  const list = "tool_choice.allowed_tools.tools";
  const named = toolChoice?.allowedTools?.tools.map(({ function: called, custom }, i) => {
    const kind = called ? "function" : "custom";
    return [(called ?? custom)?.name ?? "", `${list}[${i}].${kind}.name`] as const;
  });
  const sent = allowedOf(found, list, named);
  return {
    tools: sent.map(({ tool }) => tool),
    toolChoice: toolChoice && choiceOf(toolChoice),
    names: [
      ...sent.map(({ at }, i) => [`tools[${i}]`, at] as const),
      ["tool_choice.name", `tool_choice.${toolChoice?.type}.name`],
    ],
    custom: new Set(sent.filter(({ kind }) => kind === "custom").map(({ tool }) => tool.name)),
  };
}

/**
 * The tools that an answer may call.
 * @param list path of the list of `allowed_tools`
 * @param named the names in it, with their paths; undefined: all tools are allowed
 * @throws Failure for an empty list, and for a name that no tool has
 */
export function allowedOf<T extends { readonly tool: Tool }>(
  found: readonly T[],
  list: string,
  named: readonly (readonly [name: string, at: string])[] | undefined,
): readonly T[] {
  if (!named) return found;
  if (named.length === 0)
    throw invalid(list, `${list} must name a tool. To forbid all tools, send tool_choice "none".`);
  const known = new Set(found.map(({ tool }) => tool.name));
  for (const [name, at] of named)
    if (!known.has(name)) throw invalid(at, `${at} must be the name of one of the tools.`);
  const allowed = new Set(named.map(([name]) => name));
  return found.filter(({ tool }) => allowed.has(tool.name));
}

/** @param i place of the tool */
function coreTool(tool: ChatTool["tool"], i: number, members: Members): Tool {
  if (tool.case === "custom") {
    const { name = "", description = "", format } = tool.value.custom ?? {};
    const grammar = format?.format.case === "grammar" ? format.format.value.grammar : undefined;
    return customTool({ name, description, grammar }, `tools[${i}].custom.format`, members);
  }
  const { name = "", description = "", parameters = "", strict } = tool.value?.function ?? {};
  return create(ToolSchema, { name, description, parameters, ...optional("strict", strict) });
}

function choiceOf(choice: ChatToolChoice): ToolChoice {
  const { type, mode, allowedTools } = choice;
  if (type === "" && mode !== ToolMode.UNSPECIFIED) return create(ToolChoiceSchema, { mode });
  const named = type === "function" || type === "custom" ? choice[type] : undefined;
  if (named) return create(ToolChoiceSchema, { name: named.name });
  if (type === "allowed_tools" && allowedTools)
    return create(ToolChoiceSchema, { mode: allowedTools.mode || ToolMode.AUTO });
  const types = '"function", "custom" or "allowed_tools"';
  throw invalid(
    "tool_choice",
    `tool_choice must be a word, or an object of the type ${types} with a member of its name.`,
  );
}

/** @throws Failure invalid_request naming the arguments, if they are no JSON */
export function readCall({ call }: ChatMessageCall, path: string): ToolCall {
  if (call.case === "custom") {
    const { name = "", input = "" } = call.value.custom ?? {};
    return create(ToolCallSchema, { id: call.value.id, name, arguments: argumentsOfInput(input) });
  }
  const { id = "", function: called } = call.value ?? {};
  const text = argumentsOf(called?.arguments ?? "", `${path}.function.arguments`);
  return create(ToolCallSchema, { id, name: called?.name ?? "", arguments: text });
}

/** The parameters of calls, which have names and arguments a level deeper. */
export function namesOfCalls({ messages }: CreateChatCompletionRequest): FieldNames {
  return messages.flatMap(({ toolCalls }, i) =>
    toolCalls.flatMap(({ call }, j) => {
      const path = `messages[${i}].tool_calls[${j}]`;
      const text = call.case === "custom" ? "input" : "arguments";
      return [
        [`${path}.name`, `${path}.${call.case}.name`] as const,
        [`${path}.arguments`, `${path}.${call.case}.${text}`] as const,
      ];
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
