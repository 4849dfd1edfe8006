import { parseJson, toValue } from "../../contract/json.ts";
import type { Tool, Tools, WrittenCall } from "../port/model.ts";
import { extract } from "./extract.ts";
import { subjectOf, within } from "./find.ts";
import type { Reading } from "./read.ts";

/** A name within a sentence. */
const NAME = /(?<=[^.?!\s]\s)\p{Lu}[\p{L}\d'’-]*(?: \p{Lu}[\p{L}\d'’-]*)*/u;
/** Longest text that is given for an argument that was not found, in characters. */
const MAX_GUESS = 200;

/** The call that the choice of tools demands; undefined where none must be called. */
export function demandedCall({ list, choice }: Tools, { message, text }: Reading): WrittenCall | undefined {
  if (choice === "auto" || choice === "none") return undefined;
  const tool = typeof choice === "object" ? list.find(({ name }) => name === choice.name) : nearest(list, message);
  return tool && { name: tool.name, arguments: argumentsOf(tool, message, text) };
}

/** The tool whose name and description share most words with the message. */
function nearest(list: readonly Tool[], message: string): Tool | undefined {
  const asked = wordsOf(message);
  const shared = (tool: Tool) => wordsOf(`${tool.name} ${tool.description}`).intersection(asked).size;
  return list.toSorted((a, b) => shared(b) - shared(a))[0];
}

function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/\p{L}{3,}|\d+/gu));
}

/** Values from the message. A required text that is not found is the first name in the message, or the message. */
function argumentsOf({ parameters }: Tool, message: string, text: string): string {
  const source = `${message}\n${message.includes(text) ? "" : text}`.trim();
  const found = extract(parameters, source, {});
  if (!found.startsWith("{")) return "{}";
  const guess = NAME.exec(message)?.[0] ?? message.slice(0, MAX_GUESS);
  const missing = Object.entries(Object(toValue(parseJson(found)))).filter(([, value]) => value === "");
  const nowhere = subjectOf("", {});
  const known = Object.fromEntries(missing.map(([name]) => [within(nowhere, name).name, guess]));
  return missing.length === 0 ? found : extract(parameters, source, known);
}
