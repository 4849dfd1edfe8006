import type { GenerateRequest } from "../../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../../admission/authenticate.ts";
import { Failure } from "../../contract/failure.ts";
import { notice } from "../../service/notices.ts";
import type { ReadRequest } from "../../service/read-request.ts";
import type { GenerateEvent, RequestContext } from "../../service/request-context.ts";
import { replay } from "../../service/response.ts";
import type { GenerateParts } from "../rest/generate.ts";
import type { Exchange } from "../rest/handler.ts";
import { sendJson } from "../rest/json-response.ts";
import { receive } from "../rest/receive.ts";
import { writeEvents } from "../rest/sse.ts";
import type { ChatTerms } from "./decode.ts";
import { withParameter } from "./parameters.ts";
import { completionJson, contentOf, createChunks } from "./reply.ts";

const OTHER_MODEL = notice(
  "unknown_model",
  "The service chooses the models. The name in model was taken as chorus.",
  "model",
);

/**
 * Serves `POST /v1/chat/completions`: the same generation as `/v1/generate` and `/v1/generate:stream`, with requests
 * and answers in OpenAI's format.
 */
export async function completeChat(parts: GenerateParts, exchange: Exchange, caller: Caller): Promise<void> {
  const form = { format: "openai", streamed: false } as const;
  const { request, context, chat } = await receive(parts, exchange, caller, form);
  if (!chat) throw new Failure("internal");
  if (chat.isOtherModel) {
    context.notices.push(OTHER_MODEL);
    exchange.response.setHeader("X-Chorus-Notice", `${OTHER_MODEL.code}: ${OTHER_MODEL.message}`);
  }
  try {
    await (chat.isStream ? stream : answer)(parts, exchange, request, context, chat);
  } catch (error) {
    throw error instanceof Failure ? withParameter(error, chat) : error;
  }
}

type Reply = (
  parts: GenerateParts,
  exchange: Exchange,
  request: GenerateRequest | ReadRequest,
  context: RequestContext,
  chat: ChatTerms,
) => Promise<void>;

const answer: Reply = async ({ services }, exchange, request, context, chat) => {
  sendJson(exchange, 200, completionJson(await services.generation.generateWhole(request, context), chat));
};

const stream: Reply = async ({ services: { generation }, stream }, exchange, request, context, chat) => {
  let id = "";
  async function* wholeEvents(): AsyncGenerator<GenerateEvent> {
    const whole = await generation.generateWhole(request, context);
    id = whole.id;
    yield* replay({ ...whole, answer: contentOf(whole) }, context);
  }
  const events = chat.streamed ? generation.generate(request, context, true) : wholeEvents();
  // A streamed answer is admitted, and has its identifier, before its first event.
  const format = createChunks(chat, () => id || (exchange.facts.generationId ?? ""));
  await writeEvents(exchange, events, format, stream);
};
