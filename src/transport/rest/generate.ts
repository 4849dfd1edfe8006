import { GenerateRequestSchema, GenerateResponseSchema, type Notice } from "../../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../../accounts/keys.ts";
import type { Config } from "../../config/config.ts";
import type { Failure } from "../../failure.ts";
import { notice } from "../../service/notices.ts";
import type { Services } from "../../service/services.ts";
import type { BodyBudget } from "../body-bounds.ts";
import { failureJson } from "../failure-body.ts";
import { contextOf } from "../tracked-request.ts";
import { checkBodyHeaders, parseBody, readBody } from "./body.ts";
import { decode } from "./decode.ts";
import { encode } from "./encode.ts";
import type { Exchange } from "./handler.ts";
import { sendJson } from "./json-response.ts";
import { writeEvents } from "./sse.ts";
import { endIfStalled } from "./stall.ts";

interface Parts {
  readonly services: Pick<Services, "generation">;
  readonly stream: Config["stream"];
  readonly budget: BodyBudget;
}

/** Serves `POST /v1/generate`, or `POST /v1/generate:stream` when `streamed`. */
export async function generate(
  { services, stream, budget }: Parts,
  exchange: Exchange,
  caller: Caller,
  streamed: boolean,
): Promise<void> {
  const { request, response, closed } = exchange;
  const { message, notices, release } = await receive(exchange, budget);
  try {
    // Node joins repeated headers with a comma and a space, which are not valid in a key.
    const idempotencyKey = request.headers["idempotency-key"]?.toString();
    const context = contextOf(exchange, caller, closed, idempotencyKey, notices);
    if (streamed) {
      const failureText = (failure: Failure) => {
        exchange.streamFailure = failure;
        return failureJson(failure, exchange.requestId);
      };
      await writeEvents(response, services.generation.generate(message, context, true), {
        ...stream,
        closed,
        failureText,
      });
    } else {
      const answer = await services.generation.generateWhole(message, context);
      sendJson(response, 200, encode(GenerateResponseSchema, answer));
      endIfStalled(response, stream.stallMs);
    }
  } finally {
    release();
  }
}

/** Reads the request. The text of the body becomes garbage here, before the answer is generated. */
async function receive({ request, response, expectsContinue }: Exchange, budget: BodyBudget) {
  checkBodyHeaders(request);
  const { text, release } = await readBody(request, budget, () => expectsContinue && response.writeContinue());
  try {
    const { message, unknown, more } = decode(GenerateRequestSchema, text, parseBody(text));
    return { message, notices: unknownFieldNotices(unknown, more), release };
  } catch (error) {
    release();
    throw error;
  }
}

/** @param more number of unknown fields beyond those in `fields` */
function unknownFieldNotices(fields: readonly string[], more: number): Notice[] {
  const notices = fields.map((field) =>
    notice("unknown_field", `${field} is not a field of this request. It was ignored.`, field),
  );
  if (more > 0)
    notices.push(notice("unknown_field", `${more} more members are no fields of this request, and were ignored.`));
  return notices;
}
