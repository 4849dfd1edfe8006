import type { IncomingMessage } from "node:http";
import { TextDecoder } from "node:util";
import { Failure } from "../../failure.ts";
import { CallerGone } from "../../service/request-context.ts";

/** Largest body, in bytes. */
export const MAX_BODY = 64 * 1024 * 1024;
/** Bodies up to this size may use the part of the budget that large ones must leave free. */
const SMALL_BODY = 1024 * 1024;

/**
 * Most JSON values in a body: far more than a sensible request has. Few enough to be parsed in 50 ms; 60 MB of `[],[],…` would hold up
 * everybody for 10 s and take 2 GB.
 */
const MAX_VALUES = 100_000;

/** Room for request bodies, shared by all requests. */
export interface BodyBudget {
  /**
   * Takes `bytes` of room for a body that has `held` already.
   * @throws Failure overloaded when there is not enough.
   */
  take(bytes: number, held: number): void;
  give(bytes: number): void;
  /** Bytes that are taken. */
  readonly used: number;
}

/** A quarter of the room is kept for small bodies, so that a few large ones cannot shut out everybody else; one large body always fits. */
export function createBodyBudget(total: number): BodyBudget {
  const roomForLarge = Math.max(total * 0.75, MAX_BODY);
  let used = 0;
  return {
    take(bytes, held) {
      const room = held + bytes > SMALL_BODY ? roomForLarge : total;
      if (used + bytes > room) {
        throw new Failure("overloaded", {
          message:
            "The service holds as many request bodies as it has room for. Send the request again after the stated time.",
          retryAfterMs: 1_000,
        });
      }
      used += bytes;
    },
    give(bytes) {
      used -= bytes;
    },
    get used() {
      return used;
    },
  };
}

export interface Body {
  text: string;
  /** Gives the room back; to be called once when the request has ended. */
  release(): void;
}

/**
 * Checks what the head of a request says of its body: size, then type.
 * @throws Failure request_too_large or unsupported_media_type.
 */
export function checkBodyHead({ headers }: IncomingMessage): void {
  if (Number(headers["content-length"] ?? 0) > MAX_BODY) throw new Failure("request_too_large");
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
 * Reads a body as UTF-8 text; a byte order mark is skipped. Room for a body of stated length is taken before the first byte is read,
 * for any other as it comes. What is larger than the limit without having said so is refused at the first byte over it. Decoding
 * each piece as it arrives spreads the work and holds the bytes once: of 60 MB the longest step is 1 ms, where decoding them in one go takes 40 to
 * 320 ms.
 * @param proceed Called once there is room, before anything is read.
 * @param maxBytes Largest body.
 * @throws Failure request_too_large, overloaded or invalid_json; CallerGone when the connection ends first.
 */
export function readBody(
  request: IncomingMessage,
  budget: BodyBudget,
  proceed: () => void,
  maxBytes: number = MAX_BODY,
): Promise<Body> {
  return new Promise((resolve, reject) => {
    const stated = request.headers["content-length"];
    const utf8 = new TextDecoder("utf-8", { fatal: true });
    let text = "";
    let size = 0;
    let held = 0;
    const hold = (bytes: number) => {
      budget.take(bytes, held);
      held += bytes;
    };
    const release = () => {
      budget.give(held);
      held = 0;
    };
    const stop = () => request.off("data", onData).off("end", onEnd).off("close", onClose);
    const fail = (error: unknown) => {
      stop();
      request.pause();
      release();
      text = "";
      reject(error);
    };
    const onData = (chunk: Buffer) => {
      try {
        size += chunk.length;
        if (size > maxBytes) throw tooLarge(maxBytes);
        if (stated === undefined) hold(chunk.length);
        text += decodeUtf8(utf8, chunk);
      } catch (error) {
        fail(error);
      }
    };
    const onEnd = () => {
      try {
        const body = { text: text + decodeUtf8(utf8), release };
        stop();
        // The closures live as long as the body's room; the text need not.
        text = "";
        resolve(body);
      } catch (error) {
        fail(error);
      }
    };
    const onClose = () => fail(new CallerGone());
    // The connection may have ended while the key was looked up; then no event comes any more.
    if (request.destroyed) return onClose();
    try {
      if (Number(stated ?? 0) > maxBytes) throw tooLarge(maxBytes);
      if (stated !== undefined) hold(Number(stated));
    } catch (error) {
      return fail(error);
    }
    proceed();
    request.on("data", onData).on("end", onEnd).on("close", onClose);
  });
}

/** The failure of a body that is larger than `maxBytes`. */
export function tooLarge(maxBytes: number): Failure {
  return maxBytes === MAX_BODY
    ? new Failure("request_too_large")
    : new Failure("request_too_large", { message: `A call of this service has ${maxBytes} bytes at most. Send less.` });
}

/** Decodes the next piece, or ends the text. */
function decodeUtf8(decoder: TextDecoder, piece?: Buffer): string {
  try {
    return piece ? decoder.decode(piece, { stream: true }) : decoder.decode();
  } catch {
    throw new Failure("invalid_json", { message: "The body is not valid UTF-8. Encode it as UTF-8." });
  }
}

/**
 * Parses a body that must be one JSON object.
 * @throws Failure invalid_json, or request_too_large for more than 100,000 values.
 */
export function parseBody(text: string): object {
  if (hasTooManyValues(text)) {
    throw new Failure("request_too_large", {
      message: `The body holds more than ${MAX_VALUES.toLocaleString("en")} JSON values. Send fewer.`,
    });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Failure("invalid_json", { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Failure("invalid_json");
  return value;
}

/** Counts without parsing what opens a list or an object and what parts their members. Leaps over long strings. */
function hasTooManyValues(text: string): boolean {
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') at = closingQuote(text, at);
    else if ((character === "," || character === "[" || character === "{") && ++values > MAX_VALUES) return true;
  }
  return false;
}

function closingQuote(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    at = text.indexOf('"', at);
    if (at < 0) return text.length;
    let before = at - 1;
    while (text[before] === "\\") before--;
    // An even number of backslashes escape each other and leave the quote alone.
    if ((at - before) % 2 === 1) return at;
  }
}
