import type { GenerateRequest } from "../../../gen/chorus/v1/generation_pb.js";
import { ownBytes, serveJobs } from "../../concurrency/worker-job.ts";
import { toFailure } from "../../contract/failure.ts";
import { createRequestReading, type ReadOptions, type ReadRequest } from "../../generate/read-request.ts";
import type { BodyForm, Decoded } from "../call/format.ts";
import type { ChatTerms } from "../openai/decode.ts";
import { withParameter } from "../openai/parameters.ts";
import { decodePrompt } from "./decode.ts";

/** A body to read. A body in OpenAI's format itself says whether the answer is streamed. */
export interface Job extends ReadOptions {
  /** The body. The worker empties it, which frees the memory as early as possible. */
  blocks: Uint8Array<ArrayBuffer>[];
  form: BodyForm;
}

const read = createRequestReading();

serveJobs<Job, Decoded<ReadRequest>>(async ({ blocks, form, ...options }) => {
  const { request, ...decoded } = decodePrompt(Buffer.concat(blocks.splice(0)), form);
  const chat = form.name === "openai" ? (decoded.terms as ChatTerms) : undefined;
  const found = chat ? readChat(request, chat, options) : read(request, options);
  const transfer = found.checked.attachments.map((file) => {
    const data = ownBytes(file.data);
    file.data = data;
    return data.buffer;
  });
  return { result: { request: found, ...decoded }, transfer };
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
