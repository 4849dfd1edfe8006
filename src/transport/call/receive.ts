import type { Message } from "@bufbuild/protobuf";
import type { Signal } from "../../concurrency/abort.ts";
import { CallerGone } from "../../contract/endings.ts";
import type { ReadOptions, ReadRequest } from "../../generate/read-request.ts";
import { checkStatedLength, meterBody } from "../../overload/body-bounds.ts";
import type { BodyBudget, BodySender } from "../../overload/body-budget.ts";
import { BODIES } from "../../overload/bounds.ts";
import type { ValueCounter } from "../../overload/value-count.ts";
import { Blocks } from "./blocks.ts";
import { type Call, type Format, streamOf } from "./call.ts";
import { expectsContinue, hasBody } from "./check-head.ts";
import { discardBody } from "./discard-body.ts";
import { type BodyForm, type Decoded, PREFIX_BYTES } from "./format.ts";
import { callerOf, senderOf } from "./identity.ts";
import type { Method } from "./methods.ts";

/** What a large body needs in a thread. */
interface Source extends ReadOptions {
  readonly form: BodyForm;
  /** The workspace of the request. */
  readonly owner: string;
  /** Aborts when the caller leaves. */
  readonly signal: Signal;
}

/** Reads requests whose bodies are too large to decode on the event loop. */
export interface LargeReader {
  /**
   * Decodes, checks and counts a request in a thread. The body moves there.
   * @throws Failure; `overloaded` while too many bodies wait and after `close`; the reason of the signal
   */
  read(body: Blocks, source: Source): Promise<Decoded<ReadRequest>>;
}

export interface Bodies {
  readonly budget: BodyBudget;
  readonly reader: LargeReader;
}

/**
 * Receives the request of a method: reads its head, then its body within the bounds of size, values, memory and time. A
 * large prompt is decoded in a thread. The memory of the body belongs to the call.
 * @throws Failure; CallerGone when the caller leaves or the deadline passes
 */
export async function receive(
  call: Call,
  method: Method,
  format: Format,
  { budget, reader }: Bodies,
): Promise<Decoded<Message | ReadRequest>> {
  const { request } = call;
  // The body of a GET request does not count.
  if (request.method === "POST") checkStatedLength(request.headers["content-length"], method.maxBytes);
  const { timeoutMs, decoded } = format.head(call, method);
  if (timeoutMs !== undefined) call.limit(timeoutMs);
  if (decoded) {
    if (hasBody(request)) await dropBody(call);
    return decoded;
  }
  const { form } = format;
  const bounds = { maxBytes: method.maxBytes, prefixBytes: form.isWrapped ? PREFIX_BYTES : 0 };
  const body = await readBody(call, budget, senderOf(call.identity), { ...bounds, count: format.counter(method) });
  if (!method.takesPrompt || body.size <= BODIES.maxInline) return format.decode(body.join(), method);
  const { signal, isRepeatable } = call;
  const streamed = method.desc.methodKind !== "unary";
  const owner = callerOf(call.identity).workspaceId;
  try {
    return await reader.read(body, { form, owner, signal, streamed, isRepeatable });
  } catch (error) {
    throw signal.aborted ? new CallerGone() : error;
  }
}

interface BodyOptions {
  readonly maxBytes: number;
  /** Bytes that the body may have beyond `maxBytes` for the prefix of a message. */
  readonly prefixBytes?: number;
  readonly count: ValueCounter;
}

/**
 * Reads a body within the bounds of size, values, memory and time. Its memory is held until the end of the call.
 * @throws Failure request_too_large, request_incomplete or overloaded; CallerGone when the caller leaves or the
 *   deadline passes
 */
export function readBody(
  call: Pick<Call, "request" | "response" | "signal" | "hold">,
  budget: BodyBudget,
  sender: BodySender,
  options: BodyOptions,
): Promise<Blocks> {
  const { request, response, signal } = call;
  return new Promise((resolve, reject) => {
    const blocks = new Blocks();
    const stop = () => {
      request.off("data", onData).off("end", onEnd);
      signal.removeEventListener("abort", onAbort);
      meter.end();
    };
    const fail = (error: unknown) => {
      stop();
      request.pause();
      hold.release();
      reject(error);
    };
    const hold = budget.open(sender, fail);
    call.hold = hold;
    const meter = meterBody(request, { hold, ...options });
    const onData = (chunk: Buffer) => {
      try {
        meter.add(chunk);
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
    const onAbort = () => fail(new CallerGone());
    // The caller may have left during authentication. Then no further event arrives.
    if (signal.aborted || request.destroyed) return onAbort();
    try {
      meter.start();
    } catch (error) {
      return fail(error);
    }
    if (expectsContinue(request)) response.writeContinue();
    signal.addEventListener("abort", onAbort);
    request.on("data", onData).on("end", onEnd);
  });
}

/** Drops the body of a request that needs none. Closes the connection if the body is large or slow. */
export async function dropBody({ request, response }: Call): Promise<void> {
  await discardBody(request);
  if (!request.complete && !streamOf(response)) response.setHeader("Connection", "close");
}
