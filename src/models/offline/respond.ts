import { answer } from "./answer.ts";
import { calculate } from "./arithmetic.ts";
import { extract, type Schema } from "./extract.ts";
import { sentences } from "./language.ts";
import type { Reading } from "./read.ts";
import { summarise, type Tier } from "./summarise.ts";

const OFFLINE =
  "I am the built-in offline model: I summarise a text that you give me, answer questions from it, extract its data, and calculate.";
const UNKNOWN = `I cannot know that. ${OFFLINE}`;
const NOT_SAID = `The given text does not say, at least not in similar words. ${OFFLINE}`;

const GREETING =
  /^(?:hi|hello|hey|good (?:morning|afternoon|evening|day)|bonjour|salut|hallo|guten (?:tag|morgen|abend))\b[^?\n]{0,40}$|^(?:who|what) are you|^what can you do/i;
const SUMMARY =
  /summar|sum up|tl;?dr|shorten|condense|in short|(?:main|key) (?:points|ideas)|gist|bullet|résum|zusammen|what (?:is|does) .{1,30} about/i;
const CREATION = /\b(?:write|translate|compose|rewrite|draft|invent|imagine)\b/i;
const EXTRACTION = /\b(?:extract|identify|list|find|entities|extrai|extrahier)/i;

const ENTITIES = ["people", "companies", "places", "dates", "amounts", "emails", "phones", "urls"];

/** The answer in prose, or as JSON: the schema filled, else the members that the prompt names, else those that its task suggests. */
export function respond(reading: Reading, tier: Tier, json: boolean, schema?: Schema): string {
  const { ask, text, background } = reading;
  const sum = calculate(ask);
  const summary = SUMMARY.test(ask) || (!ask && text !== "");
  const wanted = named(ask) ?? (EXTRACTION.test(ask) ? { properties: members(ENTITIES) } : undefined);
  if (json) {
    const task = summary ? { summary: STRING, ...(ask ? {} : members(ENTITIES)) } : { answer: sum ? NUMBER : STRING };
    return extract(
      schema ?? wanted ?? named(background) ?? { properties: task, required: Object.keys(task).slice(0, 1) },
      reading,
      tier,
    );
  }
  if (sum) return `${sum.expression} = ${sum.value}`;
  if (GREETING.test(ask)) return `Hello! ${OFFLINE}`;
  if (summary)
    return text ? summarise(sentences(text), ask || background, tier) : `There is no text to summarise. ${OFFLINE}`;
  if (CREATION.test(ask)) return UNKNOWN;
  const said = answer(ask, sentences(text), tier) ?? answer(ask, sentences(background), tier);
  if (!text || !wanted) return said ?? (text ? NOT_SAID : UNKNOWN);
  const found: Record<string, string[] | string | number | null> = JSON.parse(extract(wanted, reading, tier));
  const lines = Object.entries(found).map(
    ([name, value]) => `${name.replace(/_/g, " ")}: ${[value ?? "not stated"].flat().join(", ")}`,
  );
  return lines.join("\n") || NOT_SAID;
}

const STRING: Schema = { type: ["string", "null"] };
const NUMBER: Schema = { type: ["number", "null"] };

/** A schema for each name: a list for a plural, a number for an amount, else a string. */
function members(names: string[]): Record<string, Schema> {
  const list: Schema = { type: "array", items: { type: "string" } };
  const shape = (name: string) =>
    /[^su]s$|people$/.test(name) ? list : /total|amount|price|tax|quantity|age$/.test(name) ? NUMBER : STRING;
  return Object.fromEntries(names.map((name) => [name, shape(name)]));
}

/** A schema of the members that a request names: in a template such as {"name": …}, after "keys" or "fields", or after "extract". */
function named(ask: string): Schema | undefined {
  const template = Array.from(ask.matchAll(/"([^"\n]{1,60})"\s*:/g), ([, key = ""]) => key);
  const [, phrase = ""] =
    /\b(?:(?:keys?|fields?|members|properties)(?: as json)?:?|json(?: object)? with) (?!keys|fields|the |members)([^.\n{]{1,300})/i.exec(
      ask,
    ) ??
    /\b(?:extract|identify|list|find) (.{1,300}?)(?: (?:from|as|in|into|of|out|that|mentioned)\b|[.:\n{]|$)/i.exec(
      ask,
    ) ??
    [];
  const parts = phrase
    .split(/,|\band\b|&|;/)
    .map((part) => part.replace(/\b(?:all|the|its|every|any|an?)\b|[^\p{L}\d_ -]/gu, "").trim());
  const keys = parts.filter(
    (part) => part && !/json|object|data|information|details|entit|facts|thing|text/i.test(part),
  );
  const names = template.length > 0 ? template : keys.map((key) => key.replace(/[ -]+/g, "_"));
  return names.length === 0 ? undefined : { required: names, properties: members(names) };
}
