import type { DescService } from "@bufbuild/protobuf";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import { CallerGone } from "../../service/request-context.ts";
import { Blocks } from "../blocks.ts";
import { meterBody, tooLarge } from "../body-bounds.ts";
import { type BodyBudget, type BodyHold, MAX_BODY, MAX_SMALL_BODY } from "../body-budget.ts";
import { MAX_INLINE, type RequestReader } from "../request-reader.ts";
import { senderOf } from "../tracked-request.ts";
import { createValueCounter, prefixLength } from "../value-count.ts";
import { toConnectError } from "./connect-error.ts";
import { type Exchanged, readLarge } from "./large-body.ts";

export interface Body {
  /** Reads the body within its bounds, once the request is authenticated. @throws ConnectError */
  read(): AsyncIterable<Uint8Array>;
  /** Gives the body's memory back to the budget. */
  release(): void;
}

/** Largest request to a service, in bytes. */
export function maxBytesOf({ typeName }: DescService): number {
  return typeName === GenerationService.typeName ? MAX_BODY : MAX_SMALL_BODY;
}

/** Prepares reading the body of a request that `handler` serves. */
export function createBody(
  exchanged: Exchanged,
  { service, method }: UniversalHandler,
  { budget, reader }: { budget: BodyBudget; reader: RequestReader },
): Body {
  const { request, response, tracked } = exchanged;
  const type = request.headers["content-type"] ?? "";
  const maxBytes = maxBytesOf(service);
  const count = createValueCounter(method.input, type, (length) => {
    if (length > maxBytes) throw tooLarge(maxBytes);
  });
  let hold: BodyHold | undefined;
  return {
    async *read() {
      // Connect may start to read other bodies before their end: reflection is a stream in both directions.
      const blocks = service.typeName === GenerationService.typeName ? new Blocks() : undefined;
      try {
        if (request.destroyed) throw new CallerGone();
        hold = budget.open(senderOf(tracked.identity), () => request.destroy());
        const meter = meterBody(request.headers, { hold, maxBytes, prefixBytes: prefixLength(type), count });
        meter.start();
        if (request.headers.expect) response.writeContinue();
        // Leaving the loop early must not destroy the request, because the refusal travels on the same connection.
        for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
          meter.add(chunk);
          meter.checkValues();
          if (blocks) blocks.add(chunk);
          else yield chunk;
        }
      } catch (error) {
        throw toConnectError(request.destroyed ? new CallerGone() : error, tracked.requestId);
      } finally {
        hold?.complete();
      }
      if (blocks) yield blocks.size > MAX_INLINE ? readLarge(blocks, exchanged, reader) : blocks.join();
    },
    release: () => hold?.release(),
  };
}
