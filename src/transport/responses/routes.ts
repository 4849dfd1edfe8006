import type { GenerateResponse } from "../../../gen/chorus/v1/generation_pb.js";
import { ResponsesService } from "../../../gen/chorus/v1/responses_pb.js";
import type { Authenticate } from "../call/authenticate.ts";
import type { Format, Run } from "../call/call.ts";
import { renameField } from "../call/field-names.ts";
import { answerForeign, type Foreign } from "../call/foreign.ts";
import { jsonReply } from "../call/json-reply.ts";
import { noticeHeader } from "../call/notices.ts";
import type { Services } from "../call/services.ts";
import { openaiFailure } from "../openai/failure.ts";
import { OPENAI } from "../openai/routes.ts";
import { foreignRoutes, type HttpRoute } from "../rest/routes.ts";
import { decodeResponse, type ResponseTerms } from "./decode.ts";
import { wholeJson } from "./encode.ts";
import { ResponseEvents } from "./stream.ts";

const RESPONSES: Format = { ...OPENAI, form: { name: "responses", isWrapped: false }, decode: decodeResponse };

/** The same generation as over REST, with requests and answers in the format of OpenAI's Responses API. */
export function responsesRoutes({ generation }: Pick<Services, "generation">, authenticate: Authenticate): HttpRoute[] {
  const createResponse: Run = (decoded, call) => answerForeign(generation, decoded, call, formatOf);
  return foreignRoutes(ResponsesService, { createResponse }, { format: RESPONSES, authenticate });
}

/** How the answer to a request is written, and the failures that name its parameters. */
function formatOf(foreign: Foreign): Format {
  const terms = foreign.terms as ResponseTerms;
  const headers = noticeHeader(foreign.context.notices);
  return {
    ...RESPONSES,
    headers: () => headers,
    reply: (_, message) => jsonReply(200, wholeJson(message as GenerateResponse, terms)),
    events: () => new ResponseEvents(foreign, terms),
    failure: (failure) => openaiFailure(renameField(failure, terms.names)),
  };
}
