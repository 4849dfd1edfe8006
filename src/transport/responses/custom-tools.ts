import type { ResponseCustomFormat } from "../../../gen/chorus/v1/responses_pb.js";

/**
 * A custom tool takes text, a tool of the core takes JSON: the text is the one member of its arguments. Models know
 * such functions, and the arguments are checked like those of any other one.
 */
export const CUSTOM_PARAMETERS = JSON.stringify({
  type: "object",
  properties: { input: { type: "string", description: "The whole input of the tool, as plain text." } },
  required: ["input"],
  additionalProperties: false,
});

/** The description of a custom tool in the core, with its grammar, which models see nowhere else. */
export function describeCustom(description: string, format: ResponseCustomFormat | undefined): string {
  if (format?.format.case !== "grammar") return description;
  const { syntax, definition } = format.format.value;
  const kind = syntax === "regex" ? "match this regular expression" : "follow this Lark grammar";
  return `${description}\n\nThe input must ${kind}:\n${definition}`.trimStart();
}

/** The arguments in the core of a call with this input. */
export function argumentsOfInput(input: string): string {
  return JSON.stringify({ input });
}

/** The input of a call, from its arguments in the core, which are valid. */
export function inputOfArguments(text: string): string {
  return (JSON.parse(text) as { input: string }).input;
}
