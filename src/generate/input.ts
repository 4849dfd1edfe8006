import type { Notice } from "../../gen/chorus/v1/generation_pb.js";
import type { Signal } from "../concurrency/abort.ts";
import { Failure, invalidField } from "../contract/failure.ts";
import type { Engine } from "../engine/answer.ts";
import { essence, type Reader } from "../engine/attachments/reader.ts";
import { ground } from "../engine/grounding.ts";
import type { Conversation } from "../engine/prompt.ts";
import { allDisabled } from "../engine/question.ts";
import type { ReportedStep, Trace } from "../engine/trace.ts";
import { notice } from "./notices.ts";
import type { ReadRequest } from "./read-request.ts";

/** The conversation for the models, and its size in tokens. */
export interface Input {
  /** Includes the text and images of the files. */
  conversation: Conversation;
  /** Counts everything that the caller sent once; of a file, the part that was read. */
  inputTokens: number;
  notices: Notice[];
}

/**
 * Context window of a model whose size the catalogue does not give, in tokens: the smallest of current vendor models.
 */
const USUAL_CONTEXT = 128_000;
/** Share of the context window that a request with files may fill. Tokenizers differ, and the answer needs the rest. */
const ROOM = 0.75;
/**
 * Largest total size of the images of a request, in bytes. In base64 it is 20 MB, the inline limit of Google; OpenAI
 * and Anthropic accept more, Anthropic in several images. The limit also bounds memory, because each image is copied
 * several times on its way to a model.
 */
const MAX_IMAGES = 15_000_000;
/** Tokens of the markup around one file. */
const MARK = 100;

const ATTACHMENTS_STEP: ReportedStep = { id: -1, kind: "attachments", role: "service" };

/**
 * Reads the files of a request, shortens them to fit the context window, and adds their tokens to those of the text:
 * images count by their dimensions. Instructions that the service adds do not count.
 * @param owner identifier of the workspace
 * @throws Failure invalid_request naming the attachment; request_too_long when the images do not fit, or those of the
 *   conversation are too large; upstream_failed when all models that could read them are disabled; the reason of
 *   `signal`.
 */
export function readInput(
  engine: Engine,
  reader: Reader,
  read: ReadRequest,
  trace: Trace | undefined,
  owner: string,
  signal: Signal,
): Input | Promise<Input> {
  const { checked, textTokens } = read;
  // Without a promise, because most requests have no files.
  if (checked.attachments.length === 0)
    return { conversation: checked.conversation, inputTokens: textTokens, notices: [] };
  return readFiles(engine, reader, read, trace, owner, signal);
}

async function readFiles(
  { models }: Engine,
  reader: Reader,
  { checked, textTokens }: ReadRequest,
  trace: Trace | undefined,
  owner: string,
  signal: Signal,
): Promise<Input> {
  checkImages(checked);
  const { conversation, attachments, promptField } = checked;
  let inputTokens = textTokens;
  const image = attachments.findIndex(({ mediaType }) => isImage(mediaType));
  const capable = image < 0 ? models.members : models.members.filter(({ images }) => images);
  if (capable.length === 0) {
    if (image < 0) throw allDisabled("No model");
    if (models.all.some(({ images }) => images)) throw allDisabled("No model that sees images");
    const problem = "is an image, and no model of this service sees images. Send its text instead.";
    throw invalidField(`attachments[${image}].media_type`, problem);
  }
  const context = Math.max(...capable.map(({ contextTokens = USUAL_CONTEXT }) => contextTokens));
  const budget = Math.max(0, Math.floor(context * ROOM) - inputTokens - MARK * attachments.length);
  const question = conversation.messages.findLast(({ role, results }) => role === "user" && !results)?.text ?? "";

  trace?.add(ATTACHMENTS_STEP);
  const bounds = { question, tokens: budget, promptField, owner };
  const { texts, images, notices } = await reader.read(attachments, bounds, signal);
  trace?.add({ ...ATTACHMENTS_STEP, outcome: "ok", detail: `${attachments.length} read` });
  for (const { tokens } of [...texts, ...images]) inputTokens += tokens;
  return {
    conversation: ground(conversation, { texts: texts.filter(({ text }) => text !== ""), images }),
    inputTokens,
    notices: notices.map(({ code, message, field }) => notice(code, message, field)),
  };
}

/** @throws Failure request_too_long if the images are too large only together with those of earlier messages */
function checkImages({ conversation, attachments, promptField }: ReadRequest["checked"]): void {
  const last = conversation.messages.findLastIndex(({ role }) => role === "user");
  let [all, own] = [0, 0];
  for (const [i, { mediaType, data, at = last }] of attachments.entries()) {
    if (!isImage(mediaType)) continue;
    all += data.length;
    if (at === last) own += data.length;
    if (own <= MAX_IMAGES) continue;
    const problem = "brings the images to more than 15 MB in total, which models do not accept. Scale them down.";
    throw invalidField(`attachments[${i}].data`, problem);
  }
  if (all <= MAX_IMAGES) return;
  const message =
    "The images of the conversation have more than 15 MB in total, which models do not accept. Send fewer.";
  throw new Failure("request_too_long", { field: promptField, message });
}

function isImage(mediaType: string): boolean {
  return essence(mediaType).startsWith("image/");
}
