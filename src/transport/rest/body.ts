import type { IncomingMessage } from "node:http";
import { Failure } from "../../failure.ts";
import { CallerGone } from "../../service/request-context.ts";
import { Blocks } from "../blocks.ts";
import { type BodyBudget, checkStatedLength, MAX_BODY, meterBody } from "../body-bounds.ts";
import { createJsonCounter } from "../value-count.ts";

export interface Body {
  blocks: Blocks;
  /** Gives the body's memory back to the budget. Call it when the request has ended. */
  release(): void;
}

/**
 * Checks the headers that describe a body: size, then type.
 * @throws Failure request_too_large or unsupported_media_type
 */
export function checkBodyHeaders({ headers }: IncomingMessage): void {
  checkStatedLength(headers["content-length"], MAX_BODY);
  const [type = "", ...parameters] = (headers["content-type"] ?? "").toLowerCase().split(";");
  const charset = parameters.map((text) => text.trim()).find((text) => text.startsWith("charset="));
  const encoding = (headers["content-encoding"] ?? "identity").toLowerCase();
  if (
    type.trim() !== "application/json" ||
    encoding !== "identity" ||
    (charset && !/^charset="?utf-8"?$/.test(charset))
  ) {
    throw new Failure("unsupported_media_type");
  }
}

/**
 * Reads a JSON body within the bounds of size, values and memory.
 * @param proceed called once the body has memory, before its first byte is read
 * @param maxBytes largest body
 * @throws Failure request_too_large, or overloaded; CallerGone when the connection ends first
 */
export function readBody(
  request: IncomingMessage,
  budget: BodyBudget,
  proceed: () => void,
  maxBytes: number = MAX_BODY,
): Promise<Body> {
  return new Promise((resolve, reject) => {
    const meter = meterBody(request.headers, { budget, maxBytes, count: createJsonCounter() });
    const blocks = new Blocks();
    const stop = () => request.off("data", onData).off("end", onEnd).off("close", onClose);
    const fail = (error: unknown) => {
      stop();
      request.pause();
      meter.release();
      reject(error);
    };
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
        resolve({ blocks, release: meter.release });
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
