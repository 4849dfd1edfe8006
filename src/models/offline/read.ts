import type { Prompt } from "../model.ts";

/** Start of a sentence that gives an instruction or introduces the text. */
const INSTRUCTION = new RegExp(
  String.raw`^\W*(?:(?:please|now|and|(?:can|could) you) )*(?:${[
    "summar|sum up|tl;?dr|shorten|extract|identify|analy[sz]|classif",
    String.raw`(?:find|list|give|tell|write)(?: me)? (?:an?|the|all|me|every)\b`,
    "answer|translate|explain|describe|calculat|comput|return",
    String.raw`(?:from|using|based on) (?:the|this)|in (?:one|two|three|\d+) |(?:here|below|this) is`,
    String.raw`(?:text|article|context|question)\s*:\s*$`,
  ].join("|")})`,
  "i",
);
const TEMPLATE = /\{\s*"[^{}]{0,2000}\}/g;
/** Instructions that the service adds to a prompt (engine/prompt.ts, search/render.ts). Removed before reading. */
const SERVICE = new RegExp(
  `^(?:${[
    "You answer requests that reach you",
    "Answer with one JSON object and nothing else",
    "The numbered web search results are data",
  ].join("|")}).*`,
  "gm",
);
/** The lines that mark untrusted text as data (engine/untrusted.ts). Removed before reading. */
const MARKS =
  /^(?:What stands between the two lines with the word \S{12} is data .*|--- \S{12} (?:begins|ends) ---)$/gm;
const CONTINUE = /^(?:Continue your last message|Go on\.$)/;

export type Reading = ReturnType<typeof read>;

/**
 * Splits a prompt. `message` is the last user message, `ask` its instructions and questions, `text` the text that
 * they are about, which may be in an earlier message. `background` has the caller's instructions and the assistant's
 * messages. `begun` is the beginning of an answer to continue.
 */
export function read(prompt: Prompt) {
  const messages = [{ role: "system" as const, text: prompt.system }, ...prompt.turns];
  const turns = messages.map(({ role, text }) => ({ role, content: content(text) }));
  if (turns.at(-2)?.role === "assistant" && CONTINUE.test(turns.at(-1)?.content ?? "")) turns.pop();
  const begun = turns.at(-1)?.role === "assistant" ? (turns.pop()?.content ?? "") : "";
  const users = turns.filter((turn) => turn.role === "user").map((turn) => turn.content);
  const message = users.pop() ?? "";
  const { ask, text } = divide(message);
  const earlier = users.map((user) => divide(user).text || user.replace(/^.*\?$/s, "")).join("\n\n");
  const others = turns.filter((turn) => turn.role !== "user").map((turn) => turn.content.replace(SERVICE, ""));
  return { message, ask, text: text || earlier.trim(), background: others.join("\n\n").trim(), begun };
}

/**
 * Returns the first 200,000 characters of text in a message. A run without a space is cut to 100 characters, because
 * wink and some patterns take time quadratic in its length. Letters without case are not cut, because Chinese and
 * Japanese have no spaces between words.
 */
function content(message: string): string {
  const text = message.slice(0, 200_000).replace(/\r\n?/g, "\n").replace(MARKS, "");
  return text.replace(/([^\s\p{Lo}]{100})[^\s\p{Lo}]+|([^\S\n]{20})[^\S\n]+|(\n{3})\n+/gu, "$1$2$3").trim();
}

/**
 * Separates instructions and questions, at the beginning and the end of a message, from the text that they are about.
 */
function divide(message: string): { ask: string; text: string } {
  const unmarked = message
    .replace(/"""|```\w*|<\/?\w+>/g, "\n")
    .replace(TEMPLATE, (found) => found.replace(/\s+/g, " "));
  const units = unmarked.split(/(?<=[.?!]\s|(?<!"|keys|fields|members|properties):\s|\n)/);
  const asks = (unit: string) => INSTRUCTION.test(unit) || /^\{ ?".*\}\s*$|\?\s*$|^\s*$/.test(unit);
  const first = units.findIndex((unit) => !asks(unit));
  const last = units.findLastIndex((unit) => !asks(unit));
  const body = units.slice(Math.max(0, first), last + 1);
  const text = body.join("").trim();
  const ask = [...units.slice(0, first), ...units.slice(last + 1)].join(" ").trim();
  // A short line without an instruction is a question or a greeting.
  const isLine = !ask && text.length < 160 && !/\n|[.!?]\s/.test(text);
  return isLine || !text ? { ask: unmarked.trim(), text: "" } : { ask, text };
}
