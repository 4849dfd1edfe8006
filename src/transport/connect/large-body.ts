import type { ReadRequest } from "../../service/read-request.ts";
import type { Blocks } from "../call/blocks.ts";
import type { RequestReader } from "../call/request-reader.ts";
import { callerOf } from "../call/tracked-request.ts";
import type { Call } from "./call.ts";
import type { Wire } from "./wire.ts";

/**
 * Reads a large body in a thread, because decoding would hold the event loop.
 * @throws Failure; the reason of the call's signal
 */
export async function readLarge(blocks: Blocks, call: Call, wire: Wire, reader: RequestReader): Promise<ReadRequest> {
  const { identity, method, signal, header } = call;
  const streamed = method === "stream_generate";
  const { request, unknown, more } = await reader.read(blocks, {
    format: wire.json ? "json" : "proto",
    isWrapped: wire.enveloped,
    owner: callerOf(identity).workspaceId,
    signal,
    streamed,
    isRepeatable: !streamed && header("idempotency-key") !== undefined,
  });
  call.unknown = { unknown, more };
  return request;
}
