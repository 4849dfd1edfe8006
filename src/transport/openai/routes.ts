import type { Message } from "@bufbuild/protobuf";
import { ChatService } from "../../../gen/chorus/v1/chat_pb.js";
import type { GenerateRequest, GenerateResponse } from "../../../gen/chorus/v1/generation_pb.js";
import { notice } from "../../generate/notices.ts";
import type { ReadRequest } from "../../generate/read-request.ts";
import type { GenerateEvent, RequestContext } from "../../generate/request-context.ts";
import { replay } from "../../generate/response.ts";
import type { Authenticate } from "../call/authenticate.ts";
import type { Call, Format, Outcome, Run } from "../call/call.ts";
import type { Decoded } from "../call/format.ts";
import { jsonReply } from "../call/json-reply.ts";
import { methodsOf } from "../call/methods.ts";
import type { Services } from "../call/services.ts";
import { encode } from "../rest/encode.ts";
import { type HttpRoute, httpRoute, REST } from "../rest/routes.ts";
import { type ChatTerms, decodeChat } from "./decode.ts";
import { completionJson, contentOf } from "./encode.ts";
import { openaiFailure } from "./failure.ts";
import { findModel, MODEL_LIST } from "./models.ts";
import { withParameter } from "./parameters.ts";
import { streamOfChunks } from "./stream.ts";

const OTHER_MODEL = notice(
  "unknown_model",
  "The service chooses the models. The name in model was taken as chorus.",
  "model",
);

/** OpenAI's JSON and server-sent events. */
export const OPENAI: Format = {
  ...REST,
  form: { name: "openai", isWrapped: false },
  decode: decodeChat,
  reply: ({ desc }, message) => jsonReply(200, encode(desc.output, message)),
  failure: openaiFailure,
};

/** The same generation as over REST, with requests and answers in the format of OpenAI's Chat Completions. */
export function openaiRoutes({ generation }: Pick<Services, "generation">, authenticate: Authenticate): HttpRoute[] {
  const chat: Run = (decoded, call) => completeChat(generation, decoded, call);
  const runs = {
    createChatCompletion: chat,
    listModels: async () => MODEL_LIST,
    getModel: async (_, { path }) => findModel(path),
  } satisfies Record<string, Run>;
  // `StreamChatCompletion` describes the stream of the same path.
  const unary = methodsOf([ChatService]).filter(({ desc }) => desc.methodKind === "unary");
  return unary.map((method) => {
    const run: Run = runs[method.desc.localName as keyof typeof runs];
    return { ...httpRoute(method.desc), transport: "rest", method, format: OPENAI, authenticate, run };
  });
}

function completeChat(
  generation: Services["generation"],
  decoded: Decoded<Message | ReadRequest>,
  call: Call,
): Outcome {
  const request = decoded.request as GenerateRequest | ReadRequest;
  const chat = decoded.terms as ChatTerms;
  let wholeId = "";
  call.format = chatFormat(chat, () => wholeId || (call.facts.generationId ?? ""));
  const context = call.context();
  if (chat.isOtherModel) {
    context.notices.push(OTHER_MODEL);
    call.response.setHeader("X-Chorus-Notice", `${OTHER_MODEL.code}: ${OTHER_MODEL.message}`);
  }
  if (!chat.isStream) return generation.generateWhole(request, context);
  if (chat.streamed) return generation.generate(request, context, true);
  // JSON is sent when it is complete, because only then it is checked.
  const whole = generation.generateWhole(request, context);
  return eventsOf(whole, context, ({ id }) => {
    wholeId = id;
  });
}

/** @param known called with the answer before its first event */
async function* eventsOf(
  answer: Promise<GenerateResponse>,
  context: RequestContext,
  known: (whole: GenerateResponse) => void,
): AsyncGenerator<GenerateEvent> {
  const whole = await answer;
  known(whole);
  yield* replay({ ...whole, answer: contentOf(whole) }, context);
}

/** How the answer to a request is written, and the failures that name its fields. */
function chatFormat(chat: ChatTerms, id: () => string): Format {
  return {
    ...OPENAI,
    reply: (_, message) => jsonReply(200, completionJson(message as GenerateResponse, chat)),
    events: () => streamOfChunks(chat, id),
    failure: (failure) => openaiFailure(withParameter(failure, chat)),
  };
}
