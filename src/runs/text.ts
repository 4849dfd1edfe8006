import { promisify } from "node:util";
import { deflateRaw, inflateRaw } from "node:zlib";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  Role,
  type RunText,
  type RunTextDraftSchema,
  type RunTextFile,
  type RunTextMessage,
  RunTextSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Conversation } from "../engine/prompt.ts";
import type { Message } from "../models/port/model.ts";

type TextMessage = Pick<RunTextMessage, "role" | "text"> & { tool?: string };

/** A file of a request. */
export type TextFile = Pick<RunTextFile, "name" | "mediaType" | "size">;

/** What a request and its answer say. */
export interface TextFacts {
  /** As the caller sent it, without its files. */
  readonly conversation: Conversation;
  readonly files: readonly TextFile[];
  /** By the numbers of their steps in the trace. */
  readonly drafts: readonly { readonly step: number; readonly text: string }[];
  /** As far as the caller has taken it. */
  readonly answer: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
}

/** Most characters of a request that are kept. */
const MAX_CHARACTERS = 262_144;

/** Cuts texts where there are too many characters together. The first ones to ask get them. */
class Room {
  left = MAX_CHARACTERS;
  isCut = false;

  take(text: string): string {
    const taken = text.length <= this.left ? text : text.slice(0, this.left);
    this.left -= taken.length;
    this.isCut ||= taken.length < text.length;
    // Half of a character cannot be written in UTF-8.
    return taken.toWellFormed();
  }
}

/**
 * Writes the text of a request as it is kept. Where there is too much, the answer comes first, then the drafts, then
 * the messages from the last to the first. The bytes hold no reference to the request, which can be large.
 */
export function writeText({ conversation, files, drafts, answer, calls }: TextFacts): Uint8Array {
  const room = new Room();
  const kept = {
    answer: room.take(answer),
    calls: calls.map((call) => ({ role: Role.ASSISTANT, tool: room.take(call.name), text: room.take(call.arguments) })),
    drafts: drafts
      .toSorted((a, b) => a.step - b.step)
      .map(({ step, text }): MessageInitShape<typeof RunTextDraftSchema> => ({ step, text: room.take(text) })),
    files: files.map(
      ({ name, mediaType, size }): TextFile => ({ name: room.take(name), mediaType: room.take(mediaType), size }),
    ),
    messages: messagesOf(conversation)
      .toReversed()
      .map(({ role, text, tool = "" }) => ({ role, text: room.take(text), tool: room.take(tool) }))
      .filter(({ text, tool }) => text !== "" || tool !== "")
      .toReversed(),
  };
  return toBinary(RunTextSchema, create(RunTextSchema, { ...kept, isCut: room.isCut }));
}

function messagesOf({ system, messages }: Conversation): TextMessage[] {
  return [...system.map((text): TextMessage => ({ role: Role.SYSTEM, text })), ...messages.flatMap(partsOf)];
}

function partsOf({ role, text, calls = [], results = [] }: Message): TextMessage[] {
  return [
    ...results.map((result): TextMessage => ({ role: Role.TOOL, tool: result.name, text: result.text })),
    { role: role === "user" ? Role.USER : Role.ASSISTANT, text },
    ...calls.map((call): TextMessage => ({ role: Role.ASSISTANT, tool: call.name, text: call.arguments })),
  ];
}

const compress = promisify(deflateRaw);
const expand = promisify(inflateRaw);

/** Compresses what `writeText` wrote, in another thread. */
export function packText(text: Uint8Array): Promise<Buffer> {
  return compress(text, { level: 1 });
}

/** Reads what `packText` made. @throws Error when it is something else */
export async function unpackText(packed: Buffer): Promise<RunText> {
  return fromBinary(RunTextSchema, await expand(packed));
}
