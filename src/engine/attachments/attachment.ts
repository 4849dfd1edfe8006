import { type Failure, invalidField } from "../../contract/failure.ts";

/** A file of the request. */
export interface Attachment {
  /** The caller's name for it. May be empty; untrusted, like the content. */
  name: string;
  /** One of the types that the contract lists, case-insensitive. */
  mediaType: string;
  data: Uint8Array;
  /** Index of the message of the conversation that it belongs to; undefined: the user's last one. */
  at?: number | undefined;
}

/** A part of a file that was left out or has no text. */
export interface AttachmentNotice {
  code: "attachment_without_text" | "attachment_pages_left_out" | "attachments_shortened";
  /** For the caller. Never quotes the file. */
  message: string;
  /** Path of the file in the request, such as `attachments[0]`. */
  field: string;
}

/** The member of an attachment to which an error refers. */
type Part = "data" | "media_type";

/** Thrown for a file that is invalid or damaged. */
export class Unreadable extends Error {
  readonly part: Part;

  /** @param message the problem and its solution, a clause after the name of the field. Never quotes the file. */
  constructor(part: Part, message: string) {
    super(message);
    this.name = "Unreadable";
    this.part = part;
  }
}

/** @param index of the file; undefined when the failure concerns all files together */
export function fileFailure(index: number | undefined, part: Part, message: string): Failure {
  const field = index === undefined ? "attachments" : `attachments[${index}].${part}`;
  return invalidField(field, message);
}
