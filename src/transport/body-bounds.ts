import type { IncomingHttpHeaders } from "node:http";
import { Failure } from "../failure.ts";
import { CallerGone } from "../service/request-context.ts";
import type { ValueCounter } from "./value-count.ts";

/** Largest body, in bytes. */
export const MAX_BODY = 64 * 1024 * 1024;

/** Largest request to a service that takes no prompts, in bytes. */
export const MAX_SMALL_BODY = 64 * 1024;

/** Bodies up to this size may use the part of the budget that larger ones may not, in bytes. */
const SMALL_BODY = 1024 * 1024;

/** Most values in a body. A body with so many is parsed in 50 ms. */
const MAX_VALUES = 100_000;

/** Memory for request bodies, which all requests of a listener share. */
export interface BodyBudget {
  /**
   * Takes `bytes` for a body that already holds `held`.
   * @throws Failure overloaded when too little is left.
   */
  take(bytes: number, held: number): void;
  give(bytes: number): void;
  /** Bytes that are taken. */
  readonly used: number;
}

/**
 * Creates a budget of `total` bytes. A quarter of it is reserved for small bodies, because a few large ones could
 * otherwise use it up. One body of the largest size always fits.
 */
export function createBodyBudget(total: number): BodyBudget {
  const roomForLarge = Math.max(total * 0.75, MAX_BODY);
  let used = 0;
  return {
    take(bytes, held) {
      const room = held + bytes > SMALL_BODY ? roomForLarge : total;
      if (used + bytes > room) {
        throw new Failure("overloaded", {
          message: "The service has no memory left for this body. Send the request again after the stated time.",
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

interface Bounds {
  readonly budget: BodyBudget;
  /** Largest body, in bytes. */
  readonly maxBytes: number;
  /** Bytes that the body may have beyond `maxBytes` for the prefix of a message. */
  readonly prefixBytes?: number;
  readonly count: ValueCounter;
}

/** Applies the bounds to one body while it arrives. */
interface BodyMeter {
  /**
   * Takes memory for a body that states its length, before its first byte is read. Other bodies take it chunk by chunk.
   * @throws Failure request_too_large or overloaded
   */
  start(): void;
  /** @throws Failure request_too_large or overloaded; CallerGone after `release` */
  add(chunk: Uint8Array): void;
  /** @throws Failure request_too_large when the chunks so far hold too many values */
  checkValues(): void;
  /** Gives the memory back. Later calls have no effect. */
  release(): void;
}

export function meterBody(headers: IncomingHttpHeaders, bounds: Bounds): BodyMeter {
  const { budget, maxBytes, prefixBytes = 0, count } = bounds;
  const stated = headers["content-length"];
  let size = 0;
  let values = 0;
  let held = 0;
  let isReleased = false;
  const hold = (bytes: number) => {
    if (isReleased) throw new CallerGone();
    budget.take(bytes, held);
    held += bytes;
  };
  return {
    start() {
      if (stated === undefined) return;
      checkStatedLength(stated, maxBytes);
      hold(Number(stated));
    },
    add(chunk) {
      size += chunk.length;
      if (size > maxBytes + prefixBytes) throw tooLarge(maxBytes);
      values = count(chunk);
      if (stated === undefined) hold(chunk.length);
    },
    checkValues() {
      if (values <= MAX_VALUES) return;
      const message = `The body holds more than ${MAX_VALUES.toLocaleString("en")} values. Send fewer.`;
      throw new Failure("request_too_large", { message });
    },
    release() {
      isReleased = true;
      budget.give(held);
      held = 0;
    },
  };
}

/**
 * Checks the length that a request states in `Content-Length`.
 * @throws Failure request_too_large
 */
export function checkStatedLength(stated: string | null | undefined, maxBytes: number): void {
  if (Number(stated ?? 0) > maxBytes) throw tooLarge(maxBytes);
}

/** The failure of a body that is larger than `maxBytes`. */
export function tooLarge(maxBytes: number): Failure {
  return maxBytes === MAX_BODY
    ? new Failure("request_too_large")
    : new Failure("request_too_large", { message: `This request may have at most ${maxBytes} bytes. Send less.` });
}
