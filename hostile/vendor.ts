/**
 * A vendor with OpenAI's format, in a process of its own. A word in brackets in the prompt says how it answers; without
 * one, it answers at once, streams with 10 ms between the tokens.
 */
import { WIRES } from "../test/helpers/vendor-wire.ts";
import { type Reply, startVendor, type VendorCall } from "../test/helpers/vendors.ts";
import { ANSWER } from "./answer.ts";
import { answer } from "./child.ts";

const TOKENS = ANSWER.split(/(?<= )/);
/** Longer than any deadline of a test. */
const SLOW = Array.from({ length: 60 }, (_, i) => `Part ${i}. `);

const error = (status: number, message: string, code: string | null = null): Reply => ({
  status,
  error: { message, type: "invalid_request_error", ...(code === null ? {} : { code }) },
});

/** Replies to poison, and those of vendors in trouble, by the word in the prompt. */
const REPLIES: Readonly<Record<string, Reply>> = {
  "400": error(400, "Invalid value."),
  "403": error(403, "This country is not supported."),
  "404": error(404, "There is no such file."),
  "413": error(413, "The request is too large."),
  "422": error(422, "The request cannot be processed."),
  "500": { status: 500, error: { message: "The server had an error.", type: "server_error" } },
  context: error(400, "The maximum context length is 8192 tokens.", "context_length_exceeded"),
  filter: { text: "", finish: "content-filter" },
  // V8 prepares an expression at its first two uses, and again for wide characters.
  patterns: {
    text: JSON.stringify(
      Object.fromEntries([0, 1, 2, 3, 4].map((at) => [`p${at}`, ["中", "中文", `${"a".repeat(2_000)}!`, "中文"]])),
    ),
  },
  garbage: { raw: "no json", headers: { "content-type": "application/json" } },
  silent: { end: "silent" },
  hang: { end: "hang", after: 0, text: ["never"] },
  reset: { end: "reset", after: 0, text: ["never"] },
  slow: { text: SLOW, betweenMs: 2_000, headersMs: 0 },
  long: { text: "Some words that differ a little from draft to draft. ".repeat(2_000) },
  flood: { raw: flood(), headers: { "content-type": "text/event-stream" } },
};

/** A stream of 8 MB. Written once, because the neighbour's calls would wait while this process writes it. */
function flood(): Buffer {
  const { before, text, after } = WIRES.openai.frames(Array(4_000).fill("word ".repeat(400)), {});
  return Buffer.from([...before, ...text, ...after].join(""));
}

function replyTo({ body, streamed }: VendorCall): Reply {
  // A long run must not keep all bodies.
  vendor.calls.length = closing.calls.length = 0;
  const [, word = ""] = /\[(\w+)\]/.exec(body.slice(0, 4_096)) ?? [];
  return REPLIES[word] ?? (streamed ? { text: TOKENS, betweenMs: 10 } : { text: ANSWER });
}

const vendor = await startVendor("openai", replyTo);
/** Closes each connection after its answer. */
const closing = await startVendor("openai", (call) => ({ ...replyTo(call), headers: { connection: "close" } }));

answer({
  address: () => vendor.env,
  closingAddress: () => ({ ...closing.env, OPENAI_BASE_URL: closing.url.replace("127.0.0.1", "localhost") }),
});
