import { PANEL_PROMPTS, PANEL_SCRIPTS, SCRIPTS, type Script } from "./answer.ts";
import { type Http1Request, http1Target } from "./http1.ts";
import type { Target } from "./load.ts";

/**
 * Kind of request: `unary` asks for the answer in one piece, the others for a stream. The upstream sends the stream
 * with one write (`burst`), a token each 20 ms (`paced`), or only its first token (`held`).
 */
export type Shape = "unary" | "burst" | "paced" | "held";

/** The script that answers a shape. */
export function scriptOf(shape: Shape): Script {
  return SCRIPTS[shape === "unary" ? "burst" : shape];
}

/** A request in OpenAI's format: for the upstream, nginx and Portkey, and unary for the relay. */
export function openAiTarget(port: number, shape: Shape, headers: Record<string, string> = {}): Target {
  return http1Target(openAiRequest(port, shape, headers));
}

/** A stream of the relay: a request in OpenAI's format, events like those of Chorus. */
export function relayStreamTarget(port: number, shape: Shape): Target {
  const request = openAiRequest(port, shape, {});
  const check = checkAnswer(shape, deltas);
  return http1Target({ ...request, path: "/v1/generate:stream", ending: "event: done", check });
}

/** @param apiKey undefined for the server without admission */
export function chorusTarget(port: number, shape: Shape, apiKey?: string): Target {
  const unary = shape === "unary";
  return http1Target({
    port,
    path: unary ? "/v1/generate" : "/v1/generate:stream",
    headers: apiKey === undefined ? {} : { "X-API-Key": apiKey },
    body: JSON.stringify({ prompt: scriptOf(shape).prompt }),
    ending: unary ? '"finish_reason":"stop"' : "event: done",
    check: checkAnswer(shape, unary ? (body) => JSON.parse(body.toString()).answer : deltas),
    ...idle(shape),
  });
}

/** What a panel of three is asked: whether the drafts agree, or never come. `alone` asks one of its models. */
export type Ask = keyof typeof PANEL_PROMPTS | "alone";

/** A question to a panel, or to one of its models. */
export function panelTarget(port: number, ask: Ask, apiKey: string): Target {
  const prompt = PANEL_PROMPTS[ask === "alone" ? "agree" : ask];
  const expected = PANEL_SCRIPTS.find((script) => script.prompt === prompt)?.tokens.join("");
  return http1Target({
    port,
    path: "/v1/generate",
    headers: { "X-API-Key": apiKey },
    body: JSON.stringify({ prompt, effort: ask === "alone" ? "low" : "high" }),
    ending: '"finish_reason":"stop"',
    check: (body) => (JSON.parse(body.toString()).answer === expected ? undefined : `The answer is ${body}.`),
    ...(ask === "silent" ? { idleMs: 0 } : {}),
  });
}

/** Makes a check that compares the answer in a body with the script. */
export function checkAnswer(shape: Shape, read: (body: Buffer) => string): Http1Request["check"] {
  const expected = scriptOf(shape).tokens.join("");
  return (body) => {
    const answer = read(body);
    return answer === expected ? undefined : `The answer is ${JSON.stringify(answer.slice(0, 300))}.`;
  };
}

function openAiRequest(port: number, shape: Shape, headers: Record<string, string>): Http1Request {
  const { prompt, tokens } = scriptOf(shape);
  const unary = shape === "unary";
  const messages = [{ role: "user", content: prompt }];
  return {
    port,
    path: "/v1/chat/completions",
    headers,
    body: JSON.stringify({ model: "bench", messages, ...(unary ? {} : { stream: true }) }),
    ending: unary ? (tokens.at(-1) ?? "") : "data: [DONE]",
    check: checkAnswer(shape, unary ? completion : chunks),
    ...idle(shape),
  };
}

/** A held stream is silent after its first token. */
export function idle(shape: Shape): { idleMs?: number } {
  return shape === "held" ? { idleMs: 0 } : {};
}

export function completion(body: Buffer): string {
  return JSON.parse(body.toString()).choices[0].message.content;
}

export function chunks(body: Buffer): string {
  return dataLines(body)
    .filter((data) => data !== "[DONE]")
    .map((data) => JSON.parse(data).choices[0]?.delta.content ?? "")
    .join("");
}

export function deltas(body: Buffer): string {
  return dataLines(body)
    .map((data) => JSON.parse(data).text ?? "")
    .join("");
}

export function dataLines(body: Buffer): string[] {
  return body
    .toString()
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => line.slice("data: ".length));
}
