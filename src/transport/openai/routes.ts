import { ChatService } from "../../../gen/chorus/v1/chat_pb.js";
import type { GenerateResponse } from "../../../gen/chorus/v1/generation_pb.js";
import type { Authenticate } from "../call/authenticate.ts";
import type { Format, Run } from "../call/call.ts";
import { renameField } from "../call/field-names.ts";
import { answerForeign, type Foreign } from "../call/foreign.ts";
import { jsonReply } from "../call/json-reply.ts";
import { findModel } from "../call/model-names.ts";
import { noticeHeader } from "../call/notices.ts";
import { openaiRateHeaders } from "../call/rate-headers.ts";
import type { Services } from "../call/services.ts";
import { foreignRoutes, type HttpRoute, REST } from "../rest/routes.ts";
import { type ChatTerms, decodeChat } from "./decode.ts";
import { completionJson } from "./encode.ts";
import { openaiFailure } from "./failure.ts";
import { MODEL_LIST, MODELS } from "./models.ts";
import { streamOfChunks } from "./stream.ts";

/** OpenAI's JSON and server-sent events. */
export const OPENAI: Format = {
  ...REST,
  form: { name: "openai", isWrapped: false },
  decode: decodeChat,
  rateHeaders: openaiRateHeaders,
  failure: openaiFailure,
};

/** The same generation as over REST, with requests and answers in the format of OpenAI's Chat Completions. */
export function openaiRoutes({ generation }: Pick<Services, "generation">, authenticate: Authenticate): HttpRoute[] {
  const runs: Record<string, Run> = {
    createChatCompletion: (decoded, call) => answerForeign(generation, decoded, call, chatFormat),
    listModels: async () => MODEL_LIST,
    getModel: async (_, { path }) => findModel(MODELS, path),
  };
  return foreignRoutes(ChatService, runs, { format: OPENAI, authenticate });
}

/** How the answer to a request is written, and the failures that name its members. */
function chatFormat({ terms, context, id }: Foreign): Format {
  const chat = terms as ChatTerms;
  const headers = noticeHeader(context.notices);
  return {
    ...OPENAI,
    headers: () => headers,
    reply: (_, message) => jsonReply(200, completionJson(message as GenerateResponse, chat)),
    events: () => streamOfChunks(chat, id),
    failure: (failure) => openaiFailure(renameField(failure, chat.names)),
  };
}
