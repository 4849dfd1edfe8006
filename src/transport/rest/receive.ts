import type { Caller } from "../../accounts/keys.ts";
import { CallerGone, type RequestContext } from "../../service/request-context.ts";
import type { Services } from "../../service/services.ts";
import type { BodyBudget } from "../body-budget.ts";
import { type DecodedRequest, decodeRequest } from "../decode-request.ts";
import { MAX_INLINE, type RequestReader } from "../request-reader.ts";
import type { Result } from "../request-worker.ts";
import { contextOf } from "../tracked-request.ts";
import { unknownNotices } from "../unknown-members.ts";
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
 * Receives the prompt of a request: checks that the caller may send one now, then reads and decodes the body.
 * @param use answers the request; the body's memory is released afterwards
 * @throws Failure; CallerGone; what `use` throws
 */
export async function receive(
  parts: ReceiveParts,
  exchange: Exchange,
  caller: Caller,
  form: Form,
  use: (received: Received) => Promise<void>,
): Promise<void> {
  const { request } = exchange;
  checkBodyHeaders(request);
  // Node joins repeated headers with a comma and a space, which are not valid in a key.
  const idempotencyKey = request.headers["idempotency-key"]?.toString();
  const isRepeatable = !form.streamed && idempotencyKey !== undefined;
  // The answer to a repeated request is free of limits.
  const checked = isRepeatable ? undefined : parts.services.generation.precheck(caller);
  if (checked) await checked;
  const { decoded, hold } = await read(parts, exchange, caller, form, isRepeatable);
  try {
    const notices = unknownNotices(decoded);
    const context = contextOf(exchange, caller, exchange.closed, idempotencyKey, notices);
    await use({ request: decoded.request, context, ...(decoded.chat ? { chat: decoded.chat } : {}) });
  } finally {
    hold.release();
  }
}

/** A function apart from `receive`, which would keep the bytes of the body until the end of the request. */
async function read(
  { budget, reader }: ReceiveParts,
  { request, response, expectsContinue, closed }: Exchange,
  caller: Caller,
  form: Form,
  isRepeatable: boolean,
) {
  const proceed = () => expectsContinue && response.writeContinue();
  const { blocks, hold } = await readBody(request, budget, caller, proceed);
  try {
    const source = { ...form, isWrapped: false, owner: caller.workspaceId, signal: closed, isRepeatable };
    const decoded =
      blocks.size <= MAX_INLINE ? decodeRequest(blocks.join(), form.format) : await reader.read(blocks, source);
    return { decoded, hold };
  } catch (error) {
    hold.release();
    throw closed.aborted ? new CallerGone() : error;
  }
}
