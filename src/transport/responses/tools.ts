import { create } from "@bufbuild/protobuf";
import { type Tool, ToolChoiceSchema, ToolMode, ToolSchema } from "../../../gen/chorus/v1/generation_pb.js";
import type {
  CreateResponseRequest,
  ResponseTool_Function,
  ResponseToolChoice,
} from "../../../gen/chorus/v1/responses_pb.js";
import { invalid } from "../../contract/failure.ts";
import type { Members } from "../call/members.ts";
import { optional } from "../openai/parameters.ts";

/** Between the name of a namespace and that of its tool. */
const SEPARATOR = "__";

/** The name of a tool in the core, which has no namespaces. */
export function flatName(namespace: string, name: string): string {
  return namespace === "" ? name : `${namespace}${SEPARATOR}${name}`;
}

/** The tools of a request. */
export interface ReadTools {
  readonly tools: Tool[];
  readonly names: (readonly [field: string, parameter: string])[];
  /** Of the tools within namespaces: namespace and name, by the name in the core. */
  readonly spaces: Readonly<Record<string, { readonly namespace: string; readonly name: string }>>;
  readonly toolChoice: ReturnType<typeof choiceOf>;
  /** Whether the web is searched before the answer. */
  readonly webSearch: boolean;
}

/**
 * Reads the tools of a request. A web search that is the only tool, or that `tool_choice` names, is made before the
 * answer. Beside functions it is left out, because an answer cannot ask for it.
 * @throws Failure invalid_request naming the tool that is not possible
 */
export function readTools({ tools, toolChoice }: CreateResponseRequest, members: Members): ReadTools {
  const found: { readonly tool: Tool; readonly at: string }[] = [];
  const spaces: Record<string, { namespace: string; name: string }> = {};
  let search: string | undefined;
  const add = (at: string, { name, description, parameters, strict }: ResponseTool_Function, namespace: string) => {
    const flat = flatName(namespace, name);
    found.push({
      tool: create(ToolSchema, { name: flat, description, parameters, ...optional("strict", strict) }),
      at,
    });
    if (namespace !== "") spaces[flat] = { namespace, name };
  };
  for (const [i, { tool }] of tools.entries()) {
    const at = `tools[${i}]`;
    if (tool.case === "function") add(at, tool.value, "");
    else if (tool.case === "namespace") {
      for (const [j, { tool: inner }] of tool.value.tools.entries()) {
        if (inner.case !== "function")
          throw invalid(`${at}.tools[${j}].type`, `${at}.tools[${j}].type must be "function".`);
        add(`${at}.tools[${j}]`, inner.value, tool.value.name);
      }
    } else search = at;
  }
  const isForced = toolChoice !== undefined && isWebSearch(toolChoice.type);
  if (isForced && search === undefined)
    throw invalid("tool_choice", "tool_choice asks for a web search, but there is no such tool. Add it.");
  const isNone = toolChoice?.mode === ToolMode.NONE;
  const webSearch = search !== undefined && !isNone && (isForced || found.length === 0);
  if (search !== undefined && !webSearch && !isNone)
    members.noEffect(search, "Beside functions, the web is searched only if tool_choice asks for it.");
  const allowed = allowedNames(toolChoice);
  const sent = found.filter(({ tool }) => allowed?.has(tool.name) ?? true);
  return {
    tools: sent.map(({ tool }) => tool),
    names: sent.map(({ at }, i) => [`tools[${i}]`, at]),
    spaces,
    webSearch,
    toolChoice: isForced ? undefined : choiceOf(toolChoice),
  };
}

function isWebSearch(type: string): boolean {
  return /^web_search(?:_|$)/.test(type);
}

function choiceOf(choice: ResponseToolChoice | undefined) {
  if (!choice) return undefined;
  const { type, mode, name, namespace } = choice;
  if (type === "" || type === "allowed_tools") return create(ToolChoiceSchema, { mode });
  if (type === "function") return create(ToolChoiceSchema, { name: flatName(namespace, name) });
  throw invalid("tool_choice.type", 'tool_choice.type must be "function", "allowed_tools" or "web_search".');
}

/** The tools that `allowed_tools` names; undefined: all are allowed. */
function allowedNames(choice: ResponseToolChoice | undefined): ReadonlySet<string> | undefined {
  if (choice?.type !== "allowed_tools") return undefined;
  return new Set(choice.tools.map(({ namespace, name }) => flatName(namespace, name)));
}
