import type { LanguageModelV4Prompt } from "@ai-sdk/provider";

/** A prompt taken apart. */
export interface Reading {
  /** The last user message, whole. */
  message: string;
  /** What that message asks for; empty where it is nothing but a text. */
  ask: string;
  /** The text to work on: the rest of that message, else that of the earlier user messages. */
  text: string;
  /** The caller's instructions and the assistant's messages, where an answer may also stand. */
  background: string;
  /** The beginning of the answer, where it is to be continued. */
  begun: string;
}

/** How a sentence begins that says what to do; one that introduces the text counts too. */
const ORDER =
  /^\W*(?:(?:please|now|then|and|(?:can|could|would) you) )*(?:summar|sum up|tl;?dr|shorten|condense|extract|identify|find|list|give|tell|write|answer|translate|explain|describe|calculat|comput|return|based on|in (?:one|two|three|\d+) |(?:here|below|this) is|(?:text|article|context|question)\s*:\s*$)/i;
const QUESTION = /^\W*(?:who|what|when|where|which|why|how|is|are|was|were|does|did|do|can|has|have)\b.*\?\s*$/i;
/** The service's own instructions, ahead of the caller's, say nothing to answer from. */
const SERVICE =
  /^(?:You answer requests that reach you through an API|Answer with one JSON object and nothing else).*/gm;
/** How the service asks for the rest of the assistant's last message. */
const CONTINUE = /^(?:Continue your last message|Go on\.$)/;

/** Finds the task and the text in a prompt. */
export function read(prompt: LanguageModelV4Prompt): Reading {
  const turns = prompt.map((message) => ({ role: message.role, content: content(message.content) }));
  if (turns.at(-2)?.role === "assistant" && CONTINUE.test(turns.at(-1)?.content ?? "")) turns.pop();
  const begun = turns.at(-1)?.role === "assistant" ? (turns.pop()?.content ?? "") : "";
  const users = turns.filter((turn) => turn.role === "user").map((turn) => turn.content);
  const message = users.pop() ?? "";
  const { ask, text } = divide(message);
  const earlier = users.map((user) => divide(user).text || user.replace(/^.*\?\s*$/s, "")).filter(Boolean);
  const others = turns.filter((turn) => turn.role !== "user").map((turn) => turn.content.replace(SERVICE, ""));
  return { message, ask, text: text || earlier.join("\n\n"), background: others.join("\n\n").trim(), begun };
}

/**
 * The first 200,000 characters of the text in a message. A run without a space is cut to 100, as wink and some patterns take time in the
 * square of its length (200,000 hyphens: 74 s). Letters without case are spared: Chinese and Japanese do not space words.
 */
function content(parts: LanguageModelV4Prompt[number]["content"]): string {
  const texts = typeof parts === "string" ? [parts] : parts.map((part) => (part.type === "text" ? part.text : ""));
  const text = texts.join("\n").slice(0, 200_000).replace(/\r\n?/g, "\n");
  return text.replace(/([^\s\p{Lo}]{100})[^\s\p{Lo}]+|([^\S\n]{20})[^\S\n]+|(\n{3})\n+/gu, "$1$2$3").trim();
}

/** Parts what is asked from what it is asked about: a quoted text, or all but the first and last sentences that ask. */
function divide(message: string): { ask: string; text: string } {
  const fence = /("""|```\w*\n|<(text|article|document|invoice)>)/i.exec(message);
  const [open = "", , tag] = fence ?? [];
  const start = (fence?.index ?? 0) + open.length;
  const close = tag ? `</${tag}>` : open.slice(0, 3);
  const end = message.lastIndexOf(close);
  if (fence && end > start) {
    const ask = `${message.slice(0, fence.index)}${message.slice(end + close.length)}`;
    return { ask: ask.trim(), text: message.slice(start, end).trim() };
  }
  const oneLined = message.replace(/\{\s*"[^{}]{0,2000}\}/g, (template) => template.replace(/\s+/g, " "));
  const units = oneLined.split(/(?<=[.?!]\s|(?<!"|keys|fields|members|properties):\s|\n)/);
  const asks = (unit: string) => ORDER.test(unit) || QUESTION.test(unit) || /^\{ ?".*\}\s*$|^\s*$/.test(unit);
  const first = units.findIndex((unit) => !asks(unit));
  const last = units.findLastIndex((unit) => !asks(unit) && !/\?\s*$/.test(unit));
  const text =
    first < 0
      ? ""
      : units
          .slice(first, last + 1)
          .join("")
          .trim();
  const ask = [...units.slice(0, first), ...units.slice(last + 1)].join(" ").trim();
  // A short line that asks for nothing in particular is a question or a greeting, not a text to work on.
  const isLine = !ask && text.length < 160 && !/\n|[.!?]\s/.test(text);
  return isLine || !text ? { ask: message, text: "" } : { ask, text };
}
