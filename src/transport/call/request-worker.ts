import type { GenerateRequest } from "../../../gen/chorus/v1/generation_pb.js";
import { ownBytes, serveJobs } from "../../concurrency/worker-job.ts";
import { toFailure } from "../../contract/failure.ts";
import { createRequestReading, type ReadOptions, type ReadRequest } from "../../service/read-request.ts";
import { unwrap } from "../connect/decode.ts";
import type { ChatTerms } from "../openai/decode.ts";
import { withParameter } from "../openai/parameters.ts";
import { type DecodedRequest, decodeRequest, type Format } from "./decode-request.ts";

/** A body to read. A body in the format `openai` itself says whether the answer is streamed. */
export interface Job extends ReadOptions {
  /** The body. The worker empties it, which frees the memory as early as possible. */
  blocks: Uint8Array<ArrayBuffer>[];
  format: Format;
  /** Whether the body is a message with a prefix, as in gRPC. */
  isWrapped: boolean;
}

export interface Result extends Pick<DecodedRequest, "unknown" | "more" | "chat"> {
  request: ReadRequest;
}

const read = createRequestReading();

serveJobs<Job, Result>(async ({ blocks, format, isWrapped, ...options }) => {
  const { request, chat, ...reports } = decodeRequest(bodyOf(blocks, isWrapped), format);
  const found = chat ? readChat(request, chat, options) : read(request, options);
  const transfer = found.checked.attachments.map((file) => {
    const data = ownBytes(file.data);
    file.data = data;
    return data.buffer;
  });
  return { result: { request: found, ...reports, ...(chat ? { chat } : {}) }, transfer };
});

/** @throws Failure naming the parameter */
function readChat(request: GenerateRequest, chat: ChatTerms, { isRepeatable }: ReadOptions): ReadRequest {
  const { streamed } = chat;
  try {
    return read(request, { streamed, isRepeatable: isRepeatable && !streamed });
  } catch (error) {
    throw withParameter(toFailure(error), chat);
  }
}

/** Joins and empties the blocks. */
function bodyOf(blocks: Job["blocks"], isWrapped: boolean): Uint8Array {
  const body = Buffer.concat(blocks.splice(0));
  return isWrapped ? unwrap(body) : body;
}
