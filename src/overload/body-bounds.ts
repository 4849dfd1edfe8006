import type { IncomingMessage } from "node:http";
import { Turns } from "../concurrency/turns.ts";
import { Failure } from "../contract/failure.ts";
import type { BodyHold } from "./body-budget.ts";
import { BODIES, PER_TURN } from "./bounds.ts";
import type { ValueCounter } from "./value-count.ts";

/**
 * Large bodies arrive in turns: after each chunk they pause. Node reads up to 2 MB of each connection in a turn of the
 * event loop, so a few large bodies would hold it for 20 ms in each. All listeners share the event loop.
 */
const turns = new Turns<IncomingMessage>(PER_TURN.chunks);

interface Bounds {
  readonly hold: BodyHold;
  /** Largest body, in bytes. */
  readonly maxBytes: number;
  /** Bytes that the body may have beyond `maxBytes` for the prefix of a message. */
  readonly prefixBytes?: number;
  readonly count: ValueCounter;
}

/** Applies the bounds to one body while it arrives. */
export function meterBody(request: IncomingMessage, bounds: Bounds) {
  const { hold, maxBytes, prefixBytes = 0, count } = bounds;
  const stated = request.headers["content-length"];
  let size = 0;
  let hasEnded = false;
  const resume = () => {
    if (!hasEnded) request.resume();
    return !hasEnded;
  };
  return {
    /**
     * Checks the length that the body states, before its first byte is read.
     * @throws Failure request_too_large or overloaded
     */
    start(): void {
      if (stated === undefined) return;
      checkStatedLength(stated, maxBytes);
      hold.expect(Number(stated));
    },
    /**
     * Pauses a large body until its next turn.
     * @throws Failure request_too_large, also for too many values; overloaded; CallerGone after the release of the hold
     */
    add(chunk: Uint8Array): void {
      size += chunk.length;
      if (size > maxBytes + prefixBytes) throw tooLarge(maxBytes);
      hold.take(chunk.length);
      if (count(chunk) > BODIES.maxValues) throw tooManyValues();
      if (size <= BODIES.unpaced) return;
      request.pause();
      turns.add(request, resume);
    },
    /** Call it when the body is not read any further. */
    end(): void {
      hasEnded = true;
    },
  };
}

/** Checks the length that a request states in `Content-Length`. @throws Failure request_too_large */
export function checkStatedLength(stated: string | null | undefined, maxBytes: number): void {
  if (Number(stated ?? 0) > maxBytes) throw tooLarge(maxBytes);
}

/** The failure of a body that is larger than `maxBytes`. */
export function tooLarge(maxBytes: number): Failure {
  return maxBytes === BODIES.max
    ? new Failure("request_too_large")
    : new Failure("request_too_large", { message: `This request may have at most ${maxBytes} bytes. Send less.` });
}

function tooManyValues(): Failure {
  const message = `The body holds more than ${BODIES.maxValues.toLocaleString("en")} values. Send fewer.`;
  return new Failure("request_too_large", { message });
}
