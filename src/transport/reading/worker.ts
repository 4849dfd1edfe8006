import type { GenerateRequest } from "../../../gen/chorus/v1/generation_pb.js";
import { ownBytes, serveJobs } from "../../concurrency/worker-job.ts";
import { toFailure } from "../../contract/failure.ts";
import { createRequestReading, type ReadOptions, type ReadRequest } from "../../generate/read-request.ts";
import { renameField } from "../call/field-names.ts";
import type { BodyForm, Decoded, ForeignTerms } from "../call/format.ts";
import { decodePrompt } from "./decode.ts";

/** A body to read. A body of another API itself says whether the answer is streamed. */
export interface Job extends ReadOptions {
  /** The body. The worker empties it, which frees the memory as early as possible. */
  blocks: Uint8Array<ArrayBuffer>[];
  form: BodyForm;
}

const read = createRequestReading();

serveJobs<Job, Decoded<ReadRequest>>(async ({ blocks, form, ...options }) => {
  const { request, ...decoded } = decodePrompt(Buffer.concat(blocks.splice(0)), form);
  const found = decoded.terms ? readForeign(request, decoded.terms, options) : read(request, options);
  const transfer = found.checked.attachments.map((file) => {
    const data = ownBytes(file.data);
    file.data = data;
    return data.buffer;
  });
  return { result: { request: found, ...decoded }, transfer };
});

/** @throws Failure naming the member */
function readForeign(request: GenerateRequest, terms: ForeignTerms, { isRepeatable }: ReadOptions): ReadRequest {
  const { streamed, names } = terms;
  try {
    return read(request, { streamed, isRepeatable: isRepeatable && !streamed, isForeign: true });
  } catch (error) {
    throw renameField(toFailure(error), names);
  }
}
