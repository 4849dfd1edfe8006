import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ChatCompletionSchema, type ChatUsage, ChatUsageSchema } from "../../../gen/chorus/v1/chat_pb.js";
import {
  type FinishReason,
  FinishReasonSchema,
  type GenerateResponse,
  type Notice,
  NoticeSchema,
  Role,
  type Usage,
} from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../contract/json-names.ts";
import { notice } from "../../service/notices.ts";
import { encode } from "../rest/encode.ts";
import { COMMENT, type EventFormat } from "../rest/sse.ts";
import type { ChatTerms } from "./decode.ts";
import { openaiFailureJson } from "./failure.ts";
import { withParameter } from "./parameters.ts";

/** The part of an answer that both kinds of response have. */
interface Ended {
  finishReason: FinishReason;
  usage?: Usage | undefined;
  notices: Notice[];
  structuredError?: string | undefined;
}

/** The text of an answer: in the JSON modes only the object, if there is one. */
export function contentOf({ answer, structured = "null" }: GenerateResponse): string {
  return structured === "null" ? answer : structured;
}

/** An answer in one piece, as JSON text. */
export function completionJson(answer: GenerateResponse, { model }: ChatTerms): string {
  const message = { role: Role.ASSISTANT, content: contentOf(answer) };
  const completion: MessageInitShape<typeof ChatCompletionSchema> = {
    id: answer.id,
    object: "chat.completion",
    created: now(),
    model,
    choices: [{ message, finishReason: answer.finishReason }],
    usage: usageOf(answer),
    notices: noticesOf(answer),
  };
  return encode(ChatCompletionSchema, create(ChatCompletionSchema, completion));
}

/**
 * Writes the events of an answer as `ChatCompletionChunk`s. The text is written by hand, because encoding a message for
 * each piece takes several times as long.
 * @param id returns the identifier of the generation, which is known with the first event
 */
export function createChunks(chat: ChatTerms, id: () => string): EventFormat {
  const { model, includeUsage } = chat;
  let head = "";
  let role = '"role":"assistant",';
  const chunk = (members: string) => {
    head ||=
      `data: {"id":${JSON.stringify(id())},"object":"chat.completion.chunk","created":${now()},` +
      `"model":${JSON.stringify(model)},`;
    return `${head}${members}}\n\n`;
  };
  const choice = (delta: string, finish: string) =>
    `"choices":[{"index":0,"delta":{${delta}},"logprobs":null,"finish_reason":${finish}}]`;
  const last = (end: Ended) => {
    const finish = JSON.stringify(wordOf(FinishReasonSchema, end.finishReason));
    const notices = noticesOf(end).map((one) => encode(NoticeSchema, one));
    const usage = includeUsage ? chunk(`"choices":[],"usage":${encode(ChatUsageSchema, usageOf(end))}`) : "";
    return `${chunk(`${choice("", finish)},"notices":[${notices.join(",")}]`)}${usage}data: [DONE]\n\n`;
  };
  return {
    event(event) {
      switch (event.type) {
        case "open":
          return COMMENT;
        case "trace":
          return "";
        case "delta": {
          const text = chunk(choice(`${role}"content":${JSON.stringify(event.text)}`, "null"));
          role = "";
          return text;
        }
        case "done":
          return last(event.done);
      }
    },
    failure: (failure) => `data: ${openaiFailureJson(withParameter(failure, chat))}\n\n`,
  };
}

function now(): bigint {
  return BigInt(Math.floor(Date.now() / 1_000));
}

function usageOf({ usage }: Ended): ChatUsage {
  const { inputTokens = 0, outputTokens = 0, cachedTokens = 0, credits = 0 } = usage ?? {};
  return create(ChatUsageSchema, {
    promptTokens: inputTokens,
    completionTokens: outputTokens,
    totalTokens: inputTokens + outputTokens,
    promptTokensDetails: { cachedTokens },
    credits,
  });
}

/** In OpenAI's format, an answer that should be JSON and is not has no other place for the reason. */
function noticesOf({ notices, structuredError }: Ended): Notice[] {
  return structuredError === undefined ? notices : [...notices, notice("structured_error", structuredError)];
}
