import { createServer } from "node:net";
import { ANSWER, WORDS } from "./answer.ts";
import { frame } from "./framing.ts";

const SHARED = { id: "chatcmpl-bench", created: 1_750_000_000, model: "bench" };
const USAGE = { prompt_tokens: 20, completion_tokens: 120, total_tokens: 140 };

/**
 * A static vendor: answers each POST with an OpenAI chat completion, or with a stream of chunks if the body has
 * `"stream":true`. Each response is built in advance and sent with one write, which costs a fraction of any server
 * under test.
 */
function serveUpstream(port: number): void {
  const unary = answerBytes(
    "application/json",
    JSON.stringify({
      ...SHARED,
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: ANSWER }, finish_reason: "stop" }],
      usage: USAGE,
    }),
  );
  const streamed = answerBytes("text/event-stream", `${chunks().join("\n\n")}\n\ndata: [DONE]\n\n`);
  createServer({ noDelay: true }, (socket) => {
    let pending: Buffer | undefined;
    socket.on("error", () => socket.destroy());
    socket.on("data", (data: Buffer) => {
      let bytes = pending ? Buffer.concat([pending, data]) : data;
      pending = undefined;
      while (bytes.length > 0) {
        const found = frame(bytes);
        if (!found || found.end > bytes.length) {
          pending = bytes;
          return;
        }
        const stream = bytes.subarray(found.bodyStart, found.end).includes('"stream":true');
        socket.write(stream ? streamed : unary);
        bytes = bytes.subarray(found.end);
      }
    });
  }).listen(port, "127.0.0.1");
}

function chunks(): string[] {
  const event = (choices: object[], more: object = {}) =>
    `data: ${JSON.stringify({ ...SHARED, object: "chat.completion.chunk", choices, ...more })}`;
  return [
    event([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]),
    ...WORDS.map((content) => event([{ index: 0, delta: { content }, finish_reason: null }])),
    event([{ index: 0, delta: {}, finish_reason: "stop" }]),
    event([], { usage: USAGE }),
  ];
}

function answerBytes(type: string, body: string): Buffer {
  return Buffer.from(
    `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

serveUpstream(Number(process.argv[2]));
