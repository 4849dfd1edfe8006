import { create } from "@bufbuild/protobuf";
import { type Tool, ToolSchema } from "../../../gen/chorus/v1/generation_pb.js";
import type { Members } from "../call/members.ts";

/**
 * A custom tool takes text, a tool of the core takes JSON: the text is the one member of its arguments. Models know
 * such functions, and the arguments are checked like those of any other one.
 */
const PARAMETERS = JSON.stringify({
  type: "object",
  properties: { input: { type: "string", description: "The whole input of the tool, as plain text." } },
  required: ["input"],
  additionalProperties: false,
});

/** A custom tool of either API of OpenAI. */
interface CustomTool {
  /** The name in the core. */
  readonly name: string;
  readonly description: string;
  /** Undefined: the tool takes any text. */
  readonly grammar: { readonly syntax: string; readonly definition: string } | undefined;
}

/**
 * A custom tool in the core. Its description has the grammar, because models see it nowhere else. A notice says so.
 * @param path of the tool's `format`
 */
export function customTool({ name, description, grammar }: CustomTool, path: string, members: Members): Tool {
  const tool = create(ToolSchema, { name, description, parameters: PARAMETERS, strict: true });
  if (!grammar) return tool;
  members.noEffect(path, "The model sees the grammar. The input of calls is not checked against it.");
  const kind = grammar.syntax === "regex" ? "match this regular expression" : "follow this Lark grammar";
  tool.description = `${description}\n\nThe input must ${kind}:\n${grammar.definition}`.trimStart();
  return tool;
}

/** The arguments in the core of a call with this input. */
export function argumentsOfInput(input: string): string {
  return JSON.stringify({ input });
}

/** The input of a call, from its arguments in the core, which are valid. */
export function inputOfArguments(text: string): string {
  return (JSON.parse(text) as { input: string }).input;
}
