import type { IncomingMessage } from "node:http";
import { TextDecoder } from "node:util";
import { Failure } from "../../failure.ts";
import { CallerGone } from "../../service/request-context.ts";
import { type BodyBudget, checkStatedLength, MAX_BODY, meterBody } from "../body-bounds.ts";
import { createJsonCounter } from "../value-count.ts";

export interface Body {
  text: string;
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
 * Reads a JSON body as UTF-8 text without its byte order mark, within the bounds of size, values and memory. It decodes
 * each chunk as it arrives: decoding a large body at once would block the event loop (docs/decisions/http.md).
 * @param proceed called once the body has memory, before its first byte is read
 * @param maxBytes largest body
 * @throws Failure request_too_large, overloaded or invalid_json; CallerGone when the connection ends first
 */
export function readBody(
  request: IncomingMessage,
  budget: BodyBudget,
  proceed: () => void,
  maxBytes: number = MAX_BODY,
): Promise<Body> {
  return new Promise((resolve, reject) => {
    const utf8 = new TextDecoder("utf-8", { fatal: true });
    const meter = meterBody(request.headers, { budget, maxBytes, count: createJsonCounter() });
    let text = "";
    const stop = () => request.off("data", onData).off("end", onEnd).off("close", onClose);
    const fail = (error: unknown) => {
      stop();
      request.pause();
      meter.release();
      text = "";
      reject(error);
    };
    const onData = (chunk: Buffer) => {
      try {
        meter.add(chunk);
        text += decodeUtf8(utf8, chunk);
      } catch (error) {
        fail(error);
      }
    };
    const onEnd = () => {
      try {
        text += decodeUtf8(utf8);
        meter.checkValues();
        stop();
        resolve({ text, release: meter.release });
        // `release` keeps this scope alive for as long as the request runs.
        text = "";
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

/** Decodes the next chunk, or ends the text when there is none. */
function decodeUtf8(decoder: TextDecoder, chunk?: Buffer): string {
  try {
    return chunk ? decoder.decode(chunk, { stream: true }) : decoder.decode();
  } catch {
    throw new Failure("invalid_json", { message: "The body is not valid UTF-8. Encode it as UTF-8." });
  }
}

/**
 * Parses a body that must be one JSON object.
 * @throws Failure invalid_json
 */
export function parseBody(text: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Failure("invalid_json", { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Failure("invalid_json");
  return value;
}
