import { calculate } from "./arithmetic.ts";
import { extract } from "./extract.ts";
import type { Reading } from "./read.ts";
import { answer, sentences, summarise } from "./sentences.ts";

const OFFLINE =
  "I am the built-in offline model: I summarise a text that you give me, answer questions from it, extract its data, " +
  "and calculate.";
const GREETING = /^(?:hi|hello|hey|good (?:morning|afternoon|evening))\b[^?\n]{0,40}(?:how are you\W*)?$/i;
const SUMMARY = /summar|sum up|tl;?dr|shorten|(?:main|key) (?:points|ideas)|bullet|what (?:is|does) .{1,30} about/i;

/**
 * Answers as prose or as JSON: the filled schema, else the members that the request names, else an `answer` or a
 * `summary`.
 */
export function respond(reading: Reading, isJson: boolean, givenSchema?: string): string {
  const { message, ask, text, background } = reading;
  const sum = calculate(message);
  const isSummary = SUMMARY.test(ask) || (!ask && text !== "");
  const isExtraction = isJson || (text !== "" && !isSummary && /\b(?:extract|list)\b/i.test(ask));
  const schema = isExtraction ? (givenSchema ?? schemaIn(ask)) : undefined;
  const all = sentences(text);
  const summary = summarise(all, ask || background);
  const reply = sum?.value.toString() ?? answer(ask, all) ?? answer(ask, sentences(background));
  if (schema) return extract(schema, text || ask, { summary: summary || ask, answer: reply, result: reply });
  const prose = isSummary ? undefined : reply;
  if (isJson) {
    const isText = prose === undefined && text && !ask.includes("?");
    return JSON.stringify(isText ? { summary } : { answer: sum?.value ?? prose ?? null });
  }
  if (sum) return `${sum.expression} = ${sum.value}`;
  if (GREETING.test(ask)) return `Hello! ${OFFLINE}`;
  if (isSummary) return summary || `There is no text to summarise. ${OFFLINE}`;
  return (
    prose ??
    `${text ? "The given text does not say, at least not in similar words." : "I cannot know that."} ${OFFLINE}`
  );
}

const NAMES = new RegExp(
  String.raw`\b(?:(?:keys?|fields?|members|properties):?|json(?: object)? with|extract|find|list) ` +
    String.raw`(?!(?:the )?(?:keys|fields|members)|(?:of|that|are|is|in)\b)` +
    String.raw`(.{1,300}?)(?: (?:from|for|of|in|as)\b|[.:\n{]|$)`,
  "i",
);

/** Makes a schema of the members that a request names in a template, or after words like "keys" and "extract". */
function schemaIn(ask: string): string | undefined {
  const template = Array.from(ask.matchAll(/"([^"\n]{1,60})"\s*:/g), ([, name = ""]) => name);
  const phrase = NAMES.exec(ask)?.[1]?.replace(/\b(?:all|the|its|every|any|an?)\b|[^\p{L}\d_ ,-]/gu, "") ?? "";
  const listed = phrase.split(/,|\band\b/).map((name) => name.trim().replace(/[ -]+/g, "_"));
  const isVague = (name: string) => /^$|json|data|information|details|entit|text/i.test(name);
  const required = template.length > 0 ? template : listed.filter((name) => !isVague(name));
  const schemaOf = (name: string) =>
    /[^su]s$/.test(name)
      ? { type: "array", items: { type: "string" } }
      : { type: [/total|amount|price|tax|quantity|age$/.test(name) ? "number" : "string", "null"] };
  const properties = Object.fromEntries(required.map((name) => [name, schemaOf(name)]));
  return required.length > 0 ? JSON.stringify({ type: "object", properties, required }) : undefined;
}
