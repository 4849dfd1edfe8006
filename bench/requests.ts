import { ANSWER, WORDS } from "./answer.ts";
import type { Target } from "./load.ts";

export type Mode = "unary" | "sse";

const PROMPT =
  "Name sixty words, one after the other, and say nothing else. Start with the first one that comes to mind.";

/** A request in OpenAI's format: for the upstream, the relay and Portkey. */
export function openAiTarget(port: number, mode: Mode, headers: Record<string, string> = {}): Target {
  const body = JSON.stringify({
    model: "bench",
    messages: [{ role: "user", content: PROMPT }],
    ...(mode === "sse" ? { stream: true } : {}),
  });
  const read = (text: string) =>
    mode === "unary"
      ? JSON.parse(text).choices[0].message.content
      : dataLines(text)
          .filter((data) => data !== "[DONE]")
          .map((data) => JSON.parse(data).choices[0]?.delta.content ?? "")
          .join("");
  const ending = mode === "unary" ? WORDS.at(-1) : "data: [DONE]";
  return { port, path: "/v1/chat/completions", headers, body, ending: ending ?? "", check: checked(read) };
}

/** The stream of the relay: a request in OpenAI's format, events like those of Chorus. */
export function relayStreamTarget(port: number): Target {
  return { ...openAiTarget(port, "sse"), path: "/v1/generate:stream", ending: "event: done", check: checked(deltas) };
}

/** @param apiKey undefined for the server without admission */
export function chorusTarget(port: number, mode: Mode, apiKey?: string): Target {
  return {
    port,
    path: mode === "unary" ? "/v1/generate" : "/v1/generate:stream",
    headers: apiKey === undefined ? {} : { "X-API-Key": apiKey },
    body: JSON.stringify({ prompt: PROMPT }),
    ending: mode === "unary" ? '"finish_reason":"stop"' : "event: done",
    check: checked(mode === "unary" ? (text) => JSON.parse(text).answer : deltas),
  };
}

function checked(read: (body: string) => string): (body: string) => string | undefined {
  return (body) => {
    const answer = read(body);
    return answer === ANSWER ? undefined : `The answer is ${JSON.stringify(answer.slice(0, 300))}.`;
  };
}

function deltas(text: string): string {
  return dataLines(text)
    .map((data) => JSON.parse(data).text ?? "")
    .join("");
}

function dataLines(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => line.slice("data: ".length));
}
