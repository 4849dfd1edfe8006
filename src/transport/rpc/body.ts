import type { IncomingMessage, ServerResponse } from "node:http";
import type { DescService } from "@bufbuild/protobuf";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import { CallerGone } from "../../service/request-context.ts";
import { type BodyBudget, MAX_BODY, MAX_SMALL_BODY, meterBody, tooLarge } from "../body-bounds.ts";
import { createValueCounter, prefixLength } from "../value-count.ts";
import { toConnectError } from "./connect-error.ts";

export interface Body {
  /** Reads the body within its bounds. @throws ConnectError */
  read(requestId: string): AsyncIterable<Uint8Array>;
  /** Gives the body's memory back to the budget. */
  release(): void;
}

/** Largest request to a service, in bytes. */
export function maxBytesOf({ typeName }: DescService): number {
  return typeName === GenerationService.typeName ? MAX_BODY : MAX_SMALL_BODY;
}

/** Prepares reading the body of a request that `handler` serves. */
export function createBody(
  request: IncomingMessage,
  response: ServerResponse,
  { service, method }: UniversalHandler,
  budget: BodyBudget,
): Body {
  const type = request.headers["content-type"] ?? "";
  const maxBytes = maxBytesOf(service);
  const count = createValueCounter(method.input, type, (length) => {
    if (length > maxBytes) throw tooLarge(maxBytes);
  });
  const meter = meterBody(request.headers, { budget, maxBytes, prefixBytes: prefixLength(type), count });
  return {
    async *read(requestId) {
      try {
        meter.start();
        if (request.headers.expect) response.writeContinue();
        // Leaving the loop early must not destroy the request, because the refusal travels on the same connection.
        for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
          meter.add(chunk);
          meter.checkValues();
          yield chunk;
        }
      } catch (error) {
        throw toConnectError(request.destroyed ? new CallerGone() : error, requestId);
      }
    },
    release: meter.release,
  };
}
