import type { Prompt } from "../port/model.ts";

/** Start of a sentence that gives an instruction or introduces the text. */
const INSTRUCTION = new RegExp(
  String.raw`^\W*(?:(?:please|now|and|(?:can|could) you) )*(?:summar|sum up|tl;?dr|shorten|extract|identify|` +
    String.raw`analy[sz]|classif|(?:find|list|give|tell|write)(?: me)? (?:an?|the|all|me|every)\b|answer|translate|` +
    "explain|describe|calculat|comput|return|(?:from|using|based on) (?:the|this)|" +
    String.raw`in (?:one|two|three|\d+) |(?:here|below|this) is|(?:text|article|context|question)\s*:\s*$)`,
  "i",
);
const TEMPLATE = /\{\s*"[^{}]{0,2000}\}/g;
/** Instructions that the service adds to a prompt (engine/prompt.ts, search/render.ts). Removed before reading. */
const SERVICE = /^(?:You answer requests that reach you|Answer with one JSON object and|The numbered web search).*/gm;
/** The lines that mark untrusted text as data (engine/untrusted.ts). Removed before reading. */
const MARKS = /^(?:What stands between the two lines with the word \S{12} is.*|--- \S{12} (?:begins|ends) ---)$/gm;
/** Most characters that are read of a message, and of the messages before it; they are read in one turn. */
const MAX_LENGTH = 20_000;
/** Most messages that are read: the last ones. */
const MAX_MESSAGES = 8;
const CONTINUE = /^(?:Continue your last message|Go on\.$)/;

export type Reading = ReturnType<typeof read>;

/**
 * Splits a prompt. `message` is the last user message, `ask` its instructions and questions, `text` the text that
 * they are about, which may be in an earlier message. `background` has the caller's instructions and the assistant's
 * messages. `begun` is the beginning of an answer to continue.
 */
export function read({ system, messages: all }: Prompt) {
  const messages = all.slice(-MAX_MESSAGES).map(({ role, text }) => ({ role, text: content(text) }));
  if (messages.at(-2)?.role === "assistant" && CONTINUE.test(messages.at(-1)?.text ?? "")) messages.pop();
  const begun = messages.at(-1)?.role === "assistant" ? (messages.pop()?.text ?? "") : "";
  const { user: users = [], assistant = [] } = Object.groupBy(messages, ({ role }) => role);
  const message = users.pop()?.text ?? "";
  const { ask, text } = divide(message);
  const earlier = users.map(({ text }) => divide(text).text || text.replace(/^.*\?$/s, "")).join("\n\n");
  const others = [content(system).replace(SERVICE, ""), ...assistant.map(({ text }) => text)].join("\n\n");
  const background = others.slice(0, MAX_LENGTH).trim();
  return { message, ask, text: text || earlier.slice(-MAX_LENGTH).trim(), background, begun };
}

/** Returns a message without marks, of up to 20,000 characters; the middle of a longer one is left out. */
function content(message: string): string {
  const { length } = message;
  const text = length > MAX_LENGTH ? `${message.slice(0, MAX_LENGTH - 2_000)}\n${message.slice(-2_000)}` : message;
  return text.replace(/\r\n?/g, "\n").replace(MARKS, "").trim();
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
  return isLine || !/[\p{L}\d]/u.test(text) ? { ask: unmarked.trim(), text: "" } : { ask, text };
}
