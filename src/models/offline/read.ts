import type { LanguageModelV4Prompt } from "@ai-sdk/provider";

/** A prompt taken apart. */
export interface Reading {
  /** What the last user message asks for; empty where it is nothing but a text. */
  ask: string;
  /** The text to work on: the rest of that message, else that of the earlier user messages. */
  text: string;
  /** System and assistant messages, where an answer may also stand. */
  background: string;
  /** The beginning of the answer, where the prompt ends with one to be continued. */
  begun: string;
}

/** How a sentence begins that says what to do; one that introduces the text counts too. */
const ORDER =
  /^(?:please|kindly|now|then|and|bitte|(?:can|could|would) you|i (?:need|want)(?: you to)?|\W)*(?:summar|sum up|tl;?dr|shorten|condense|extract|identify|(?:find|give|tell|write)(?: me)? (?:an?|the|all|every|any|me)\b|answer|translate|explain|describe|classif|calculat|comput|rewrite|based on|according to|using|return (?:a|only|json|the)|list (?:all|the|every|any)|résum|extrai|fass|extrahier|nenne|gib|in (?:one|two|three|\d+) (?:sent|bull|word|point)|(?:here|below) (?:is|are)|the following|this is (?:a|an|the|my) (?:text|article|invoice|e-?mail)|(?:text|article|context|passage|question)\s*:\s*$)/i;
const QUESTION =
  /^\W*(?:and |please )*(?:who|what|when|where|which|why|how|is|are|was|were|does|did|do|can|has|have|qui|que|quand|où|combien|quel|wer|wann|wo|wie)\b/i;

/** Finds the task and the text in a prompt. */
export function read(prompt: LanguageModelV4Prompt): Reading {
  const turns = prompt.map((message) => ({ role: message.role, content: content(message.content) }));
  const begun = turns.at(-1)?.role === "assistant" ? (turns.pop()?.content ?? "") : "";
  const users = turns.filter((turn) => turn.role === "user").map((turn) => divide(turn.content));
  const { ask, text } = users.pop() ?? { ask: "", text: "" };
  const earlier = users.map((turn) => turn.text || turn.ask.replace(/^.*\?\s*$/s, "")).filter(Boolean);
  const others = turns.filter((turn) => turn.role !== "user").map((turn) => turn.content);
  return { ask, text: text || earlier.join("\n\n"), background: others.join("\n\n"), begun };
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

/** Parts what is asked from what it is asked about: a fenced text, or all but the first and last sentences that ask. */
function divide(message: string): { ask: string; text: string } {
  const fence = /"""|```\w*\n|<(text|article|document|context|email|invoice)>/i.exec(message);
  if (fence) {
    const [open, name] = fence;
    const [start, close] = [fence.index + open.length, name ? `</${name}>` : open.slice(0, 3)];
    const end = message.lastIndexOf(close);
    const ask = `${message.slice(0, fence.index)}${message.slice(end + close.length)}`.trim();
    if (end > start) return { ask, text: message.slice(start, end).trim() };
  }
  const [template = ""] = /\{(?<=(?:json|return|shape)[^{}]{0,80}\{)\s*"[^{}]{0,2000}\}(?=\s*\S)/i.exec(message) ?? [];
  const units = message.replace(template, " ").split(/(?<=[.?!:]\s|\n)/);
  const asks = (unit: string) => ORDER.test(unit) || (QUESTION.test(unit) && /\?\s*$/.test(unit));
  const first = units.findIndex((unit) => unit.trim() && !asks(unit));
  const last = units.findLastIndex((unit) => unit.trim() && !asks(unit) && !/\?\s*$/.test(unit));
  const body = units.slice(Math.max(0, first), last + 1);
  const text = body.join("").trim();
  const ask = [template, ...units.slice(0, first), ...units.slice(last + 1)].join(" ").trim();
  if (first < 0 || !text) return { ask: message, text: "" };
  // A short line that asks for nothing in particular is a question or a greeting, not a text to work on.
  return !ask && text.length < 160 && !/\n|[.!?]\s/.test(text) ? { ask: text, text: "" } : { ask, text };
}
