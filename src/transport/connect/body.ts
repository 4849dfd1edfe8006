import type { Message } from "@bufbuild/protobuf";
import { GenerateRequestSchema } from "../../../gen/chorus/v1/generation_pb.js";
import type { ReadRequest } from "../../service/read-request.ts";
import { CallerGone } from "../../service/request-context.ts";
import { Blocks } from "../call/blocks.ts";
import { meterBody, tooLarge } from "../call/body-bounds.ts";
import type { BodyBudget } from "../call/body-budget.ts";
import { expectsContinue } from "../call/check-head.ts";
import { MAX_INLINE, type RequestReader } from "../call/request-reader.ts";
import { senderOf } from "../call/tracked-request.ts";
import { createValueCounter, prefixLength } from "../call/value-count.ts";
import type { Call } from "./call.ts";
import { parseMessage, unwrap } from "./decode.ts";
import { readLarge } from "./large-body.ts";
import type { Method } from "./method.ts";
import type { Exchange } from "./response.ts";
import type { Wire } from "./wire.ts";

/** What reading needs besides the call. */
export interface Bodies {
  readonly budget: BodyBudget;
  readonly reader: RequestReader;
}

/**
 * Reads the request of a unary or server-streaming method. A large prompt is read in a thread.
 * @throws Failure; CallerGone when the caller leaves or the deadline passes
 */
export async function readRequest(
  exchange: Exchange,
  call: Call,
  method: Method,
  wire: Wire,
  { budget, reader }: Bodies,
): Promise<Message | ReadRequest> {
  const blocks = await readBody(exchange, call, method, wire, budget);
  const { input } = method.desc;
  if (blocks.size > MAX_INLINE && input === GenerateRequestSchema) return readLarge(blocks, call, wire, reader);
  const body = blocks.join();
  return parseMessage(
    input,
    wire.enveloped ? unwrap(body) : body,
    wire.json,
    method.noticesUnknown ? call.unknown : undefined,
  );
}

/**
 * Reads a body within the bounds of size, values, memory and time. The memory belongs to the request until its response
 * closes.
 * @throws Failure request_too_large, overloaded or request_incomplete; CallerGone when the caller leaves or the
 *   deadline passes
 */
function readBody(
  { request, response, signal }: Exchange,
  { identity }: Call,
  { maxBytes, desc }: Method,
  wire: Wire,
  budget: BodyBudget,
): Promise<Blocks> {
  const count = createValueCounter(desc.input, wire.contentType, (length) => {
    if (length > maxBytes) throw tooLarge(maxBytes);
  });
  const prefixBytes = prefixLength(wire.contentType);
  return new Promise((resolve, reject) => {
    const blocks = new Blocks();
    const stop = () => {
      request.off("data", onData).off("end", onEnd);
      meter.end();
      signal.removeEventListener("abort", onAbort);
    };
    const fail = (error: unknown) => {
      stop();
      request.pause();
      hold.release();
      reject(error);
    };
    const hold = budget.open(senderOf(identity), fail);
    const meter = meterBody(request, { hold, maxBytes, prefixBytes, count });
    const onAbort = () => fail(new CallerGone());
    const onData = (chunk: Buffer) => {
      try {
        meter.add(chunk);
        meter.checkValues();
        blocks.add(chunk);
      } catch (error) {
        fail(error);
      }
    };
    const onEnd = () => {
      stop();
      hold.complete();
      resolve(blocks);
    };
    if (signal.aborted) return onAbort();
    try {
      meter.start();
    } catch (error) {
      return fail(error);
    }
    response.once("close", () => hold.release());
    if (expectsContinue(request)) response.writeContinue();
    signal.addEventListener("abort", onAbort);
    request.on("data", onData).on("end", onEnd);
  });
}
