import { createRequestReading, type ReadOptions, type ReadRequest } from "../service/read-request.ts";
import { ownBytes, serveJobs } from "../worker-job.ts";
import { type DecodedRequest, decodeRequest, type Format } from "./decode-request.ts";
import { unwrap } from "./rpc/parse.ts";

/** A body to read. */
export interface Job extends ReadOptions {
  /** The body. The worker empties it, which frees the memory as early as possible. */
  blocks: Uint8Array<ArrayBuffer>[];
  format: Format;
  /** Whether the body is a message with a prefix, as in gRPC. */
  isWrapped: boolean;
}

export interface Result extends Pick<DecodedRequest, "unknown" | "more"> {
  request: ReadRequest;
}

const read = createRequestReading();

serveJobs<Job, Result>(async ({ blocks, format, isWrapped, streamed, isRepeatable }) => {
  const { request, unknown, more } = decodeRequest(bodyOf(blocks, isWrapped), format);
  const found = read(request, { streamed, isRepeatable });
  const transfer = found.checked.attachments.map((file) => {
    const data = ownBytes(file.data);
    file.data = data;
    return data.buffer;
  });
  return { result: { request: found, unknown, more }, transfer };
});

/** Joins and empties the blocks. */
function bodyOf(blocks: Job["blocks"], isWrapped: boolean): Uint8Array {
  const body = Buffer.concat(blocks.splice(0));
  return isWrapped ? unwrap(body) : body;
}
