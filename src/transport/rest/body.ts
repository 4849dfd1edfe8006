import type { IncomingMessage } from "node:http";
import { Failure } from "../../contract/failure.ts";
import { CallerGone } from "../../service/request-context.ts";
import { Blocks } from "../call/blocks.ts";
import { checkStatedLength, meterBody } from "../call/body-bounds.ts";
import { type BodyBudget, type BodyHold, type BodySender, MAX_BODY } from "../call/body-budget.ts";
import { createJsonCounter } from "../call/value-count.ts";

export interface Body {
  blocks: Blocks;
  /** The body's memory. Release it when the request has ended. */
  hold: Pick<BodyHold, "release">;
}

/**
 * Checks the headers that describe a body: size, then type.
 * @throws Failure request_too_large, unsupported_compression or unsupported_media_type
 */
export function checkBodyHeaders({ headers }: IncomingMessage): void {
  checkStatedLength(headers["content-length"], MAX_BODY);
  // What most callers send.
  if (headers["content-type"] === "application/json" && headers["content-encoding"] === undefined) return;
  const [type = "", ...parameters] = (headers["content-type"] ?? "").toLowerCase().split(";");
  const charset = parameters.map((text) => text.trim()).find((text) => text.startsWith("charset="));
  const encoding = (headers["content-encoding"] ?? "identity").toLowerCase();
  if (encoding !== "identity") throw new Failure("unsupported_compression");
  if (type.trim() !== "application/json" || (charset && !/^charset="?utf-8"?$/.test(charset)))
    throw new Failure("unsupported_media_type");
}

/**
 * Reads a JSON body within the bounds of size, values, memory and time.
 * @param proceed called once the stated length is accepted, before the first byte is read
 * @param maxBytes largest body
 * @throws Failure request_too_large, request_incomplete or overloaded; CallerGone when the connection ends first
 */
export function readBody(
  request: IncomingMessage,
  budget: BodyBudget,
  sender: BodySender,
  proceed: () => void,
  maxBytes: number = MAX_BODY,
): Promise<Body> {
  return new Promise((resolve, reject) => {
    const blocks = new Blocks();
    const stop = () => {
      request.off("data", onData).off("end", onEnd).off("close", onClose);
      meter.end();
    };
    const fail = (error: unknown) => {
      stop();
      request.pause();
      hold.release();
      reject(error);
    };
    const hold = budget.open(sender, fail);
    const meter = meterBody(request, { hold, maxBytes, count: createJsonCounter() });
    const onData = (chunk: Buffer) => {
      try {
        meter.add(chunk);
        blocks.add(chunk);
      } catch (error) {
        fail(error);
      }
    };
    const onEnd = () => {
      try {
        meter.checkValues();
        stop();
        hold.complete();
        resolve({ blocks, hold });
      } catch (error) {
        fail(error);
      }
    };
    const onClose = () => fail(new CallerGone());
    // The connection may have ended during authentication. Then no further event arrives.
    if (request.destroyed) return onClose();
    try {
      meter.start();
    } catch (error) {
      return fail(error);
    }
    proceed();
    request.on("data", onData).on("end", onEnd).on("close", onClose);
  });
}
