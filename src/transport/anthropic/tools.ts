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

type Fields = Pick<
  MessageInitShape<typeof GenerateRequestSchema>,
  "tools" | "toolChoice" | "parallelToolCalls" | "webSearch"
>;

/** Server tools that search the web: `web_search_20250305` and later ones. */
const SEARCH = /^web_search_\d+$/;

const MODES: Readonly<Record<MessageToolChoiceType, ToolMode>> = {
  [MessageToolChoiceType.UNSPECIFIED]: ToolMode.UNSPECIFIED,
  [MessageToolChoiceType.AUTO]: ToolMode.AUTO,
  [MessageToolChoiceType.ANY]: ToolMode.REQUIRED,
  [MessageToolChoiceType.TOOL]: ToolMode.UNSPECIFIED,
  [MessageToolChoiceType.NONE]: ToolMode.NONE,
};

/**
 * The tools of a request. The service's own search takes the place of Anthropic's.
 * @param names gets the names of their members
 * @throws Failure naming another tool of Anthropic's
 */
export function readTools(
  { tools, toolChoice: choice }: CreateMessageRequest,
  names: [field: string, member: string][],
): Fields {
  const own: Tool[] = [];
  let webSearch = false;
  for (const [i, { type, name, description, inputSchema, strict }] of tools.entries()) {
    const at = `tools[${i}]`;
    if (SEARCH.test(type)) webSearch = true;
    else if (type !== "" && type !== "custom")
      throw invalid(
        `${at}.type`,
        `${at}.type must be "custom" or a search of the web. The service runs no other tools.`,
      );
    else {
      names.push([`tools[${own.length}]`, at], [`tools[${own.length}].parameters`, `${at}.input_schema`]);
      const tool = { name, description, parameters: inputSchema };
      own.push(create(ToolSchema, strict === undefined ? tool : { ...tool, strict }));
    }
  }
  if (choice?.type === MessageToolChoiceType.TOOL && choice.name === "")
    throw invalid("tool_choice.name", 'tool_choice.name is required with tool_choice.type "tool". Add it.');
  const named = choice?.type === MessageToolChoiceType.TOOL ? choice.name : "";
  return {
    tools: own,
    ...(choice ? { toolChoice: create(ToolChoiceSchema, { mode: MODES[choice.type], name: named }) } : {}),
    ...(choice?.disableParallelToolUse ? { parallelToolCalls: false } : {}),
    ...(webSearch ? { webSearch } : {}),
  };
}
