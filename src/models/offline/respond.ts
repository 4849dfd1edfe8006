import type { Tier } from "../../config.ts";
import { answer } from "./answer.ts";
import { calculate } from "./arithmetic.ts";
import { extract } from "./extract.ts";
import { Facts } from "./facts.ts";
import { sentences } from "./language.ts";
import type { Reading } from "./read.ts";
import { summarise } from "./summarise.ts";

const OFFLINE =
  "I am the built-in offline model: I summarise a text that you give me, answer questions from it, extract its data, and calculate.";
const UNKNOWN = `I cannot know that. ${OFFLINE}`;
const NOT_SAID = `The given text does not say, at least not in similar words. ${OFFLINE}`;

const GREETING =
  /^(?:hi|hello|hey|good (?:morning|afternoon|evening))\b[^?\n]{0,40}(?:how are you\W*)?$|^(?:who|what) are you|^what can you do/i;
const SUMMARY =
  /summar|sum up|tl;?dr|shorten|condense|in short|(?:main|key) (?:points|ideas)|gist|bullet|what (?:is|does) .{1,30} about/i;
const CREATION = /\b(?:write|translate|compose|rewrite|draft|invent|imagine)\b/i;

/** The answer in prose. */
export function inProse(reading: Reading, tier: Tier): string {
  const { ask, text } = reading;
  const sum = calculate(reading.message);
  if (sum) return `${sum.expression} = ${sum.value}`;
  if (GREETING.test(ask)) return `Hello! ${OFFLINE}`;
  if (asksForSummary(reading)) return summary(reading, tier) || `There is no text to summarise. ${OFFLINE}`;
  if (CREATION.test(ask)) return UNKNOWN;
  const names = namesIn(ask);
  if (!text || names.length === 0) return reply(reading, tier) ?? (text.length > 80 ? NOT_SAID : UNKNOWN);
  const found = Object.entries<unknown>(JSON.parse(filled(schemaOf(names), reading, tier)));
  const said = ([name, value]: [string, unknown]) => `${name.replaceAll("_", " ")}: ${value ?? "not stated"}`;
  return found.map(said).join("\n");
}

/** The answer as JSON: the schema filled, else the members that the request names, else an `answer` or a `summary`. */
export function inJson(reading: Reading, tier: Tier, schema?: string): string {
  const names = namesIn(reading.ask);
  if (schema !== undefined || names.length > 0) return filled(schema ?? schemaOf(names), reading, tier);
  const sum = calculate(reading.message);
  if (sum) return JSON.stringify({ answer: sum.value });
  const said = asksForSummary(reading) ? undefined : reply(reading, tier);
  const isText = said === undefined && reading.text && !reading.ask.includes("?");
  return JSON.stringify(isText ? { summary: summary(reading, tier) } : { answer: said ?? null });
}

function filled(schema: string, reading: Reading, tier: Tier): string {
  return extract(schema, {
    facts: new Facts(reading.text || reading.ask),
    summary: /summary|abstract/i.test(schema) ? summary(reading, tier) : undefined,
    answer: /answer|result/i.test(schema) ? reply(reading, tier) : undefined,
  });
}

function asksForSummary({ ask, text }: Reading): boolean {
  return SUMMARY.test(ask) || (!ask && text !== "");
}

function summary({ ask, text, background }: Reading, tier: Tier): string {
  return summarise(sentences(text), ask || background, tier);
}

function reply({ message, ask, text, background }: Reading, tier: Tier): string | undefined {
  const sum = calculate(message)?.value.toString();
  return sum ?? answer(ask, sentences(text), tier) ?? answer(ask, sentences(background), tier);
}

const KEYS =
  /\b(?:(?:keys?|fields?|members|properties):?|json(?: object)? with) (?!keys|fields|the )(.{1,300}?)(?: (?:from|for|of|in|as|about)\b|[.:\n{]|$)/i;
const OBJECTS =
  /\b(?:extract|identify|list|find) (.{1,300}?)(?: (?:from|as|in|into|of|out|that|mentioned)\b|[.:\n{]|$)/i;

/** The members that a request names: in a template such as {"name": …}, after "keys" or "fields", or after "extract". */
function namesIn(ask: string): string[] {
  const template = Array.from(ask.matchAll(/"([^"\n]{1,60})"\s*:/g), ([, name = ""]) => name);
  if (template.length > 0) return template;
  const [, phrase = ""] = KEYS.exec(ask) ?? OBJECTS.exec(ask) ?? [];
  const names = phrase.replace(/\b(?:all|the|its|every|any|an?)\b|[^\p{L}\d_ ,;-]/gu, "").split(/[,;]|\band\b/);
  const isName = (name: string) => !/^\s*$|json|object|data|information|details|entit|text/i.test(name);
  return names.filter(isName).map((name) => name.trim().replace(/[ -]+/g, "_"));
}

/** A JSON Schema with a list for a plural, a number for an amount, else a string. */
function schemaOf(names: string[]): string {
  const shape = (name: string) => {
    if (/[^su]s$|people$/.test(name)) return { type: "array", items: { type: "string" } };
    return { type: [/total|amount|price|tax|quantity|age$/.test(name) ? "number" : "string", "null"] };
  };
  const properties = Object.fromEntries(names.map((name) => [name, shape(name)]));
  return JSON.stringify({ type: "object", properties, required: names });
}
