import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type GenerateRequestSchema,
  type Tool,
  ToolChoiceSchema,
  ToolMode,
  ToolSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import { type CreateMessageRequest, MessageToolChoiceType } from "../../../gen/chorus/v1/messages_pb.js";
import { invalid } from "../../contract/failure.ts";
import { clientTool } from "./client-tools.ts";

type Fields = Pick<
  MessageInitShape<typeof GenerateRequestSchema>,
  "tools" | "toolChoice" | "parallelToolCalls" | "webSearch"
>;

/** Server tools that search the web: `web_search_20250305` and later ones. */
const WEB_SEARCH = /^web_search_\d+$/;

/** Server tools that search for tools. Models see all tools here, so there is nothing to search for. */
const TOOL_SEARCH = /^tool_search_tool_/;

const TYPES = '"custom", or begin with "web_search_", "bash_", "text_editor_", "memory_" or "tool_search_tool_"';

const MODES: Readonly<Record<MessageToolChoiceType, ToolMode>> = {
  [MessageToolChoiceType.UNSPECIFIED]: ToolMode.UNSPECIFIED,
  [MessageToolChoiceType.AUTO]: ToolMode.AUTO,
  [MessageToolChoiceType.ANY]: ToolMode.REQUIRED,
  [MessageToolChoiceType.TOOL]: ToolMode.UNSPECIFIED,
  [MessageToolChoiceType.NONE]: ToolMode.NONE,
};

/**
 * The tools of a request. The service's own search of the web takes the place of Anthropic's.
 * @param names gets the names of their members
 * @throws Failure naming a tool that Anthropic would run
 */
export function readTools(
  { tools, toolChoice: choice }: CreateMessageRequest,
  names: [field: string, member: string][],
): Fields {
  const own: Tool[] = [];
  /** Names of the searches of the web. */
  const searches = new Set<string>();
  for (const [i, { type, name, description, inputSchema, strict }] of tools.entries()) {
    const at = `tools[${i}]`;
    if (WEB_SEARCH.test(type)) searches.add(name);
    if (WEB_SEARCH.test(type) || TOOL_SEARCH.test(type)) continue;
    const ofCaller = type === "" || type === "custom" ? { description, parameters: inputSchema } : clientTool(type);
    if (!ofCaller) throw invalid(`${at}.type`, `${at}.type must be ${TYPES}. The service runs no other tools.`);
    names.push([`tools[${own.length}]`, at], [`tools[${own.length}].parameters`, `${at}.input_schema`]);
    own.push(create(ToolSchema, { name, ...ofCaller, ...(strict === undefined ? {} : { strict }) }));
  }
  if (choice?.type === MessageToolChoiceType.TOOL && choice.name === "")
    throw invalid("tool_choice.name", 'tool_choice.name is required with tool_choice.type "tool". Add it.');
  const named = choice?.type === MessageToolChoiceType.TOOL ? choice.name : "";
  const isSearch =
    choice?.type === MessageToolChoiceType.TOOL
      ? searches.has(named)
      : choice?.type === MessageToolChoiceType.ANY && searches.size > 0 && own.length === 0;
  const webSearch = searches.size > 0 && choice?.type !== MessageToolChoiceType.NONE;
  return {
    tools: own,
    // A search that the choice asks for is made before the answer, which then calls what it likes.
    ...(choice && !isSearch ? { toolChoice: create(ToolChoiceSchema, { mode: MODES[choice.type], name: named }) } : {}),
    ...(choice?.disableParallelToolUse ? { parallelToolCalls: false } : {}),
    ...(webSearch ? { webSearch } : {}),
  };
}
