import type { Tier } from "../../config.ts";
import { answer } from "./answer.ts";
import { calculate } from "./arithmetic.ts";
import { extract } from "./extract.ts";
import { sentences } from "./language.ts";
import type { Reading } from "./read.ts";
import { summarise } from "./summarise.ts";

const OFFLINE =
  "I am the built-in offline model: I calculate, and I summarise, search and read out the text that you give me.";
const GREETING = /^(?:hi|hello|hey|good (?:morning|afternoon|evening))\b[^?\n]{0,40}$|^(?:who|what) are you/i;
const SUMMARY = /summar|sum up|tl;?dr|shorten|(?:main|key) (?:points|ideas)|bullet|what (?:is|does) .{1,30} about/i;

/** The answer as prose or as JSON: the schema filled, else the members that are asked for, else an `answer` or a `summary`. */
export function respond(reading: Reading, tier: Tier, isJson: boolean, givenSchema?: string): string {
  const { message, ask, text, background } = reading;
  const sum = calculate(message);
  const reply = () =>
    sum?.value.toString() ?? answer(ask, sentences(text), tier) ?? answer(ask, sentences(background), tier);
  const summary = () => summarise(sentences(text), ask || background, tier);
  const asksForSummary = SUMMARY.test(ask) || (!ask && text !== "");
  const schema = givenSchema ?? schemaIn(ask);
  if (isJson && schema) return extract(schema, text || ask, { summary, answer: reply, result: reply });
  if (isJson) {
    const said = asksForSummary ? undefined : reply();
    const isText = said === undefined && text && !ask.includes("?");
    return JSON.stringify(isText ? { summary: summary() } : { answer: sum?.value ?? said ?? null });
  }
  if (sum) return `${sum.expression} = ${sum.value}`;
  if (GREETING.test(ask)) return `Hello! ${OFFLINE}`;
  if (asksForSummary) return summary() || `There is no text to summarise. ${OFFLINE}`;
  const unknown = text ? "The given text does not say, at least not in similar words." : "I cannot know that.";
  return reply() ?? `${unknown} ${OFFLINE}`;
}

const NAMES =
  /\b(?:(?:keys?|fields?|members|properties):?|json(?: object)? with|extract|find|list) (?!keys|fields|the (?:keys|fields|members))(.{1,300}?)(?: (?:from|for|of|in|as)\b|[.:\n{]|$)/i;

/** A schema of the members that a request names in a template such as {"name": …}, after "keys" or "fields", or after "extract". */
function schemaIn(ask: string): string | undefined {
  const template = Array.from(ask.matchAll(/"([^"\n]{1,60})"\s*:/g), ([, name = ""]) => name);
  const phrase = NAMES.exec(ask)?.[1]?.replace(/\b(?:all|the|its|every|any|an?)\b|[^\p{L}\d_ ,-]/gu, "") ?? "";
  const listed = phrase.split(/,|\band\b/).map((name) => name.trim().replace(/[ -]+/g, "_"));
  const isVague = (name: string) => /^$|json|data|information|details|entit|text/i.test(name);
  const names = template.length > 0 ? template : listed.filter((name) => !isVague(name));
  const shape = (name: string) => {
    if (/[^su]s$/.test(name)) return { type: "array", items: { type: "string" } };
    return { type: [/total|amount|price|tax|quantity|age$/.test(name) ? "number" : "string", "null"] };
  };
  const properties = Object.fromEntries(names.map((name) => [name, shape(name)]));
  return names.length > 0 ? JSON.stringify({ type: "object", properties, required: names }) : undefined;
}
