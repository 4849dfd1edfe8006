/** A file of the request. */
export interface Attachment {
  /** As the caller gave it; may be empty, and is as little to be trusted as the content. */
  name: string;
  /** One of the types that the contract lists, in any case of letters. */
  mediaType: string;
  data: Uint8Array;
}

/** Something left out of a file, or absent from it, that the caller should know. */
export interface AttachmentNotice {
  code: "attachment_without_text" | "attachment_pages_left_out" | "attachments_shortened";
  /** For the caller; nothing of the file in it. */
  message: string;
  /** Path of the file in the request, such as `attachments[0]`. */
  field: string;
}

/** Member of an attachment that an error is about. */
export type Part = "data" | "media_type";

/** A file that cannot be read, through its own fault. */
export class Unreadable extends Error {
  readonly part: Part;

  /** @param message What is wrong and what to do, worded to follow the field's name; nothing of the file in it. */
  constructor(part: Part, message: string) {
    super(message);
    this.name = "Unreadable";
    this.part = part;
  }
}
