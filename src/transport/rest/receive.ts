import type { Caller } from "../../admission/authenticate.ts";
import { CallerGone, type RequestContext } from "../../service/request-context.ts";
import type { Services } from "../../service/services.ts";
import type { BodyBudget } from "../call/body-budget.ts";
import { type DecodedRequest, decodeRequest } from "../call/decode-request.ts";
import { MAX_INLINE, type RequestReader } from "../call/request-reader.ts";
import type { Result } from "../call/request-worker.ts";
import { contextOf } from "../call/tracked-request.ts";
import { unknownNotices } from "../call/unknown-members.ts";
import { checkBodyHeaders, readBody } from "./body.ts";
import type { Exchange } from "./handler.ts";

export interface ReceiveParts {
  readonly services: Pick<Services, "generation">;
  readonly budget: BodyBudget;
  readonly reader: RequestReader;
}

/** How a body is written and answered. */
interface Form {
  readonly format: "rest" | "openai";
  /** Whether the answer is streamed; false where only the body says it. */
  readonly streamed: boolean;
}

interface Received extends Pick<DecodedRequest | Result, "request" | "chat"> {
  readonly context: RequestContext;
}

/**
 * Receives the prompt of a request: checks that the caller may send one now, then reads and decodes the body. The
 * body's memory is released at the end of the exchange.
 * @throws Failure; CallerGone
 */
export async function receive(parts: ReceiveParts, exchange: Exchange, caller: Caller, form: Form): Promise<Received> {
  const { request } = exchange;
  // Node joins repeated headers with a comma and a space, which are not valid in a key.
  const idempotencyKey = request.headers["idempotency-key"]?.toString();
  const isRepeatable = !form.streamed && idempotencyKey !== undefined;
  const entered = parts.services.generation.enter(caller, isRepeatable);
  if (entered) await entered;
  checkBodyHeaders(request);
  const decoded = await read(parts, exchange, caller, form, isRepeatable);
  const context = contextOf(exchange, caller, exchange.closed, idempotencyKey, unknownNotices(decoded));
  return { request: decoded.request, context, ...(decoded.chat ? { chat: decoded.chat } : {}) };
}

async function read(
  { budget, reader }: ReceiveParts,
  exchange: Exchange,
  caller: Caller,
  form: Form,
  isRepeatable: boolean,
) {
  const { request, response, expectsContinue, closed } = exchange;
  const proceed = () => expectsContinue && response.writeContinue();
  const { blocks, hold } = await readBody(request, budget, caller, proceed);
  exchange.hold = hold;
  try {
    if (blocks.size <= MAX_INLINE) return decodeRequest(blocks.join(), form.format);
    const source = { ...form, isWrapped: false, owner: caller.workspaceId, signal: closed, isRepeatable };
    return await reader.read(blocks, source);
  } catch (error) {
    throw closed.aborted ? new CallerGone() : error;
  }
}
