import { renameField } from "../call/field-names.ts";
import { noticesJson } from "../call/foreign.ts";
import { COMMENT, type EventFormat, SSE_HEADERS } from "../call/format.ts";
import type { ChatTerms } from "./decode.ts";
import { callOf, type Ended, finishJson, now, usageJson } from "./encode.ts";
import { openaiFailureJson } from "./failure.ts";

/**
 * Writes the events of an answer as `ChatCompletionChunk`s. The text is written by hand, because encoding a message for
 * each piece takes several times as long.
 * @param id returns the identifier of the generation, which is known with the first event
 */
export function streamOfChunks(chat: ChatTerms, id: () => string): EventFormat {
  const { model, includeUsage, custom } = chat;
  let head = "";
  let role = '"role":"assistant",';
  const chunk = (members: string) => {
    head ||=
      `data: {"id":${JSON.stringify(id())},"object":"chat.completion.chunk","created":${now()},` +
      `"model":${JSON.stringify(model)},`;
    return `${head}${members}}\n\n`;
  };
  const noUsage = includeUsage ? ',"usage":null' : "";
  const choice = (delta: string, finish: string) =>
    `"choices":[{"index":0,"delta":{${delta}},"logprobs":null,"finish_reason":${finish}}]${noUsage}`;
  const last = (end: Ended) => {
    const usage = includeUsage ? chunk(`"choices":[],"usage":${usageJson(end)}`) : "";
    // Clients need the role, also of an answer without text and calls.
    const delta = role === "" ? "" : `${role}"content":""`;
    return `${chunk(`${choice(delta, finishJson(end))},"notices":${noticesJson(end)}`)}${usage}data: [DONE]\n\n`;
  };
  return {
    headers: SSE_HEADERS,
    comment: COMMENT,
    event(event) {
      switch (event.type) {
        case "open":
          return COMMENT;
        case "trace":
          return "";
        case "tool_call": {
          const call = JSON.stringify({ index: event.call.index, ...callOf(event.call, custom) });
          const piece = chunk(choice(`${role}"tool_calls":[${call}]`, "null"));
          role = "";
          return piece;
        }
        case "delta": {
          const text = chunk(choice(`${role}"content":${JSON.stringify(event.text)}`, "null"));
          role = "";
          return text;
        }
        case "done":
          return last(event.done);
      }
    },
    end: (_, failure) => ({
      body: failure ? `data: ${openaiFailureJson(renameField(failure, chat.names))}\n\n` : "",
    }),
  };
}
