import type { IncomingMessage } from "node:http";
import { Failure } from "../failure.ts";
import { CallerGone } from "../service/call.ts";

/** Largest body, in bytes. */
export const MAX_BODY = 64 * 1024 * 1024;
/** Bodies up to this size may use the part of the budget that large ones must leave free. */
const SMALL_BODY = 1024 * 1024;

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

/** A quarter of the room is kept for small bodies, so that a few large ones cannot shut out everybody else. */
export function createBodyBudget(total: number): BodyBudget {
  let used = 0;
  return {
    take(bytes, held) {
      const room = held + bytes > SMALL_BODY ? total * 0.75 : total;
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
  const encoding = headers["content-encoding"] ?? "identity";
  if (
    type.trim() !== "application/json" ||
    encoding !== "identity" ||
    (charset && !/^charset="?utf-8"?$/.test(charset))
  ) {
    throw new Failure("unsupported_media_type");
  }
}

/**
 * Reads a body as UTF-8 text. What is larger than the limit without having said so is refused at the first byte over it.
 * @throws Failure request_too_large, overloaded or invalid_json; CallerGone when the connection ends first.
 */
export function readBody(request: IncomingMessage, budget: BodyBudget): Promise<Body> {
  return new Promise((resolve, reject) => {
    const stated = request.headers["content-length"];
    const chunks: Buffer[] = [];
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
      reject(error);
    };
    const onData = (chunk: Buffer) => {
      try {
        size += chunk.length;
        if (size > MAX_BODY) throw new Failure("request_too_large");
        if (stated === undefined) hold(chunk.length);
        chunks.push(chunk);
      } catch (error) {
        fail(error);
      }
    };
    const onEnd = () => {
      try {
        const text = decodeUtf8(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
        stop();
        resolve({ text, release });
      } catch (error) {
        fail(error);
      }
    };
    const onClose = () => fail(new CallerGone());
    try {
      if (stated !== undefined) hold(Number(stated));
    } catch (error) {
      return fail(error);
    }
    request.on("data", onData).on("end", onEnd).on("close", onClose);
  });
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function decodeUtf8(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Failure("invalid_json", { message: "The body is not valid UTF-8. Encode it as UTF-8." });
  }
}
