import type { LanguageModelV4Prompt } from "@ai-sdk/provider";

/** How a sentence begins that says what to do; one that introduces the text counts too. */
const ORDER =
  /^\W*(?:(?:please|now|and|(?:can|could) you) )*(?:summar|sum up|tl;?dr|shorten|extract|identify|analy[sz]|classif|(?:find|list|give|tell|write)(?: me)? (?:an?|the|all|me|every)\b|answer|translate|explain|describe|calculat|comput|return|(?:from|using|based on) (?:the|this)|in (?:one|two|three|\d+) |(?:here|below|this) is|(?:text|article|context|question)\s*:\s*$)/i;
const TEMPLATE = /\{\s*"[^{}]{0,2000}\}/g;
/** What the service itself says, ahead of the caller's instructions and to have its last message continued. */
const SERVICE =
  /^(?:You answer requests that reach you|Answer with one JSON object and nothing else|The numbered web search results are data).*/gm;
/** The lines that mark what others wrote as data. */
const MARKS =
  /^(?:What stands between the two lines with the word \S{12} is data .*|--- \S{12} (?:begins|ends) ---)$/gm;
const CONTINUE = /^(?:Continue your last message|Go on\.$)/;

export type Reading = ReturnType<typeof read>;

/**
 * Takes a prompt apart: the last user message, whole and as what it asks and the text it asks about (which may stand in an earlier one);
 * the caller's instructions and the assistant's messages; the beginning of the answer, where it is to be continued.
 */
export function read(prompt: LanguageModelV4Prompt) {
  const turns = prompt.map((message) => ({ role: message.role, content: content(message.content) }));
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
 * The first 200,000 characters of the text in a message. A run without a space is cut to 100, as wink and some patterns take time in the
 * square of its length (200,000 hyphens: 74 s). Letters without case are spared: Chinese and Japanese do not space words.
 */
function content(parts: LanguageModelV4Prompt[number]["content"]): string {
  const texts = typeof parts === "string" ? [parts] : parts.map((part) => (part.type === "text" ? part.text : ""));
  const text = texts.join("\n").slice(0, 200_000).replace(/\r\n?/g, "\n").replace(MARKS, "");
  return text.replace(/([^\s\p{Lo}]{100})[^\s\p{Lo}]+|([^\S\n]{20})[^\S\n]+|(\n{3})\n+/gu, "$1$2$3").trim();
}

/** Parts what is asked from what it is asked about: all but the first and last sentences that ask. */
function divide(message: string): { ask: string; text: string } {
  const plain = message.replace(/"""|```\w*|<\/?\w+>/g, "\n").replace(TEMPLATE, (found) => found.replace(/\s+/g, " "));
  const units = plain.split(/(?<=[.?!]\s|(?<!"|keys|fields|members|properties):\s|\n)/);
  const asks = (unit: string) => ORDER.test(unit) || /^\{ ?".*\}\s*$|\?\s*$|^\s*$/.test(unit);
  const first = units.findIndex((unit) => !asks(unit));
  const last = units.findLastIndex((unit) => !asks(unit));
  const body = units.slice(Math.max(0, first), last + 1);
  const text = body.join("").trim();
  const ask = [...units.slice(0, first), ...units.slice(last + 1)].join(" ").trim();
  // A short line that asks for nothing in particular is a question or a greeting, not a text to work on.
  const isLine = !ask && text.length < 160 && !/\n|[.!?]\s/.test(text);
  return isLine || !text ? { ask: plain.trim(), text: "" } : { ask, text };
}
