import type { Notice } from "../../gen/chorus/v1/generation_pb.js";
import type { Engine } from "../engine/answer.ts";
import type { Reader } from "../engine/attachments/reader.ts";
import { ground } from "../engine/grounding.ts";
import type { Conversation } from "../engine/prompt.ts";
import type { ToldStep, Trace } from "../engine/trace.ts";
import { invalid } from "../failure.ts";
import { notice } from "./notices.ts";
import type { CheckedRequest } from "./validate-request.ts";

/** What the models get, and what it counts as. */
export interface Input {
  /** With the files in it. */
  conversation: Conversation;
  /** Each thing that the caller sent once; files as far as they were read. */
  inputTokens: number;
  notices: Notice[];
}

/** Size of the context window where the catalogue does not know it: what current models of every vendor have at least. */
const USUAL_CONTEXT = 128_000;
/** Share of the window that a request with files may take: tokenizers differ, and the answer needs room. */
const ROOM = 0.75;
/**
 * Bytes of all images together: in base64 20 MB, which is what Google takes inline; OpenAI and Anthropic take more. Each is copied several
 * times on its way to a model: three requests with 45 MB each took the service to 1.5 GB, with 14 MB each to 0.8 GB.
 */
const MAX_IMAGES = 15_000_000;
/** Tokens that mark one file as data. */
const MARK = 100;

const ATTACHMENTS_STEP: ToldStep = { id: -1, kind: "attachments", role: "service" };

/**
 * Reads the files of a request, makes them fit beside the rest, and counts it all: texts by the service's own tokenizer, images by their
 * dimensions. What the service adds does not count.
 * @throws Failure invalid_request naming the attachment; the reason of `signal`.
 */
export async function readInput(
  { models, tokenizer }: Engine,
  reader: Reader,
  { conversation, schema, attachments }: CheckedRequest,
  trace: Trace | undefined,
  owner: string,
  signal: AbortSignal,
): Promise<Input> {
  let inputTokens = 0;
  for (const text of [...conversation.system, ...conversation.turns.map((turn) => turn.text), schema ?? ""])
    if (text !== "") inputTokens += await tokenizer.countAsync(text);
  if (attachments.length === 0) return { conversation, inputTokens, notices: [] };

  let imageBytes = 0;
  for (const [i, { mediaType, data }] of attachments.entries()) {
    if (isImage(mediaType)) imageBytes += data.length;
    if (imageBytes > MAX_IMAGES) {
      const field = `attachments[${i}].data`;
      throw invalid(
        field,
        `${field} makes the images larger than 15 MB together, which models do not take. Scale them.`,
      );
    }
  }
  const image = attachments.findIndex(({ mediaType }) => isImage(mediaType));
  const able = image < 0 ? models.members : models.members.filter(({ images }) => images);
  if (able.length === 0) {
    const field = `attachments[${image}].media_type`;
    throw invalid(field, `${field} is an image, and no model of this service sees images. Send its text instead.`);
  }
  const context = Math.max(...able.map(({ contextTokens = USUAL_CONTEXT }) => contextTokens));
  const budget = Math.max(0, Math.floor(context * ROOM) - inputTokens - MARK * attachments.length);
  const question = conversation.turns.findLast(({ role }) => role === "user")?.text ?? "";

  trace?.add(ATTACHMENTS_STEP);
  const { texts, images, notices } = await reader.read(attachments, { question, tokens: budget, owner }, signal);
  trace?.add({ ...ATTACHMENTS_STEP, outcome: "ok", detail: `${attachments.length} read` });
  for (const { tokens } of [...texts, ...images]) inputTokens += tokens;
  return {
    conversation: ground(conversation, { texts: texts.filter(({ text }) => text !== ""), images }),
    inputTokens,
    notices: notices.map(({ code, message, field }) => notice(code, message, field)),
  };
}

function isImage(mediaType: string): boolean {
  return /^image\//i.test(mediaType);
}
