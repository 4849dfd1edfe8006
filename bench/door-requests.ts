import { type Http1Request, http1Target } from "./http1.ts";
import type { Target } from "./load.ts";
import { checkAnswer, chunks, completion, dataLines, deltas, type Shape, scriptOf } from "./requests.ts";

/** The formats of whole answers, the native one first. */
export const DOORS = ["REST", "Chat Completions", "Responses", "Messages"] as const;
export type Door = (typeof DOORS)[number];

/** How a door is asked, and where its answer has the text. */
interface Asked {
  path(isStream: boolean): string;
  body(prompt: string, isStream: boolean): object;
  /** The tools, as the members of a body. */
  tools: object;
  /** Text in the last bytes of a whole answer, and of a stream. */
  endings: [whole: string, stream: string];
  whole(body: Buffer): string;
  streamed(body: Buffer): string;
}

/** As usual agents have them: some that read, and one that writes. */
const TOOLS = ["read_file", "list_folder", "search_text", "write_file"].map((name) => ({
  name,
  description: `Does with the files of the project what its name says: ${name.replace("_", " ")}.`,
  schema: {
    type: "object",
    properties: {
      path: { type: "string", description: "Where, from the root of the project." },
      lines: { type: "array", items: { type: "integer" }, description: "The lines, all if absent." },
      mode: { type: "string", enum: ["exact", "pattern"] },
    },
    required: ["path"],
    additionalProperties: false,
  },
}));

/** A name that a program has for another service, as most of those have that come through these doors. */
const OTHER_MODEL = "gpt-5.1";

const ASKED: Readonly<Record<Door, Asked>> = {
  REST: {
    path: (isStream) => (isStream ? "/v1/generate:stream" : "/v1/generate"),
    body: (prompt) => ({ messages: [{ role: "user", content: prompt }] }),
    tools: { tools: TOOLS.map(({ schema, ...tool }) => ({ ...tool, parameters: schema })) },
    endings: ['"finish_reason":"stop"', "event: done"],
    whole: (body) => JSON.parse(body.toString()).answer,
    streamed: deltas,
  },
  "Chat Completions": {
    path: () => "/v1/chat/completions",
    body: (prompt, stream) => ({ model: OTHER_MODEL, messages: [{ role: "user", content: prompt }], stream }),
    tools: {
      tools: TOOLS.map(({ schema, ...tool }) => ({ type: "function", function: { ...tool, parameters: schema } })),
    },
    endings: ['"finish_reason":"stop"', "data: [DONE]"],
    whole: completion,
    streamed: chunks,
  },
  Responses: {
    path: () => "/v1/responses",
    body: (prompt, stream) => ({
      model: OTHER_MODEL,
      input: [{ role: "user", content: prompt }],
      store: false,
      stream,
    }),
    tools: { tools: TOOLS.map(({ schema, ...tool }) => ({ type: "function", ...tool, parameters: schema })) },
    endings: ['"status":"completed"', '"type":"response.completed"'],
    whole: (body) => JSON.parse(body.toString()).output[0].content[0].text,
    streamed: (body) => textOf(body, "response.output_text.delta", ({ delta }) => delta),
  },
  Messages: {
    path: () => "/v1/messages",
    body: (prompt, stream) => ({
      ...{ model: OTHER_MODEL, max_tokens: 4_096, stream },
      messages: [{ role: "user", content: prompt }],
    }),
    tools: { tools: TOOLS.map(({ schema, ...tool }) => ({ ...tool, input_schema: schema })) },
    endings: ['"stop_reason":"end_turn"', "event: message_stop"],
    whole: (body) => JSON.parse(body.toString()).content[0].text,
    streamed: (body) => textOf(body, "content_block_delta", ({ delta }) => delta.text),
  },
};

/**
 * The same question through a door.
 * @param hasTools whether the request offers tools, of which the answer uses none
 */
export function doorTarget(port: number, door: Door, shape: Shape, apiKey: string, hasTools: boolean): Target {
  const { path, body, tools, endings, whole, streamed } = ASKED[door];
  const isStream = shape !== "unary";
  const request: Http1Request = {
    port,
    path: path(isStream),
    headers: { "X-API-Key": apiKey },
    body: JSON.stringify({ ...body(scriptOf(shape).prompt, isStream), ...(hasTools ? tools : {}) }),
    ending: endings[isStream ? 1 : 0],
    check: checkAnswer(shape, isStream ? streamed : whole),
  };
  return http1Target(request);
}

/** The text of the events of a type, joined. */
function textOf(body: Buffer, type: string, read: (event: { delta: { text: string } & string }) => string): string {
  const events = dataLines(body).map((data) => JSON.parse(data));
  return events
    .filter((event) => event.type === type)
    .map(read)
    .join("");
}
