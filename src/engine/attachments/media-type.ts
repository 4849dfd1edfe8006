import { Unreadable } from "./attachment.ts";

/** Bytes that are examined: enough for the signature of every type. */
const EXAMINED = 4100;

/** The type by the signature of the file, such as `image/png`; undefined for text and unknown types. */
export async function detectedType(bytes: Uint8Array): Promise<string | undefined> {
  // Its 40 files are loaded with the first attachment, because most services never get one.
  const { fileTypeFromBuffer } = await import("file-type");
  return (await fileTypeFromBuffer(bytes.subarray(0, EXAMINED)))?.mime;
}

/** The error for a file whose content does not match its declared type. */
export async function mismatch(declared: string, bytes: Uint8Array): Promise<Unreadable> {
  const detected = await detectedType(bytes);
  // The format of old .doc files and of documents with a password.
  const hint = detected === "application/x-cfb" ? ": an old Word document, or one with a password" : "";
  const what = detected && detected !== declared ? `seems to be ${detected}${hint}` : "is not of this type";
  return new Unreadable(
    "media_type",
    `is ${declared}, but the content ${what}. Declare the type of the file, or convert it.`,
  );
}
