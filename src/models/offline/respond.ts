import type { Tier } from "../../config.ts";
import { answer } from "./answer.ts";
import { calculate } from "./arithmetic.ts";
import { extract, type Schema } from "./extract.ts";
import { sentences } from "./language.ts";
import type { Reading } from "./read.ts";
import { summarise } from "./summarise.ts";

const OFFLINE =
  "I am the built-in offline model: I summarise a text that you give me, answer questions from it, extract its data, and calculate.";
const UNKNOWN = `I cannot know that. ${OFFLINE}`;
const NOT_SAID = `The given text does not say, at least not in similar words. ${OFFLINE}`;

const GREETING =
  /^(?:hi|hello|hey|good (?:morning|afternoon|evening|day)|bonjour|salut|hallo|guten (?:tag|morgen|abend))\b[^?\n]{0,40}(?:how are you\W*)?$|^(?:who|what) are you|^what can you do/i;
const SUMMARY =
  /summar|sum up|tl;?dr|shorten|condense|in short|(?:main|key) (?:points|ideas)|takeaway|gist|bullet|résum|zusammen|what (?:is|does) .{1,30} about/i;
const CREATION = /\b(?:write|translate|compose|rewrite|draft|invent|imagine)\b/i;
const EXTRACTION = /\b(?:extract|identify|list|find|entities|extrai|extrahier)/i;

const STRING: Schema = { type: ["string", "null"] };
const NUMBER: Schema = { type: ["number", "null"] };
const LIST: Schema = { type: "array", items: { type: "string" } };
const ENTITIES = members(["people", "companies", "places", "dates", "amounts", "emails", "phones", "urls"]);

/** The answer in prose, or as JSON: the schema filled, else the members that the prompt names, else those that its task suggests. */
export function respond(reading: Reading, tier: Tier, format?: { type: string; schema?: Schema }): string {
  const { ask, text, background } = reading;
  const sum = calculate(ask) ?? calculate(`${ask} ${text}`);
  const summary = SUMMARY.test(ask) || (!ask && text !== "");
  const wanted = named(ask) ?? (EXTRACTION.test(ask) && !summary ? { properties: ENTITIES } : undefined);
  if (format?.type === "json") {
    const task = summary ? { summary: STRING, ...(ask ? {} : ENTITIES) } : { answer: sum ? NUMBER : STRING };
    const suggested = { properties: task, required: [summary ? "summary" : "answer"] };
    return extract(format.schema ?? wanted ?? named(background) ?? suggested, reading, tier);
  }
  if (sum) return `${sum.expression} = ${sum.value}`;
  if (GREETING.test(ask)) return `Hello! ${OFFLINE}`;
  if (summary && !text) return `There is no text to summarise. ${OFFLINE}`;
  if (summary) return summarise(sentences(text), ask || background, tier);
  if (CREATION.test(ask)) return UNKNOWN;
  const said = answer(ask, sentences(text), tier) ?? answer(ask, sentences(background), tier);
  if (!text || !wanted) return said ?? (text.length > 80 ? NOT_SAID : UNKNOWN);
  const found: Record<string, string[] | string | number | null> = JSON.parse(extract(wanted, reading, tier));
  const line = ([name, value]: [string, unknown]) =>
    `${name.replace(/_/g, " ")}: ${[value ?? "not stated"].flat().join(", ")}`;
  return Object.entries(found).map(line).join("\n") || NOT_SAID;
}

/** A schema for each name: a list for a plural, a number for an amount, else a string. */
function members(names: string[]): Record<string, Schema> {
  const shape = (name: string) => (/total|amount$|price|tax|quantity|age$/.test(name) ? NUMBER : STRING);
  return Object.fromEntries(names.map((name) => [name, /[^su]s$|people$/.test(name) ? LIST : shape(name)]));
}

const KEYS =
  /\b(?:(?:keys?|fields?|members|properties):?|json(?: object)? with) (?!keys|fields|the )(.{1,300}?)(?: (?:from|for|of|in|as|about)\b|[.:\n{]|$)/i;
const OBJECTS =
  /\b(?:extract|identify|list|find) (.{1,300}?)(?: (?:from|as|in|into|of|out|that|mentioned)\b|[.:\n{]|$)/i;

/** A schema of the members that a request names: in a template such as {"name": …}, after "keys" or "fields", or after "extract". */
function named(ask: string): Schema | undefined {
  const template = Array.from(ask.matchAll(/"([^"\n]{1,60})"\s*:/g), ([, key = ""]) => key);
  const [, phrase = ""] = KEYS.exec(ask) ?? OBJECTS.exec(ask) ?? [];
  const words = phrase.replace(/\b(?:all|the|its|every|any|an?)\b|[^\p{L}\d_ ,;-]/gu, "").split(/[,;]|\band\b/);
  const listed = words.filter(
    (word) => !/^\s*$|json|object|data|information|details|entit|facts|thing|text/i.test(word),
  );
  const names = template.length > 0 ? template : listed.map((word) => word.trim().replace(/[ -]+/g, "_"));
  return names.length === 0 ? undefined : { required: names, properties: members(names) };
}
