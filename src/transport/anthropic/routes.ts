import type { Message } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import type { GenerateRequest, GenerateResponse } from "../../../gen/chorus/v1/generation_pb.js";
import {
  type ListMessageModelsRequest,
  MessagesService,
  MessageTokensSchema,
} from "../../../gen/chorus/v1/messages_pb.js";
import { invalid } from "../../contract/failure.ts";
import type { ReadRequest } from "../../generate/read-request.ts";
import type { Authenticate } from "../call/authenticate.ts";
import type { Call, Format, Run } from "../call/call.ts";
import { renameField } from "../call/field-names.ts";
import { answerForeign, type Foreign } from "../call/foreign.ts";
import type { Decoded } from "../call/format.ts";
import { jsonReply } from "../call/json-reply.ts";
import { findModel } from "../call/model-names.ts";
import { noticeHeader } from "../call/notices.ts";
import { anthropicRateHeaders } from "../call/rate-headers.ts";
import type { Services } from "../call/services.ts";
import { foreignRoutes, type HttpRoute, REST } from "../rest/routes.ts";
import { decodeMessages, type MessageTerms } from "./decode.ts";
import { messageJson } from "./encode.ts";
import { anthropicFailure } from "./failure.ts";
import { listModels, MODELS } from "./models.ts";
import { MessageEvents } from "./stream.ts";

/** Anthropic's JSON and server-sent events. */
export const ANTHROPIC: Format = {
  ...REST,
  form: { name: "anthropic", isWrapped: false },
  decode: decodeMessages,
  // Anthropic's clients show this one.
  headers: ({ requestId }) => ["request-id", requestId],
  rateHeaders: anthropicRateHeaders,
  failure: anthropicFailure,
};

/** The same generation as over REST, with requests and answers in the format of Anthropic's Messages API. */
export function anthropicRoutes({ generation }: Pick<Services, "generation">, authenticate: Authenticate): HttpRoute[] {
  const runs: Record<string, Run> = {
    createMessage(decoded, call) {
      if (!(decoded.terms as MessageTerms).isSized) throw invalid("max_tokens", "max_tokens is required. Add it.");
      return answerForeign(generation, decoded, call, messageFormat);
    },
    countMessageTokens: (decoded, call) => countTokens(generation, decoded, call),
    listMessageModels: async ({ request }) => listModels(request as ListMessageModelsRequest),
    getMessageModel: async (_, { path }) => findModel(MODELS, path),
  };
  return foreignRoutes(MessagesService, runs, { format: ANTHROPIC, authenticate });
}

async function countTokens(
  generation: Services["generation"],
  { request, terms }: Decoded<Message | ReadRequest>,
  call: Call,
): Promise<Message> {
  const { names } = terms as MessageTerms;
  call.format = { ...ANTHROPIC, failure: (failure, of) => anthropicFailure(renameField(failure, names), of) };
  const context = { ...call.context(), isForeign: true };
  const inputTokens = await generation.countTokens(request as GenerateRequest | ReadRequest, context);
  return create(MessageTokensSchema, { inputTokens });
}

/** How the answer to a request is written, and the failures that name its members. */
function messageFormat(foreign: Foreign): Format {
  const { terms, context } = foreign;
  context.namesStop = true;
  return {
    ...ANTHROPIC,
    reply(_, message) {
      const answer = message as GenerateResponse;
      return jsonReply(200, messageJson(answer, terms), noticeHeader(answer.notices));
    },
    events: () => new MessageEvents(foreign, noticeHeader(context.notices)),
    failure: (failure, call) => anthropicFailure(renameField(failure, terms.names), call),
  };
}
