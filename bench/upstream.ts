import { createServer, type Socket } from "node:net";
import { PANEL_SCRIPTS, SCRIPTS, type Script } from "./answer.ts";
import { frame } from "./framing.ts";

const SHARED = { id: "chatcmpl-bench", created: 1_750_000_000, model: "bench" };

/** Responses to one prompt, built in advance, so that a response costs a fraction of any server under test. */
interface Responses {
  prompt: string;
  also: string;
  intervalMs: number;
  unary: Buffer;
  /** One part for each token. The first also has the headers, the last also has the end. Their sum is the response. */
  parts: Buffer[];
  /** All parts. */
  streamed: Buffer;
}

/**
 * A static vendor: answers each POST with an OpenAI chat completion, or with a stream of chunks if the body has
 * `"stream":true`. The prompt selects the script, for a panel also the model. Sends a burst with one
 * write, and a paced stream with one write per token.
 */
function serveUpstream(port: number): void {
  const scripts = [...Object.values(SCRIPTS), ...PANEL_SCRIPTS].map(responses);
  createServer({ noDelay: true }, (socket) => {
    let pending: Buffer | undefined;
    let timer: NodeJS.Timeout | undefined;
    socket.on("error", () => socket.destroy());
    socket.on("close", () => clearInterval(timer));
    socket.on("data", (data: Buffer) => {
      let bytes = pending ? Buffer.concat([pending, data]) : data;
      pending = undefined;
      while (bytes.length > 0) {
        const found = frame(bytes);
        if (!found || found.end > bytes.length) {
          pending = bytes;
          return;
        }
        timer = respond(socket, bytes.subarray(found.bodyStart, found.end), scripts);
        bytes = bytes.subarray(found.end);
      }
    });
  }).listen({ port, host: "127.0.0.1", backlog: 4_096 });
}

/** @returns the timer of a paced stream */
function respond(socket: Socket, body: Buffer, scripts: Responses[]): NodeJS.Timeout | undefined {
  const script = scripts.find(({ prompt, also }) => body.includes(prompt) && body.includes(also));
  if (!script) {
    socket.end("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    return undefined;
  }
  const { intervalMs, unary, streamed, parts } = script;
  const isStream = body.includes('"stream":true');
  if (!isStream || intervalMs === 0) {
    if (isStream || intervalMs !== Infinity) socket.write(isStream ? streamed : unary);
    return undefined;
  }
  let next = 0;
  const write = () => {
    socket.write(parts[next++] ?? "");
    if (next === parts.length) clearInterval(timer);
  };
  const timer = intervalMs === Infinity ? undefined : setInterval(write, intervalMs);
  write();
  return timer;
}

function responses({ prompt, also = "", tokens, intervalMs }: Script): Responses {
  const usage = { prompt_tokens: 20, completion_tokens: tokens.length, total_tokens: 20 + tokens.length };
  const message = { role: "assistant", content: tokens.join("") };
  const choices = [{ index: 0, message, finish_reason: "stop" }];
  const unary = answerBytes(
    "application/json",
    JSON.stringify({ ...SHARED, object: "chat.completion", choices, usage }),
  );
  const event = (choices: object[], more: object = {}) =>
    `data: ${JSON.stringify({ ...SHARED, object: "chat.completion.chunk", choices, ...more })}\n\n`;
  const first = event([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]);
  const deltas = tokens.map((content) => event([{ index: 0, delta: { content }, finish_reason: null }]));
  const last = `${event([{ index: 0, delta: {}, finish_reason: "stop" }])}${event([], { usage })}data: [DONE]\n\n`;
  const streamed = answerBytes("text/event-stream", `${first}${deltas.join("")}${last}`);
  const parts: Buffer[] = [];
  let end = streamed.length - last.length;
  for (const delta of deltas.toReversed()) {
    parts.unshift(streamed.subarray(end - delta.length, end));
    end -= delta.length;
  }
  parts[0] = streamed.subarray(0, end + (deltas[0]?.length ?? 0));
  parts[parts.length - 1] = streamed.subarray(streamed.length - last.length - (deltas.at(-1)?.length ?? 0));
  return { prompt, also, intervalMs, unary, parts, streamed };
}

function answerBytes(type: string, body: string): Buffer {
  return Buffer.from(
    `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

serveUpstream(Number(process.argv[2]));
