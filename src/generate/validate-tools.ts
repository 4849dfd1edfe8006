import {
  type GenerateRequest,
  type Message,
  type Notice,
  Role,
  ToolMode,
  ToolModeSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import { invalidField } from "../contract/failure.ts";
import { type JsonNode, member, parseJson, stringifyJson, wellFormedJson } from "../contract/json.ts";
import { readEnum } from "../contract/json-names.ts";
import { looseSchema } from "../engine/structured/loose-schema.ts";
import type { Tool, ToolCall, Tools } from "../models/port/model.ts";
import { formOfTool } from "../models/port/tool-form.ts";
import { notice } from "./notices.ts";

const MAX_TOOLS = 128;
const MAX_ID = 256;
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const NAME_RULE = "must have 1 to 64 characters of A-Z, a-z, 0-9, _ and -.";

const UNKNOWN_CALL = "names no call that waits for its result: a result must follow the message of its call, once.";

/** The schema of a function without arguments. */
const NO_ARGUMENTS = '{"type":"object","properties":{}}';

/**
 * Checks the tools of a request, without their schemas.
 * @returns undefined without tools
 * @throws Failure invalid_request naming the field
 */
export function checkTools({ tools, toolChoice, parallelToolCalls = true }: GenerateRequest): Tools | undefined {
  if (tools.length > MAX_TOOLS) throw invalidField("tools", `may have ${MAX_TOOLS} items at most. Send fewer.`);
  const names = new Set<string>();
  const list: Tool[] = [];
  for (const [i, { name, description, parameters, strict }] of tools.entries()) {
    if (!NAME.test(name)) throw invalidField(`tools[${i}].name`, NAME_RULE);
    if (names.has(name)) throw invalidField(`tools[${i}].name`, "is the name of an earlier tool. Rename it.");
    names.add(name);
    const text = parameters === "" ? NO_ARGUMENTS : parameters;
    const schema = checkParameters(`tools[${i}].parameters`, text);
    const gap = strict && parameters !== "" ? looseSchema(parameters).strictGap : undefined;
    if (gap !== undefined) {
      const problem = `cannot be checked as a whole, as strict demands: ${gap}. Change it, or leave strict out.`;
      throw invalidField(`tools[${i}].parameters`, problem);
    }
    list.push({ name, description, parameters: text, ...formOfTool(text, schema) });
  }
  const choice = choiceOf(toolChoice, names);
  if (tools.length === 0) return undefined;
  return { list, choice, parallel: parallelToolCalls };
}

/** Most notices about schemas. */
const MAX_NOTICES = 5;

/** Notices about tools whose schemas are checked in part. */
export function toolNotices({ tools }: GenerateRequest): Notice[] {
  const found: Notice[] = [];
  for (const [i, { parameters }] of tools.entries()) {
    const gap = parameters === "" ? undefined : looseSchema(parameters).gap;
    if (gap === undefined || found.length === MAX_NOTICES) continue;
    const field = `tools[${i}].parameters`;
    found.push(notice("tool_schema_unchecked", `${field} is checked only in part: ${gap}.`, field));
  }
  return found;
}

function choiceOf(choice: GenerateRequest["toolChoice"], names: ReadonlySet<string>): Tools["choice"] {
  if (!choice) return "auto";
  const { mode, name } = choice;
  const word = readEnum("tool_choice", ToolModeSchema, mode);
  if (name !== "" || mode === ToolMode.UNSPECIFIED) {
    if (mode !== ToolMode.UNSPECIFIED) throw invalidField("tool_choice", "must be a word or a name, not both.");
    if (!names.has(name)) throw invalidField("tool_choice.name", "must be the name of one of the tools.");
    return { name };
  }
  if (mode === ToolMode.REQUIRED && names.size === 0)
    throw invalidField("tool_choice", 'is "required", but there are no tools. Send some, or leave it out.');
  return word === "none" || word === "required" ? word : "auto";
}

/**
 * Checks the calls and results in a conversation: each call of an answer has one result, and all of them follow it
 * before anything but instructions.
 * @throws Failure invalid_request naming the field
 */
export function checkCalls(messages: readonly Message[]): void {
  /** The calls without a result so far, with their paths. */
  let open = new Map<string, string>();
  for (const [i, message] of messages.entries()) {
    const { role, toolCalls, toolCallId } = message;
    const path = `messages[${i}]`;
    if (toolCalls.length > 0 && role !== Role.ASSISTANT)
      throw invalidField(`${path}.tool_calls`, 'is only possible with the role "assistant".');
    if (role === Role.TOOL) {
      const field = `${path}.tool_call_id`;
      if (toolCallId === "") throw invalidField(field, "is required: it names the call of the result. Add it.");
      if (!open.delete(toolCallId)) throw invalidField(field, UNKNOWN_CALL);
      continue;
    }
    if (toolCallId !== "") throw invalidField(`${path}.tool_call_id`, 'is only possible with the role "tool".');
    if (role === Role.SYSTEM) continue;
    checkAnswered(open);
    open = callsOf(message, path);
  }
  checkAnswered(open);
}

function checkAnswered(open: ReadonlyMap<string, string>): void {
  for (const [, path] of open)
    throw invalidField(path, "has no result. The result of each call must follow before the next message.");
}

/** The identifiers of a message's calls, with their paths. */
function callsOf({ toolCalls }: Message, path: string): Map<string, string> {
  const open = new Map<string, string>();
  for (const [j, { id, name, arguments: text }] of toolCalls.entries()) {
    const at = `${path}.tool_calls[${j}]`;
    if (id === "" || id.length > MAX_ID) throw invalidField(`${at}.id`, `must have 1 to ${MAX_ID} characters.`);
    if (open.has(id)) throw invalidField(`${at}.id`, "is the one of an earlier call of the message. Change it.");
    if (!NAME.test(name)) throw invalidField(`${at}.name`, NAME_RULE);
    if (text !== "") checkObject(`${at}.arguments`, text, "an object");
    open.set(id, `${at}.id`);
  }
  return open;
}

/** Types that arguments, which are an object, never have. */
const OTHER_TYPES: ReadonlySet<string> = new Set(["array", "string", "number", "integer", "boolean", "null"]);

/** @throws Failure if a text is not the JSON text of a schema, or of one that no object is valid against by its type */
function checkParameters(field: string, text: string): JsonNode {
  const schema = checkObject(field, text, "a JSON Schema, which is an object");
  const type = member(schema, "type");
  const names = (type?.kind === "array" ? type.items : type ? [type] : []).map(stringifyJson);
  if (names.length === 0 || !names.every((name) => OTHER_TYPES.has(name.slice(1, -1)))) return schema;
  throw invalidField(field, 'must have the type "object" at its root, because arguments are an object.');
}

/** @throws Failure if a text, which may come from a caller of RPC, is not the JSON text of an object */
function checkObject(field: string, text: string, expected: string): JsonNode {
  try {
    const node = parseJson(text);
    if (node.kind === "object") return node;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw invalidField(field, `must be ${expected}. ${error.message}`);
  }
  throw invalidField(field, `must be ${expected}.`);
}

/** The messages of a conversation that have calls or results. Their calls get identifiers of the service. */
export class CallNames {
  /** Number of the calls so far. */
  #count = 0;
  /** The calls of the last message that had some, by the caller's identifiers. */
  #calls = new Map<string, ToolCall>();

  /** The calls of a message of the assistant. */
  begin({ toolCalls }: Message): ToolCall[] {
    this.#calls = new Map(
      toolCalls.map(({ id, name, arguments: text }) => [
        id,
        { id: wireId(this.#count++), name, arguments: text === "" ? "{}" : wellFormedJson(text) },
      ]),
    );
    return [...this.#calls.values()];
  }

  /** The call that a result belongs to. */
  of(id: string): Pick<ToolCall, "id" | "name"> {
    return this.#calls.get(id) ?? { id, name: "" };
  }
}

/**
 * The identifier of a call in a prompt: nine letters and digits, which every vendor takes (Mistral takes nothing else).
 * It depends on the place only, so the beginning of a conversation stays the same for the vendors' caches.
 */
function wireId(place: number): string {
  return `call${place.toString(36).padStart(5, "0")}`;
}
