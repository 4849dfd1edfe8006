import { GenerateResponseSchema, type Notice } from "../../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../../accounts/keys.ts";
import type { Config } from "../../config/config.ts";
import type { Failure } from "../../failure.ts";
import { notice } from "../../service/notices.ts";
import { CallerGone } from "../../service/request-context.ts";
import type { Services } from "../../service/services.ts";
import type { BodyBudget } from "../body-budget.ts";
import { decodeRequest } from "../decode-request.ts";
import { failureJson } from "../failure-body.ts";
import { MAX_INLINE, type RequestReader } from "../request-reader.ts";
import { contextOf } from "../tracked-request.ts";
import { checkBodyHeaders, readBody } from "./body.ts";
import { encode } from "./encode.ts";
import type { Exchange } from "./handler.ts";
import { sendJson } from "./json-response.ts";
import { writeEvents } from "./sse.ts";

interface Parts {
  readonly services: Pick<Services, "generation">;
  readonly stream: Config["stream"];
  readonly budget: BodyBudget;
  readonly reader: RequestReader;
}

/** Serves `POST /v1/generate`, or `POST /v1/generate:stream` when `streamed`. */
export async function generate(parts: Parts, exchange: Exchange, caller: Caller, streamed: boolean): Promise<void> {
  const { services, stream } = parts;
  const { request, closed } = exchange;
  checkBodyHeaders(request);
  // The answer to a repeated request is free of limits.
  if (streamed || request.headers["idempotency-key"] === undefined) await services.generation.precheck(caller);
  const { received, notices, hold } = await receive(parts, exchange, caller, streamed);
  try {
    // Node joins repeated headers with a comma and a space, which are not valid in a key.
    const idempotencyKey = request.headers["idempotency-key"]?.toString();
    const context = contextOf(exchange, caller, closed, idempotencyKey, notices);
    if (streamed) {
      const failureText = (failure: Failure) => {
        exchange.streamFailure = failure;
        return failureJson(failure, exchange.requestId);
      };
      await writeEvents(exchange, services.generation.generate(received, context, true), {
        ...stream,
        failureText,
      });
    } else {
      const answer = await services.generation.generateWhole(received, context);
      sendJson(exchange, 200, encode(GenerateResponseSchema, answer));
    }
  } finally {
    hold.release();
  }
}

async function receive({ budget, reader }: Parts, exchange: Exchange, caller: Caller, streamed: boolean) {
  const { request, response, expectsContinue, closed } = exchange;
  const proceed = () => expectsContinue && response.writeContinue();
  const { blocks, hold } = await readBody(request, budget, caller, proceed);
  try {
    const isRepeatable = !streamed && request.headers["idempotency-key"] !== undefined;
    const source = { owner: caller.workspaceId, signal: closed, streamed, isRepeatable };
    const {
      request: received,
      unknown,
      more,
    } = blocks.size <= MAX_INLINE
      ? decodeRequest(blocks.join(), "rest")
      : await reader.read(blocks, { format: "rest", isWrapped: false, ...source });
    return { received, notices: unknownFieldNotices(unknown, more), hold };
  } catch (error) {
    hold.release();
    throw closed.aborted ? new CallerGone() : error;
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
