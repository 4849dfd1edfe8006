import { fileTypeFromBuffer } from "file-type";
import { Unreadable } from "./attachment.ts";

/** Bytes that are looked at; enough for every type's mark, few enough that no file can make it slow. */
const LOOKED_AT = 4100;

/** What a file is by the mark that it begins with, such as `image/png`; nothing for text and for what is unknown. */
export async function seemingType(bytes: Uint8Array): Promise<string | undefined> {
  return (await fileTypeFromBuffer(bytes.subarray(0, LOOKED_AT)))?.mime;
}

/** The error for a file that is not of its declared type. */
export async function mismatch(declared: string, bytes: Uint8Array): Promise<Unreadable> {
  const seeming = await seemingType(bytes);
  // Word wraps a document with a password, and its old .doc, in this format.
  const hint = seeming === "application/x-cfb" ? ": an old Word document, or one with a password" : "";
  const what = seeming && seeming !== declared ? `it seems to be ${seeming}${hint}` : "it is no such file";
  return new Unreadable(
    "media_type",
    `is ${declared}, but by its bytes ${what}. Declare the type that it has, or convert it.`,
  );
}
