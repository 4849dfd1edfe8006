import { create } from "@bufbuild/protobuf";
import { type Tool, ToolChoiceSchema, ToolMode, ToolSchema } from "../../../gen/chorus/v1/generation_pb.js";
import type {
  CreateResponseRequest,
  ResponseInputItem,
  ResponseTool,
  ResponseToolChoice,
} from "../../../gen/chorus/v1/responses_pb.js";
import { invalid } from "../../contract/failure.ts";
import type { Members } from "../call/members.ts";
import { customTool } from "../openai/custom-tools.ts";
import { optional } from "../openai/parameters.ts";
import { allowedOf } from "../openai/tools.ts";

/** Between the name of a namespace and that of its tool. */
const SEPARATOR = "__";

/** The name of a tool in the core, which has no namespaces. */
export function flatName(namespace: string, name: string): string {
  return namespace === "" ? name : `${namespace}${SEPARATOR}${name}`;
}

/** What the format says of tools beyond what the core knows, by their names in the core. */
export interface ToolKinds {
  /** Of the tools within namespaces: namespace and name. */
  readonly spaces: ReadonlyMap<string, { readonly namespace: string; readonly name: string }>;
  /** The tools that take text instead of JSON. */
  readonly custom: ReadonlySet<string>;
}

/** The tools of a request. */
export interface ReadTools {
  readonly tools: Tool[];
  readonly names: (readonly [field: string, parameter: string])[];
  readonly kinds: ToolKinds;
  readonly toolChoice: ReturnType<typeof choiceOf>;
  /** Whether the web is searched before the answer. */
  readonly webSearch: boolean;
}

/**
 * Reads the tools of a request. A web search that is the only tool, or that `tool_choice` names, is made before the
 * answer. Beside functions it is left out, because an answer cannot ask for it.
 * @throws Failure invalid_request naming the tool that is not possible
 */
export function readTools({ tools, toolChoice, input }: CreateResponseRequest, members: Members): ReadTools {
  const found: { readonly tool: Tool; readonly at: string }[] = [];
  const spaces = new Map<string, { namespace: string; name: string }>();
  const custom = new Set<string>();
  const known = new Set<string>();
  let search: string | undefined;
  for (const { at, tool, namespace, isAdded = false } of [...withoutNamespaces(tools), ...addedTools(input)]) {
    if (tool.case !== "function" && tool.case !== "custom") {
      if (tool.case === "toolSearch") members.noEffect(at, "An answer asks for tools of the request only.");
      else search = at;
      continue;
    }
    const { name } = tool.value;
    const flat = flatName(namespace, name);
    if (isAdded && known.has(flat)) continue;
    known.add(flat);
    found.push({ tool: coreTool(tool, flat, at, members), at });
    if (tool.case === "custom") custom.add(flat);
    if (namespace !== "") spaces.set(flat, { namespace, name });
  }
  const isNamed = toolChoice !== undefined && isWebSearch(toolChoice.type);
  if (isNamed && search === undefined)
    throw invalid("tool_choice", "tool_choice asks for a web search, but there is no such tool. Add it.");
  const allowed = allowedTools(toolChoice, search);
  if (!allowed.search) search = undefined;
  const sent = allowed.search && allowed.names?.length === 0 ? [] : allowedOf(found, ALLOWED, allowed.names);
  const isForced = isNamed || (toolChoice?.mode === ToolMode.REQUIRED && search !== undefined && sent.length === 0);
  const isNone = toolChoice?.mode === ToolMode.NONE;
  const webSearch = search !== undefined && !isNone && (isForced || sent.length === 0);
  if (search !== undefined && !webSearch && !isNone)
    members.noEffect(search, "Beside functions, the web is searched only if tool_choice asks for it.");
  return {
    tools: sent.map(({ tool }) => tool),
    names: sent.map(({ at }, i) => [`tools[${i}]`, at]),
    kinds: { spaces, custom },
    webSearch,
    toolChoice: isForced ? undefined : choiceOf(toolChoice),
  };
}

type CallersTool = Extract<ResponseTool["tool"], { case: "function" | "custom" }>;

interface PlacedTool extends Pick<ResponseTool, "tool"> {
  readonly at: string;
  /** Empty for a tool without one. */
  readonly namespace: string;
  /** Whether an item of the input adds it. It may be known already. */
  readonly isAdded?: boolean;
}

/** The tools that items of the input add. */
function* addedTools(input: readonly ResponseInputItem[]): Generator<PlacedTool> {
  for (const [i, { item }] of input.entries())
    if (item.case === "toolSearchOutput" || item.case === "additionalTools")
      for (const added of withoutNamespaces(item.value.tools, `input[${i}].tools`)) yield { ...added, isAdded: true };
}

/**
 * The tools, also those in namespaces, where only functions and custom tools may be.
 * @param path of the list
 * @throws Failure naming others
 */
function* withoutNamespaces(tools: readonly ResponseTool[], path = "tools"): Generator<PlacedTool> {
  for (const [i, { tool }] of tools.entries()) {
    const at = `${path}[${i}]`;
    if (tool.case !== "namespace") yield { tool, at, namespace: "" };
    else {
      for (const [j, inner] of tool.value.tools.entries()) {
        const place = `${at}.tools[${j}]`;
        if (inner.tool.case !== "function" && inner.tool.case !== "custom")
          throw invalid(`${place}.type`, `${place}.type must be "function" or "custom".`);
        yield { tool: inner.tool, at: place, namespace: tool.value.name };
      }
    }
  }
}

/** A tool of the caller in the core. @param name there */
function coreTool(tool: CallersTool, name: string, at: string, members: Members): Tool {
  const { description } = tool.value;
  if (tool.case === "function") {
    const { parameters, strict } = tool.value;
    return create(ToolSchema, { name, description, parameters, ...optional("strict", strict) });
  }
  const { format } = tool.value.format ?? {};
  const grammar = format?.case === "grammar" ? format.value : undefined;
  return customTool({ name, description, grammar }, `${at}.format`, members);
}

function isWebSearch(type: string): boolean {
  return /^web_search(?:_|$)/.test(type);
}

function choiceOf(choice: ResponseToolChoice | undefined) {
  if (!choice) return undefined;
  const { type, mode, name, namespace } = choice;
  if (type === "allowed_tools") return create(ToolChoiceSchema, { mode: mode || ToolMode.AUTO });
  if (type === "" && mode !== ToolMode.UNSPECIFIED) return create(ToolChoiceSchema, { mode });
  if (type === "function" || type === "custom") return create(ToolChoiceSchema, { name: flatName(namespace, name) });
  const expected = '"function", "custom", "allowed_tools" or "web_search"';
  throw invalid("tool_choice.type", `tool_choice.type must be ${expected}.`);
}

/** Path of the list of `allowed_tools`. */
const ALLOWED = "tool_choice.tools";

/**
 * What `allowed_tools` names: `names` of functions with their paths, undefined if all tools are allowed, and whether
 * the web may be searched.
 * @throws Failure for a search that is no tool of the request
 */
function allowedTools(choice: ResponseToolChoice | undefined, search: string | undefined) {
  if (choice?.type !== "allowed_tools") return { names: undefined, search: true };
  const tools = choice.tools.map((tool, i) => ({ ...tool, at: `${ALLOWED}[${i}]` }));
  const [searches = [], others = []] = [true, false].map((is) => tools.filter(({ type }) => isWebSearch(type) === is));
  for (const { at } of searches)
    if (search === undefined) throw invalid(at, `${at} is a web search, but there is no such tool. Add it.`);
  const names = others.map(({ namespace, name, at }) => [flatName(namespace, name), `${at}.name`] as const);
  return { names, search: searches.length > 0 };
}
