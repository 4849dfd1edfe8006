import type { Shape } from "../contract/terms.ts";
import type { Message, Prompt } from "../models/port/model.ts";

/** The caller's prompt as a conversation. */
export interface Conversation {
  /** Instructions of the caller, in order: the `system` field, then messages with the role `system`. */
  system: string[];
  messages: Message[];
  /** Whether the model must continue the last message, which is the assistant's. */
  continues: boolean;
}

const SERVICE =
  "You answer requests that reach you through an API. Give the answer itself, without a preamble about the request. " +
  "If you cannot know something, say so instead of inventing it.";

const EXTRACT =
  "Answer with one JSON object and nothing else: no prose, no code fence. " +
  "Its members are the ones that the request asks for.";

const STRICT =
  "Answer with one JSON object and nothing else: no prose, no code fence. " +
  "It must be valid against the JSON Schema of the response format.";

const CONTINUE =
  "Continue your last message exactly from where it stops. Do not repeat any of it, do not begin anew, do not comment.";

/** The user's turn where the caller has none. */
const BEGIN = "Begin.";

/**
 * Builds the prompt for a model, in the form that every vendor accepts:
 * - All system texts come first, because some vendors reject them between messages.
 * - No message is empty or has only white space as its text, because some vendors reject both.
 * - Roles alternate and the first is the user's, because Bedrock and the chat templates of many open models require it.
 * - The last message is the user's, because newer models reject a prefilled answer.
 */
export function buildPrompt(conversation: Conversation, shape: Shape): Prompt {
  const instructions = [SERVICE];
  if (shape === "extract") instructions.push(EXTRACT);
  if (shape === "json_schema") instructions.push(STRICT);
  const system = conversation.system.filter(isWritten);
  const messages = alternating(conversation.messages.map(withoutBlank).filter(hasContent));
  if (messages.length === 0) messages.push({ role: "user", text: system.pop() ?? BEGIN });
  if (messages[0]?.role === "assistant") messages.unshift({ role: "user", text: BEGIN });
  if (messages.at(-1)?.role === "assistant")
    messages.push({ role: "user", text: conversation.continues ? CONTINUE : "Go on." });
  // A copy, because an array that has grown keeps room for 16 more.
  return { system: [...instructions, ...system].join("\n\n"), messages: [...messages] };
}

/** Whether a text has more than white space. */
function isWritten(text: string): boolean {
  return /\S/.test(text);
}

/** A message without text, if its text is only white space. */
function withoutBlank(message: Message): Message {
  return message.text === "" || isWritten(message.text) ? message : { ...message, text: "" };
}

function hasContent({ text, images, calls, results }: Message): boolean {
  return text !== "" || [images, calls, results].some((each) => each?.length);
}

/** Joins consecutive messages of the same role. Results come first of a user's, and calls last of the assistant's. */
function alternating(messages: readonly Message[]): Message[] {
  const runs: Message[][] = [];
  for (const message of messages) {
    const run = runs.at(-1);
    if (run?.[0]?.role === message.role) run.push(message);
    else runs.push([message]);
  }
  return runs.map(joined);
}

/** Joins the messages of one run at once, because a run can have thousands. */
function joined(run: readonly Message[]): Message {
  const [first] = run as [Message];
  if (run.length === 1) return first;
  const texts = run.map(({ text }) => text).filter((text) => text !== "");
  const images = run.flatMap(({ images = [] }) => images);
  const calls = run.at(-1)?.calls;
  const { role, results } = first;
  return {
    ...{ role, text: texts.join("\n\n") },
    ...(images.length > 0 ? { images } : {}),
    ...(calls ? { calls } : {}),
    ...(results ? { results } : {}),
  };
}

/** Adds an invalid answer and its errors, and asks the model to correct it. @param demand what it must send */
export function buildReask(prompt: Prompt, answer: string, errors: readonly string[], demand: string): Prompt {
  const list = errors.map((error) => `- ${error}`).join("\n");
  const correction = `That is not valid:\n${list}\n${demand}`;
  const messages: Message[] = [
    { role: "assistant", text: isWritten(answer) ? answer : "(empty)" },
    { role: "user", text: correction },
  ];
  return { ...prompt, messages: [...prompt.messages, ...messages] };
}
